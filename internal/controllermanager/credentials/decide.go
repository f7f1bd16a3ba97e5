package credentials

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
)

// usage is how bindings use an object.
type usage struct {
	secretBinding, credentialsBinding bool
	providers                         sets.Set[string]
}

// mark adds the labels and finalizers for the use of an object, and removes those for other uses.
func (u usage) mark(obj *metav1.PartialObjectMetadata, kind string) {
	wasMarked := marked(obj)
	labels := map[string]string{}
	maps.Copy(labels, obj.Labels)
	set := func(label string, desired bool) {
		if desired {
			labels[label] = "true"
		} else {
			delete(labels, label)
		}
	}
	set(constants.SecretBindingReference, u.secretBinding)
	set(constants.CredentialsBindingReference, u.credentialsBinding)
	if kind != references.Quota { // another controller keeps Quotas, and they belong to no provider
		setFinalizer(obj, constants.FinalizerSecretBinding, u.secretBinding)
		setFinalizer(obj, constants.FinalizerCredentialsBinding, u.credentialsBinding)
		for label := range labels {
			// On an object that no binding has referred to, the label was set by a user, and stays.
			if provider, ok := strings.CutPrefix(label, constants.ShootProviderPrefix); ok && wasMarked && !u.providers.Has(provider) {
				delete(labels, label)
			}
		}
		for provider := range u.providers {
			// Provider types in SecretBindings are not validated.
			if label := constants.ShootProviderPrefix + provider; len(validation.IsQualifiedName(label)) == 0 {
				labels[label] = "true"
			}
		}
	}
	if len(labels) > 0 || obj.Labels != nil {
		obj.Labels = labels
	}
}

func setFinalizer(obj *metav1.PartialObjectMetadata, finalizer string, desired bool) {
	switch {
	case !desired:
		controllerutil.RemoveFinalizer(obj, finalizer)
	case obj.DeletionTimestamp == nil: // none can be added to an object that is being deleted
		controllerutil.AddFinalizer(obj, finalizer)
	}
}

// marked reports whether an object has a label or finalizer that stands for a binding.
func marked(obj client.Object) bool {
	labels := obj.GetLabels()
	return labels[constants.SecretBindingReference] != "" || labels[constants.CredentialsBindingReference] != "" ||
		controllerutil.ContainsFinalizer(obj, constants.FinalizerSecretBinding) ||
		controllerutil.ContainsFinalizer(obj, constants.FinalizerCredentialsBinding)
}
