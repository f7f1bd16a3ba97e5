// Package namespacedcloudprofilevalidator checks NamespacedCloudProfiles against their parents.
package namespacedcloudprofilevalidator

import (
	"context"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	apiserverinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/features"
	"gardener.cloud/gardener/internal/validation/core"
)

// Name is the name of the plugin.
const Name = "NamespacedCloudProfileValidator"

// verbRaiseLimits is needed for a limit above that of the parent. CustomVerbAuthorizer, which guards other fields, does not read the parent.
const verbRaiseLimits = "raise-spec-limits"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clock.RealClock{}}, nil
	})
}

// Plugin checks NamespacedCloudProfiles, and authorizes limits above those of the parent CloudProfile, which it reads.
type Plugin struct {
	*admission.Handler
	initializer.Base
	clock clock.PassiveClock
	// options are the feature gates that validation depends on.
	options core.Options
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ apiserverinitializer.WantsFeatures = &Plugin{}
)

// InspectFeatureGates implements the interface of plugins that depend on feature gates.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.options = core.Options{
		CloudProfileCapabilities:       gates.Enabled(features.CloudProfileCapabilities),
		VersionClassificationLifecycle: gates.Enabled(features.VersionClassificationLifecycle),
	}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	profile, ok := a.GetObject().(*corev1beta1.NamespacedCloudProfile)
	if !ok || a.GetSubresource() != "" || profile.DeletionTimestamp != nil {
		return nil
	}
	old, ok := a.GetOldObject().(*corev1beta1.NamespacedCloudProfile)
	switch {
	case !ok:
		old = &corev1beta1.NamespacedCloudProfile{}
	case apiequality.Semantic.DeepEqual(profile.Spec, old.Spec):
		return nil
	}
	parent := &corev1beta1.CloudProfile{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: profile.Spec.Parent.Name}, parent); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the parent, CloudProfile %q, cannot be read: %v", profile.Spec.Parent.Name, err))
	}
	if err := checkTypes(&profile.Spec, old, &parent.Spec); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := checkKubernetes(&profile.Spec, &old.Spec, &parent.Spec, p.clock.Now()); err != nil {
		return err
	}
	if errs := checkImages(&profile.Spec, &old.Spec, &parent.Spec, p.options, p.clock.Now()); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if errs := checkMerged(&profile.Spec, &parent.Spec, p.options, p.clock.Now()); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if raisesLimits(&profile.Spec, &old.Spec, &parent.Spec) {
		return p.AuthorizeVerb(ctx, a, verbRaiseLimits, fmt.Sprintf(
			"spec.limits.maxNodesTotal: user %q may not allow more nodes than the parent", a.GetUserInfo().GetName()))
	}
	return nil
}

// raisesLimits reports whether a profile newly allows more nodes than its parent.
func raisesLimits(profile, old *corev1beta1.NamespacedCloudProfileSpec, parent *corev1beta1.CloudProfileSpec) bool {
	limit, most := maxNodes(profile.Limits), maxNodes(parent.Limits)
	unchanged := profile.Parent == old.Parent && ptr.Equal(limit, maxNodes(old.Limits))
	return limit != nil && most != nil && *limit > *most && !unchanged
}

func maxNodes(limits *corev1beta1.Limits) *int32 {
	if limits == nil {
		return nil
	}
	return limits.MaxNodesTotal
}
