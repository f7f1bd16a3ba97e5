// Package credentialsbinding keeps CredentialsBindings while Shoots use them.
//
// Reads CredentialsBindings and Shoots; writes the finalizer of CredentialsBindings. What bindings refer to is the business of package credentials.
// Source: concepts.txt, "CredentialsBinding Controller".
package credentialsbinding

import (
	"k8s.io/apimachinery/pkg/types"
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
	return guard.Add(mgr, "credentialsbinding", concurrentSyncs, &securityv1alpha1.CredentialsBinding{}, guard.Use{
		User: &corev1beta1.Shoot{}, Users: &corev1beta1.ShootList{},
		Of: func(user client.Object) []reconcile.Request {
			name := user.(*corev1beta1.Shoot).Spec.CredentialsBindingName
			if name == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: user.GetNamespace(), Name: *name}}}
		},
		By: func(binding client.Object) []client.ListOption {
			return []client.ListOption{
				client.InNamespace(binding.GetNamespace()), client.MatchingFields{uses.ShootByCredentialsBinding: binding.GetName()},
			}
		},
	})
}
