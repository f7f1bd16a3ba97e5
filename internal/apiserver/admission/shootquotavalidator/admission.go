// Package shootquotavalidator keeps Shoots within the Quotas of their credentials.
package shootquotavalidator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// Name is the name of the plugin.
const Name = "ShootQuotaValidator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clock.RealClock{}}, nil
	})
}

// Plugin checks Shoots against Quotas. Reads bindings and Quotas and, where there are Quotas, the shoots that share them with their
// profiles.
type Plugin struct {
	*admission.Handler
	initializer.Base
	clock clock.PassiveClock
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.DeletionTimestamp != nil {
		return nil
	}
	old, isUpdate := a.GetOldObject().(*corev1beta1.Shoot)
	checkResources := !isUpdate || needsMore(&shoot.Spec, &old.Spec)
	checkLifetime := expirationChanges(shoot, old)
	if !checkResources && !checkLifetime {
		return nil
	}
	own, err := p.bindingOf(ctx, shoot)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if own == nil || len(own.quotas) == 0 {
		return nil
	}
	var shortest *int32
	for _, ref := range own.quotas {
		quota := &corev1beta1.Quota{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, quota); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read quota %q: %w", ref.Name, err))
		}
		if days := quota.Spec.ClusterLifetimeDays; days != nil && (shortest == nil || *days < *shortest) {
			shortest = days
		}
		if !checkResources {
			continue
		}
		exceeded, err := p.exceeded(ctx, shoot, own, quota)
		if errors.Is(err, errType) {
			return admission.NewForbidden(a, err)
		}
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if len(exceeded) > 0 {
			return admission.NewForbidden(a, fmt.Errorf("quota %q does not leave enough %s", quota.Name, strings.Join(exceeded, ", ")))
		}
	}
	if checkLifetime && shortest != nil {
		if err := lifetime(shoot, *shortest, p.clock.Now()); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// expirationChanges reports whether the expiration of a shoot must be checked, given the shoot from before; nil if it is created. With other
// credentials, other quotas apply to an expiration that stays the same.
func expirationChanges(shoot, old *corev1beta1.Shoot) bool {
	expiration := shoot.Annotations[constants.ShootExpirationTimestamp]
	if old == nil {
		return expiration != ""
	}
	return expiration != old.Annotations[constants.ShootExpirationTimestamp] || expiration != "" && bindingChanges(&shoot.Spec, &old.Spec)
}

// bindingChanges reports whether a shoot gets other credentials.
func bindingChanges(spec, old *corev1beta1.ShootSpec) bool {
	return !apiequality.Semantic.DeepEqual(spec.CredentialsBindingName, old.CredentialsBindingName) ||
		!apiequality.Semantic.DeepEqual(spec.SecretBindingName, old.SecretBindingName)
}

// lifetime checks that the expiration of a shoot is no later than its quotas allow.
func lifetime(shoot *corev1beta1.Shoot, days int32, now time.Time) error {
	expires, err := time.Parse(time.RFC3339, shoot.Annotations[constants.ShootExpirationTimestamp])
	if err != nil {
		return fmt.Errorf("annotation %s must be a time like %s: it can be postponed, not removed", constants.ShootExpirationTimestamp,
			now.Format(time.RFC3339))
	}
	if expires.After(now.AddDate(0, 0, int(days))) {
		return fmt.Errorf("the expiration can be at most %d days from now", days)
	}
	return nil
}

// needsMore reports whether a change may use more of what quotas count.
func needsMore(spec, old *corev1beta1.ShootSpec) bool {
	if !apiequality.Semantic.DeepEqual(spec.Addons, old.Addons) || bindingChanges(spec, old) {
		return true
	}
	before := map[string]*corev1beta1.Worker{}
	for i := range old.Provider.Workers {
		before[old.Provider.Workers[i].Name] = &old.Provider.Workers[i]
	}
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		was := before[worker.Name]
		if was == nil || worker.Machine.Type != was.Machine.Type || worker.Maximum > was.Maximum ||
			!apiequality.Semantic.DeepEqual(worker.Volume, was.Volume) || !apiequality.Semantic.DeepEqual(worker.DataVolumes, was.DataVolumes) {
			return true
		}
	}
	return false
}

// binding is the part of a SecretBinding or CredentialsBinding that quotas depend on.
type binding struct {
	isSecretBinding bool
	namespace, name string
	// credentials are those that the binding refers to.
	credentials corev1.ObjectReference
	quotas      []corev1.ObjectReference
}

func ofSecretBinding(b *corev1beta1.SecretBinding) binding {
	return binding{
		isSecretBinding: true, namespace: b.Namespace, name: b.Name, quotas: b.Quotas,
		credentials: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: b.SecretRef.Namespace, Name: b.SecretRef.Name},
	}
}

func ofCredentialsBinding(b *securityv1alpha1.CredentialsBinding) binding {
	return binding{namespace: b.Namespace, name: b.Name, quotas: b.Quotas, credentials: b.CredentialsRef}
}

func (b *binding) usedBy(shoot *corev1beta1.Shoot) bool {
	name := shoot.Spec.CredentialsBindingName
	if b.isSecretBinding {
		name = shoot.Spec.SecretBindingName
	}
	return name != nil && *name == b.name
}

