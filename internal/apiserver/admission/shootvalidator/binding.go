package shootvalidator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// zonesForZoneTolerance is how many zones a seed needs for control planes that survive the loss of one.
const zonesForZoneTolerance = 3

// scheduled reports whether the request binds a shoot that was bound to no seed.
func scheduled(in *input) bool {
	return in.old.Spec.SeedName == nil && in.shoot.Spec.SeedName != nil
}

// rescheduled reports whether the request moves a shoot to another seed.
func rescheduled(in *input) bool {
	was, is := in.old.Spec.SeedName, in.shoot.Spec.SeedName
	return was != nil && is != nil && *was != *is
}

// checkScheduling checks that the user may bind the shoot, and that the seed has room for it.
func (p *Plugin) checkScheduling(ctx context.Context, a admission.Attributes, in *input) error {
	if in.isNew && scheduled(in) {
		if err := p.authorize(ctx, a, authorizer.AttributesRecord{
			Verb: "update", APIGroup: corev1beta1.SchemeGroupVersion.Group, APIVersion: corev1beta1.SchemeGroupVersion.Version,
			Resource: "shoots", Subresource: bindingSubresource, Namespace: in.shoot.Namespace, Name: in.shoot.Name, ResourceRequest: true,
		}); err != nil {
			return fmt.Errorf("spec.seedName cannot be set: %w", err)
		}
	}
	if err := checkBinding(in); err != nil {
		return err
	}
	if !scheduled(in) && !rescheduled(in) {
		return nil
	}
	if allocatable, limited := in.seed.Status.Allocatable[constants.ResourceShoots]; limited {
		onSeed := &corev1beta1.ShootList{}
		if err := p.GardenCache.List(ctx, onSeed, client.MatchingFields{"spec.seedName": in.seed.Name}); err != nil {
			return fmt.Errorf("list shoots on seed %q: %w", in.seed.Name, err)
		}
		if int64(len(onSeed.Items)) >= allocatable.Value() {
			return fmt.Errorf("seed %q is full: it takes %s shoots", in.seed.Name, allocatable.String())
		}
	}
	return nil
}

// checkBinding checks that the seed may change, and that the new one is suitable.
func checkBinding(in *input) error {
	switch {
	case in.isNew:
	case in.binding && in.old.Spec.SeedName != nil && in.shoot.Spec.SeedName == nil:
		return fmt.Errorf("the shoot is bound to seed %q and cannot be released", *in.old.Spec.SeedName)
	case in.binding && rescheduled(in):
		spec := in.shoot.Spec
		spec.SeedName = in.old.Spec.SeedName
		if !apiequality.Semantic.DeepEqual(spec, in.old.Spec) {
			return errors.New("together with the seed nothing else of the spec can change")
		}
	case !in.binding && !apiequality.Semantic.DeepEqual(in.shoot.Spec.SeedName, in.old.Spec.SeedName):
		return errors.New("spec.seedName changes by the subresource shoots/binding only")
	}
	if scheduled(in) || rescheduled(in) {
		if err := suits(in.shoot, in.seed, in.profile); err != nil {
			return err
		}
	}
	if rescheduled(in) {
		if err := canMove(in); err != nil {
			return err
		}
	} else if !in.isNew && in.specChanged() {
		if in.old.MovesToOtherSeed() {
			return fmt.Errorf("the spec cannot change during the operation %s", in.old.Status.LastOperation.Type)
		}
		if last, status := in.old.Status.LastOperation, in.old.Status.SeedName; last != nil && status != nil && in.old.Spec.SeedName != nil &&
			*status != *in.old.Spec.SeedName {
			return errors.New("the spec cannot change until the shoot has moved to its new seed")
		}
	}
	return checkSeedInDeletion(in)
}

// suits checks that a shoot can be on a seed. The profile is nil if there is none any more.
func suits(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, profile *corev1beta1.CloudProfileSpec) error {
	if seed.DeletionTimestamp != nil {
		return fmt.Errorf("seed %q is being deleted, so it takes no more shoots", seed.Name)
	}
	for _, taint := range seed.Spec.Taints {
		if !slices.ContainsFunc(shoot.Spec.Tolerations, func(t corev1beta1.Toleration) bool { return tolerates(t, taint) }) {
			return fmt.Errorf("the shoot does not tolerate the taint %q of seed %q", taint.Key, seed.Name)
		}
	}
	if profile != nil && profile.SeedSelector != nil {
		if err := selects(profile.SeedSelector, seed); err != nil {
			return fmt.Errorf("the seed selector of the cloud profile: %w", err)
		}
	}
	if zoneTolerant(shoot) && len(seed.Spec.Provider.Zones) < zonesForZoneTolerance {
		return fmt.Errorf("seed %q has fewer than %d zones, so control planes there cannot survive the loss of one", seed.Name,
			zonesForZoneTolerance)
	}
	for _, restriction := range shoot.Spec.AccessRestrictions {
		if !supports(seed, restriction.Name) {
			return fmt.Errorf("seed %q does not support the access restriction %q", seed.Name, restriction.Name)
		}
	}
	return nil
}

