// Package shootmanagedseed protects Shoots that are Seeds: from deletion, and from changes that break the Seed.
package shootmanagedseed

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "ShootManagedSeed"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Update, admission.Delete)}
}

// Plugin checks Shoots. Reads ManagedSeeds and Seeds.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1beta1.SchemeGroupVersion.WithResource("shoots").GroupResource() || a.GetSubresource() != "" {
		return nil
	}
	managedSeeds, opts := &seedmanagementv1alpha1.ManagedSeedList{}, []client.ListOption{client.InNamespace(a.GetNamespace())}
	if a.GetOperation() == admission.Delete { // a deletion cannot be undone: one that was just created counts
		opts = append(opts, initializer.Fresh)
	}
	if err := p.GardenCache.List(ctx, managedSeeds, opts...); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list ManagedSeeds in namespace %q: %w", a.GetNamespace(), err))
	}
	for i := range managedSeeds.Items {
		managedSeed := &managedSeeds.Items[i]
		// Without a name all Shoots in the namespace are to be deleted.
		if managedSeed.Spec.Shoot == nil || a.GetName() != "" && managedSeed.Spec.Shoot.Name != a.GetName() {
			continue
		}
		if a.GetOperation() == admission.Delete {
			return admission.NewForbidden(a, fmt.Errorf("the Shoot %q is the Seed of ManagedSeed %q: delete that first", managedSeed.Spec.Shoot.Name, managedSeed.Name))
		}
		if err := p.validateUpdate(ctx, a, managedSeed); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plugin) validateUpdate(ctx context.Context, a admission.Attributes, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || shoot.DeletionTimestamp != nil {
		return nil
	}
	old, ok := a.GetOldObject().(*corev1beta1.Shoot)
	if !ok {
		return nil
	}
	var (
		errs field.ErrorList
		spec = field.NewPath("spec")
	)
	if addons := shoot.Spec.Addons; addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled {
		errs = append(errs, field.Invalid(spec.Child("addons", "nginxIngress", "enabled"), true, "must be false, as a Seed has its own ingress controller"))
	}
	if vpa := shoot.Spec.Kubernetes.VerticalPodAutoscaler; vpa == nil || !vpa.Enabled {
		errs = append(errs, field.Invalid(spec.Child("kubernetes", "verticalPodAutoscaler", "enabled"), false, "must be true, as a Seed needs it"))
	}
	if removed := zones(old).Difference(zones(shoot)); removed.Len() > 0 {
		seed := &corev1beta1.Seed{}
		switch err := p.GardenCache.Get(ctx, client.ObjectKey{Name: managedSeed.Name}, seed); {
		case err != nil && !apierrors.IsNotFound(err):
			return apierrors.NewInternalError(fmt.Errorf("read Seed %q: %w", managedSeed.Name, err))
		case err == nil:
			if used := removed.Intersection(sets.New(seed.Spec.Provider.Zones...)); used.Len() > 0 {
				errs = append(errs, field.Invalid(spec.Child("provider", "workers"), sets.List(used), "the Seed uses these zones: no worker has them any more"))
			}
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func zones(shoot *corev1beta1.Shoot) sets.Set[string] {
	out := sets.New[string]()
	for _, worker := range shoot.Spec.Provider.Workers {
		out.Insert(worker.Zones...)
	}
	return out
}
