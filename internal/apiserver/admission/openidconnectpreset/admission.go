// Package openidconnectpreset gives new Shoots the OpenID Connect configuration that their project has for them.
package openidconnectpreset

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "OpenIDConnectPreset"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create)} }

// Plugin changes new Shoots. Reads OpenIDConnectPresets.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || !Wants(shoot) {
		return nil
	}
	presets := &settingsv1alpha1.OpenIDConnectPresetList{}
	if err := p.GardenCache.List(ctx, presets, client.InNamespace(shoot.Namespace)); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list OpenIDConnectPresets: %w", err))
	}
	var candidates []Candidate
	for i := range presets.Items {
		candidates = append(candidates, Candidate{presets.Items[i].Name, &presets.Items[i].Spec})
	}
	if err := Apply(shoot, candidates); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// structuredOnly is the version of Kubernetes from which a Shoot cannot have such a configuration.
var structuredOnly = version.MustParseGeneric("1.32")

// Wants reports whether a Shoot can have a preset: it has no authentication configuration of its own, and its Kubernetes version
// supports one.
func Wants(shoot *corev1beta1.Shoot) bool {
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server != nil && (server.OIDCConfig != nil || server.StructuredAuthentication != nil) {
		return false
	}
	v, err := version.ParseGeneric(shoot.Spec.Kubernetes.Version)
	return err == nil && v.LessThan(structuredOnly)
}

// Candidate is a preset with its name.
type Candidate struct {
	Name string
	Spec *settingsv1alpha1.OpenIDConnectPresetSpec
}

// Apply gives a Shoot the preset of the greatest weight among those that select it; of two with the same, the first by name.
func Apply(shoot *corev1beta1.Shoot, candidates []Candidate) error {
	var fitting []Candidate
	for _, candidate := range candidates {
		selects, err := Selects(candidate.Spec.ShootSelector, shoot.Labels)
		if err != nil {
			return fmt.Errorf("shootSelector of preset %q: %w", candidate.Name, err)
		}
		if selects {
			fitting = append(fitting, candidate)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	best := slices.MinFunc(fitting, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Spec.Weight, a.Spec.Weight), cmp.Compare(a.Name, b.Name))
	})
	server, oidc := &best.Spec.Server, &corev1beta1.OIDCConfig{}
	clientID, issuer := server.ClientID, server.IssuerURL
	oidc.ClientID, oidc.IssuerURL = &clientID, &issuer
	oidc.CABundle, oidc.GroupsClaim, oidc.GroupsPrefix = server.CABundle, server.GroupsClaim, server.GroupsPrefix
	oidc.UsernameClaim, oidc.UsernamePrefix = server.UsernameClaim, server.UsernamePrefix
	oidc.RequiredClaims, oidc.SigningAlgs = maps.Clone(server.RequiredClaims), slices.Clone(server.SigningAlgs)
	if auth := best.Spec.Client; auth != nil {
		oidc.ClientAuthentication = &corev1beta1.OpenIDConnectClientAuthentication{Secret: auth.Secret, ExtraConfig: maps.Clone(auth.ExtraConfig)}
	}
	if shoot.Spec.Kubernetes.KubeAPIServer == nil {
		shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
	}
	shoot.Spec.Kubernetes.KubeAPIServer.OIDCConfig = oidc.DeepCopy()
	return nil
}

// Selects reports whether a selector of a preset matches labels. No selector matches all.
func Selects(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(set)), err
}