// selects checks that a selector selects a seed.
func selects(selector *corev1beta1.SeedSelector, seed *corev1beta1.Seed) error {
	byLabels, err := metav1.LabelSelectorAsSelector(&selector.LabelSelector)
	if err != nil {
		return err
	}
	if !byLabels.Matches(labels.Set(seed.Labels)) {
		return fmt.Errorf("the labels of seed %q do not match", seed.Name)
	}
	if !selectsProvider(selector, seed) {
		return fmt.Errorf("providerTypes does not contain %q, the type of seed %q", seed.Spec.Provider.Type, seed.Name)
	}
	return nil
}

// selectsProvider reports whether the type of a seed's provider is one of those that a selector names, or any.
func selectsProvider(selector *corev1beta1.SeedSelector, seed *corev1beta1.Seed) bool {
	types := selector.ProviderTypes
	return len(types) == 0 || slices.Contains(types, "*") || slices.Contains(types, seed.Spec.Provider.Type)
}

// failureTolerance checks that the seed of a bound shoot has the zones for its failure tolerance. Metadata of a shoot whose seed has too few can
// change all the same, so that it can be deleted.
func failureTolerance(in *input) field.ErrorList {
	if in.seed == nil || in.deleting() || !in.specChanged() || !zoneTolerant(in.shoot) || len(in.seed.Spec.Provider.Zones) >= zonesForZoneTolerance {
		return nil
	}
	path := field.NewPath("spec", "controlPlane", "highAvailability", "failureTolerance", "type")
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("seed %s has fewer than %d zones, so that the control plane cannot survive the loss of one",
		in.seed.Name, zonesForZoneTolerance))}
}

func tolerates(toleration corev1beta1.Toleration, taint corev1beta1.SeedTaint) bool {
	return toleration.Key == taint.Key && (toleration.Value == nil || taint.Value != nil && *toleration.Value == *taint.Value)
}

func zoneTolerant(shoot *corev1beta1.Shoot) bool {
	c := shoot.Spec.ControlPlane
	return c != nil && c.HighAvailability != nil && c.HighAvailability.FailureTolerance.Type == corev1beta1.FailureToleranceTypeZone
}

func supports(seed *corev1beta1.Seed, restriction string) bool {
	return slices.ContainsFunc(seed.Spec.AccessRestrictions, func(r corev1beta1.AccessRestriction) bool { return r.Name == restriction })
}

// checkSeedInDeletion refuses changes of shoots on a seed in deletion; only their deletion may be confirmed.
func checkSeedInDeletion(in *input) error {
	if in.isNew || in.seed == nil || in.seed.DeletionTimestamp == nil {
		return nil
	}
	if in.specChanged() {
		return fmt.Errorf("the spec cannot change, as seed %q is being deleted", in.seed.Name)
	}
	without := func(annotations map[string]string) map[string]string {
		out := map[string]string{}
		for key, value := range annotations {
			if key != constants.ConfirmationDeletion && key != constants.DeletionConfirmedBy {
				out[key] = value
			}
		}
		return out
	}
	if !apiequality.Semantic.DeepEqual(without(in.shoot.Annotations), without(in.old.Annotations)) {
		return fmt.Errorf("annotations cannot change, as seed %q is being deleted", in.seed.Name)
	}
	return nil
}

// seedSelector checks that a shoot which is bound already still selects its seed.
func seedSelector(in *input) field.ErrorList {
	selector := in.shoot.Spec.SeedSelector
	if in.seed == nil || selector == nil || apiequality.Semantic.DeepEqual(selector, in.old.Spec.SeedSelector) {
		return nil
	}
	path := field.NewPath("spec", "seedSelector")
	parsed, err := metav1.LabelSelectorAsSelector(&selector.LabelSelector)
	if err != nil {
		return field.ErrorList{field.Invalid(path, selector, err.Error())}
	}
	if !parsed.Matches(labels.Set(in.seed.Labels)) {
		return field.ErrorList{field.Invalid(path, selector, "must select seed "+in.seed.Name+", which the shoot is bound to")}
	}
	if !selectsProvider(selector, in.seed) {
		return field.ErrorList{field.Invalid(path.Child("providerTypes"), selector.ProviderTypes,
			"must contain the type of seed "+in.seed.Name+", which the shoot is bound to")}
	}
	return nil
}

// liveMigration refuses to move shoots without interruption unless the feature is on.
func liveMigration(in *input) field.ErrorList {
	if in.liveMigration || in.shoot.Annotations[constants.MigrationLiveMigrate] != "true" {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(constants.MigrationLiveMigrate),
		"needs the feature gate LiveControlPlaneMigration")}
}

func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, attributes authorizer.AttributesRecord) error {
	attributes.User = a.GetUserInfo()
	decision, _, err := p.Authorizer.Authorize(ctx, attributes)
	if err != nil {
		return fmt.Errorf("authorize user %q: %w", a.GetUserInfo().GetName(), err)
	}
	if decision != authorizer.DecisionAllow {
		resource := attributes.Resource
		if attributes.Subresource != "" {
			resource += "/" + attributes.Subresource
		}
		return fmt.Errorf("user %q may not %s %s", a.GetUserInfo().GetName(), attributes.Verb, resource)
	}
	return nil
}
