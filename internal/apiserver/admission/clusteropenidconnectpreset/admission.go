// Package clusteropenidconnectpreset gives new Shoots the OpenID Connect configuration that operators have for their project. That of
// the project itself comes first.
package clusteropenidconnectpreset

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/openidconnectpreset"
)

// Name is the name of the plugin.
const Name = "ClusterOpenIDConnectPreset"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create)} }

// Plugin changes new Shoots. Reads ClusterOpenIDConnectPresets and Projects.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || !openidconnectpreset.Wants(shoot) {
		return nil
	}
	if err := p.apply(ctx, shoot); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func (p *Plugin) apply(ctx context.Context, shoot *corev1beta1.Shoot) error {
	presets := &settingsv1alpha1.ClusterOpenIDConnectPresetList{}
	if err := p.GardenCache.List(ctx, presets); err != nil || len(presets.Items) == 0 {
		return err
	}
	projects := &corev1beta1.ProjectList{}
	if err := p.GardenCache.List(ctx, projects, client.MatchingFields{"spec.namespace": shoot.Namespace}); err != nil || len(projects.Items) == 0 {
		return err
	}
	var candidates []openidconnectpreset.Candidate
	for i := range presets.Items {
		preset := &presets.Items[i]
		selects, err := openidconnectpreset.Selects(preset.Spec.ProjectSelector, projects.Items[0].Labels)
		if err != nil {
			return fmt.Errorf("projectSelector of preset %q: %w", preset.Name, err)
		}
		if selects {
			candidates = append(candidates, openidconnectpreset.Candidate{Name: preset.Name, Spec: &preset.Spec.OpenIDConnectPresetSpec})
		}
	}
	return openidconnectpreset.Apply(shoot, candidates)
}