// bindingOf returns the binding of a shoot; nil if it has none.
func (p *Plugin) bindingOf(ctx context.Context, shoot *corev1beta1.Shoot) (*binding, error) {
	if name := shoot.Spec.CredentialsBindingName; name != nil && *name != "" {
		found := &securityv1alpha1.CredentialsBinding{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, found); err != nil {
			return nil, client.IgnoreNotFound(err) // that it exists is checked by another plugin
		}
		b := ofCredentialsBinding(found)
		return &b, nil
	}
	if name := shoot.Spec.SecretBindingName; name != nil && *name != "" {
		found := &corev1beta1.SecretBinding{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, found); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		b := ofSecretBinding(found)
		return &b, nil
	}
	return nil, nil
}

// exceeded returns the metrics of which the shoot, and those that share the quota with it, use more than the quota has.
func (p *Plugin) exceeded(ctx context.Context, shoot *corev1beta1.Shoot, own *binding, quota *corev1beta1.Quota) ([]string, error) {
	profile, err := cloudprofile.Spec(ctx, p.GardenCache, shoot)
	if err != nil || profile == nil {
		return nil, err
	}
	if err := p.checkTypes(ctx, shoot, quota); err != nil {
		return nil, err
	}
	used, err := resources(&shoot.Spec, profile)
	if err != nil {
		return nil, err
	}
	sharing, err := p.sharing(ctx, shoot, own, quota)
	if err != nil {
		return nil, err
	}
	for i := range sharing {
		profile, err := cloudprofile.Spec(ctx, p.GardenCache, &sharing[i])
		if err != nil || profile == nil {
			return nil, err
		}
		more, err := resources(&sharing[i].Spec, profile)
		if err != nil {
			return nil, err
		}
		add(used, more)
	}
	return over(used, quota.Spec.Metrics), nil
}

// errType is that a shoot has a type that a quota cannot count.
var errType = errors.New("the quota counts only types of the CloudProfile")

// checkTypes refuses types of machines and volumes that only a NamespacedCloudProfile has, if the quota counts what they have: members of the
// project write that, and could say that a type has less than it has.
func (p *Plugin) checkTypes(ctx context.Context, shoot *corev1beta1.Shoot, quota *corev1beta1.Quota) error {
	ref := cloudprofile.Reference(&shoot.Spec)
	if ref == nil || ref.Kind != constants.CloudProfileReferenceKindNamespacedCloudProfile || !countsTypes(quota.Spec.Metrics) {
		return nil
	}
	own, parent := &corev1beta1.NamespacedCloudProfile{}, &corev1beta1.CloudProfile{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, own); err != nil {
		return fmt.Errorf("read NamespacedCloudProfile %q: %w", ref.Name, err)
	}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: own.Spec.Parent.Name}, parent); err != nil {
		return fmt.Errorf("read CloudProfile %q: %w", own.Spec.Parent.Name, err)
	}
	for i := range shoot.Spec.Provider.Workers {
		worker, path := &shoot.Spec.Provider.Workers[i], field.NewPath("spec", "provider", "workers").Index(i)
		if cloudprofile.FindMachineType(&parent.Spec, worker.Machine.Type) == nil {
			return fmt.Errorf("%w %q: %s is %q", errType, parent.Name, path.Child("machine", "type"), worker.Machine.Type)
		}
		if worker.Volume != nil && worker.Volume.Type != nil && cloudprofile.FindVolumeType(&parent.Spec, *worker.Volume.Type) == nil {
			return fmt.Errorf("%w %q: %s is %q", errType, parent.Name, path.Child("volume", "type"), *worker.Volume.Type)
		}
	}
	return nil
}

// sharing returns the other shoots that a quota counts as well: those of the project or of the same credentials, by its scope.
func (p *Plugin) sharing(
	ctx context.Context, shoot *corev1beta1.Shoot, own *binding, quota *corev1beta1.Quota) ([]corev1beta1.Shoot, error,
) {
	perProject := quota.Spec.Scope.Kind == "Project"
	var in []client.ListOption
	if perProject {
		in = append(in, client.InNamespace(shoot.Namespace))
	}
	secretBindings, credentialsBindings := &corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}
	if err := errors.Join(p.GardenCache.List(ctx, secretBindings, in...), p.GardenCache.List(ctx, credentialsBindings, in...)); err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	byNamespace := map[string][]binding{}
	counts := func(b binding) {
		refers := false
		for _, ref := range b.quotas {
			refers = refers || ref.Namespace == quota.Namespace && ref.Name == quota.Name
		}
		same := b.credentials.Kind == own.credentials.Kind && b.credentials.Namespace == own.credentials.Namespace &&
			b.credentials.Name == own.credentials.Name
		if refers && (perProject || same) {
			byNamespace[b.namespace] = append(byNamespace[b.namespace], b)
		}
	}
	for i := range secretBindings.Items {
		counts(ofSecretBinding(&secretBindings.Items[i]))
	}
	for i := range credentialsBindings.Items {
		counts(ofCredentialsBinding(&credentialsBindings.Items[i]))
	}
	var out []corev1beta1.Shoot
	for namespace, bindings := range byNamespace {
		shoots := &corev1beta1.ShootList{}
		if err := p.GardenCache.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list shoots: %w", err)
		}
		for i := range shoots.Items {
			other := &shoots.Items[i]
			if other.Namespace == shoot.Namespace && other.Name == shoot.Name {
				continue
			}
			for j := range bindings {
				if bindings[j].usedBy(other) {
					out = append(out, *other)
					break
				}
			}
		}
	}
	return out, nil
}
