// Package bastion completes Bastions from their Shoot: the seed, the provider type, the owner reference and the user who created them.
package bastion

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "Bastion"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin completes Bastions. Reads Shoots.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	bastion, ok := a.GetObject().(*operationsv1alpha1.Bastion)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	if old, ok := a.GetOldObject().(*operationsv1alpha1.Bastion); ok && old.DeletionTimestamp != nil {
		// Finalizers are removed, also when the Shoot is gone or on another seed by now.
		bastion.Spec.SeedName, bastion.Spec.ProviderType = old.Spec.SeedName, old.Spec.ProviderType
		return nil
	}
	invalid := func(err *field.Error) error {
		return apierrors.NewInvalid(operationsv1alpha1.SchemeGroupVersion.WithKind("Bastion").GroupKind(), bastion.Name, field.ErrorList{err})
	}
	path := field.NewPath("spec", "shootRef", "name")
	if bastion.Spec.ShootRef.Name == "" {
		return invalid(field.Required(path, "must be set"))
	}
	key := client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}
	shoot := &corev1beta1.Shoot{}
	err := p.GardenCache.Get(ctx, key, shoot)
	switch {
	case apierrors.IsNotFound(err):
		return invalid(field.Invalid(path, key.Name, "Shoot not found"))
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("read Shoot %q: %w", key, err))
	case a.GetOperation() == admission.Create && shoot.DeletionTimestamp != nil:
		return invalid(field.Invalid(path, key.Name, "the Shoot is being deleted"))
	case shoot.Spec.SeedName == nil:
		return invalid(field.Invalid(path, key.Name, "the Shoot is not scheduled yet"))
	}
	seedName, provider := *shoot.Spec.SeedName, shoot.Spec.Provider.Type
	bastion.Spec.SeedName, bastion.Spec.ProviderType = &seedName, &provider
	if a.GetOperation() == admission.Create {
		metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, constants.GardenCreatedBy, a.GetUserInfo().GetName())
	}
	own(bastion, shoot)
	return nil
}

// own makes a Shoot the controller of a Bastion. Other owner references stay: validation refuses a second controller.
func own(bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) {
	owner := *metav1.NewControllerRef(shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	for i, ref := range bastion.OwnerReferences {
		if ref.UID == owner.UID {
			bastion.OwnerReferences[i] = owner
			return
		}
	}
	bastion.OwnerReferences = append(bastion.OwnerReferences, owner)
}
