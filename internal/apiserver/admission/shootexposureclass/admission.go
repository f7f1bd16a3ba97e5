// Package shootexposureclass applies the scheduling constraints of an ExposureClass to a Shoot that refers to it, until it has a seed.
package shootexposureclass

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "ShootExposureClass"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// Plugin changes Shoots without a seed. Reads ExposureClasses.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.Spec.ExposureClassName == nil {
		return nil
	}
	// With a seed, the class stays, and another seed must fit its selector.
	if old, ok := a.GetOldObject().(*corev1beta1.Shoot); ok && (old.Spec.SeedName != nil || sameScheduling(&old.Spec, &shoot.Spec)) {
		return nil
	}
	name := *shoot.Spec.ExposureClassName
	class := &corev1beta1.ExposureClass{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		if apierrors.IsNotFound(err) {
			return admission.NewForbidden(a, fmt.Errorf("spec.exposureClassName: ExposureClass %q does not exist", name))
		}
		return apierrors.NewInternalError(fmt.Errorf("read ExposureClass %q: %w", name, err))
	}
	if class.Scheduling == nil {
		return nil
	}
	if err := merge(shoot, class.Scheduling.DeepCopy()); err != nil {
		return admission.NewForbidden(a, fmt.Errorf("ExposureClass %q: %w", name, err))
	}
	return nil
}

// sameScheduling reports whether an update changes nothing that merge depends on: others must not fail when a class is changed.
func sameScheduling(old, spec *corev1beta1.ShootSpec) bool {
	return ptr.Equal(old.ExposureClassName, spec.ExposureClassName) && apiequality.Semantic.DeepEqual(old.SeedSelector, spec.SeedSelector) &&
		apiequality.Semantic.DeepEqual(old.Tolerations, spec.Tolerations)
}

// merge adds the scheduling constraints of a class to a Shoot. It is an error if the Shoot has another value for a label of the class.
func merge(shoot *corev1beta1.Shoot, scheduling *corev1beta1.ExposureClassScheduling) error {
	if wanted := scheduling.SeedSelector; wanted != nil {
		if shoot.Spec.SeedSelector == nil {
			shoot.Spec.SeedSelector = &corev1beta1.SeedSelector{}
		}
		own := shoot.Spec.SeedSelector
		for key, value := range wanted.MatchLabels {
			if has, ok := own.MatchLabels[key]; ok && has != value {
				return fmt.Errorf("spec.seedSelector.matchLabels has %s=%s, but the class has %s", key, has, value)
			}
		}
		if len(wanted.MatchLabels) > 0 {
			all := maps.Clone(wanted.MatchLabels)
			maps.Copy(all, own.MatchLabels)
			own.MatchLabels = all
		}
		for _, expression := range wanted.MatchExpressions {
			if !slices.ContainsFunc(own.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
				return e.Key == expression.Key && e.Operator == expression.Operator && slices.Equal(e.Values, expression.Values)
			}) {
				own.MatchExpressions = append(own.MatchExpressions, expression)
			}
		}
		common, ok := commonProviders(own.ProviderTypes, wanted.ProviderTypes)
		if !ok {
			return fmt.Errorf("spec.seedSelector.providerTypes is %v, but the class has %v", own.ProviderTypes, wanted.ProviderTypes)
		}
		own.ProviderTypes = common
	}
	for _, toleration := range scheduling.Tolerations {
		if !slices.ContainsFunc(shoot.Spec.Tolerations, func(t corev1beta1.Toleration) bool { return t.Key == toleration.Key }) {
			shoot.Spec.Tolerations = append(shoot.Spec.Tolerations, toleration)
		}
	}
	return nil
}

// everyProvider in a selector selects seeds of all types.
const everyProvider = "*"

// commonProviders returns the types of seeds that both a Shoot and its class allow: another type of the Shoot must not add seeds to those of the class.
// An empty list leaves it to the other one. It is false if there is no such type.
func commonProviders(own, wanted []string) ([]string, bool) {
	switch {
	case len(wanted) == 0, len(own) > 0 && slices.Contains(wanted, everyProvider):
		return own, true
	case len(own) == 0, slices.Contains(own, everyProvider):
		return wanted, true
	}
	common := slices.DeleteFunc(slices.Clone(own), func(provider string) bool { return !slices.Contains(wanted, provider) })
	return common, len(common) > 0
}
