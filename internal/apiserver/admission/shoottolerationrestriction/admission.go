// Package shoottolerationrestriction restricts the taints of seeds that a Shoot may tolerate to those that its Project or the
// configuration of the plugin list. It also adds the tolerations that all Shoots get.
package shoottolerationrestriction

import (
	"context"
	"fmt"
	"io"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/config/admission/shoottolerationrestriction/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the plugin.
const Name = "ShootTolerationRestriction"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(file io.Reader) (admission.Interface, error) {
		configuration, err := configfile.Kind[v1alpha1.Configuration]{
			AddToScheme: v1alpha1.AddToScheme, Validate: config.ValidateShootTolerationRestriction,
		}.From(file)
		if err != nil {
			return nil, err
		}
		return New(configuration), nil
	})
}

// New returns the plugin.
func New(configuration *v1alpha1.Configuration) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), config: configuration}
}

// Plugin adds and checks tolerations of Shoots. Reads Projects.
type Plugin struct {
	*admission.Handler
	initializer.Base
	config *v1alpha1.Configuration
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Admit implements admission.MutationInterface: a new Shoot gets the tolerations that all have, but for keys that it tolerates anyway.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return nil
	}
	project, err := p.ofProject(ctx, shoot.Namespace)
	if err != nil {
		return err
	}
	for _, toleration := range slices.Concat(project.Defaults, p.config.Defaults) {
		if !slices.ContainsFunc(shoot.Spec.Tolerations, func(t corev1beta1.Toleration) bool { return t.Key == toleration.Key }) {
			shoot.Spec.Tolerations = append(shoot.Spec.Tolerations, *toleration.DeepCopy())
		}
	}
	return nil
}

// Validate implements admission.ValidationInterface: what a Shoot newly tolerates must be listed.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok {
		return nil
	}
	var before []corev1beta1.Toleration
	if old, ok := a.GetOldObject().(*corev1beta1.Shoot); ok {
		before = old.Spec.Tolerations
	}
	if apiequality.Semantic.DeepEqual(before, shoot.Spec.Tolerations) {
		return nil
	}
	project, err := p.ofProject(ctx, shoot.Namespace)
	if err != nil {
		return err
	}
	errs := check(shoot.Spec.Tolerations, before, slices.Concat(project.Whitelist, p.config.Whitelist))
	if err := errs.ToAggregate(); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// ofProject returns what the Project of a namespace says about tolerations.
func (p *Plugin) ofProject(ctx context.Context, namespace string) (corev1beta1.ProjectTolerations, error) {
	projects := &corev1beta1.ProjectList{}
	if err := p.GardenCache.List(ctx, projects, client.MatchingFields{"spec.namespace": namespace}); err != nil {
		return corev1beta1.ProjectTolerations{}, apierrors.NewInternalError(fmt.Errorf("find the Project of namespace %q: %w", namespace, err))
	}
	for i := range projects.Items {
		if tolerations := projects.Items[i].Spec.Tolerations; tolerations != nil {
			return *tolerations, nil
		}
	}
	return corev1beta1.ProjectTolerations{}, nil
}

// check returns an error for each toleration that is new and not listed. One that is listed without a value may have any.
func check(tolerations, before, whitelist []corev1beta1.Toleration) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range tolerations {
		same := func(t corev1beta1.Toleration) bool { return apiequality.Semantic.DeepEqual(t, toleration) }
		allows := func(t corev1beta1.Toleration) bool { return t.Key == toleration.Key && t.Value == nil || same(t) }
		if !slices.ContainsFunc(before, same) && !slices.ContainsFunc(whitelist, allows) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "tolerations").Index(i), "this toleration is only for projects that have it in their whitelist"))
		}
	}
	return errs
}
