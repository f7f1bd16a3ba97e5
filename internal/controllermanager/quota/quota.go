// Package quota keeps Quotas while SecretBindings or CredentialsBindings refer to them.
//
// Reads Quotas and bindings; writes the finalizer of Quotas. Source: concepts.txt, "Quota Controller".
package quota

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/uses"
)

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	by := func(quota client.Object) []client.ListOption {
		ref := uses.Ref{Kind: uses.Quota, Namespace: quota.GetNamespace(), Name: quota.GetName()}
		return []client.ListOption{client.MatchingFields{uses.BindingByReference: ref.Key()}}
	}
	return guard.Add(mgr, "quota", concurrentSyncs, &corev1beta1.Quota{},
		guard.Use{
			User: &corev1beta1.SecretBinding{}, Users: &corev1beta1.SecretBindingList{}, By: by,
			Of: func(user client.Object) []reconcile.Request {
				return quotas(uses.SecretBindingReferences(user.(*corev1beta1.SecretBinding))) //nolint:forcetypeassert // the kind of the User
			},
		},
		guard.Use{
			User: &securityv1alpha1.CredentialsBinding{}, Users: &securityv1alpha1.CredentialsBindingList{}, By: by,
			Of: func(user client.Object) []reconcile.Request {
				return quotas(uses.CredentialsBindingReferences(user.(*securityv1alpha1.CredentialsBinding))) //nolint:forcetypeassert // the kind of the User
			},
		})
}

// quotas returns requests for the Quotas among what a binding refers to.
func quotas(refs []uses.Ref) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range refs {
		if ref.Kind == uses.Quota {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}})
		}
	}
	return requests
}
