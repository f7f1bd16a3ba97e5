// Package secretbinding keeps SecretBindings while Shoots use them.
//
// Reads SecretBindings and Shoots; writes the finalizer of SecretBindings. What bindings refer to is the business of package credentials.
// Source: concepts.txt, "SecretBinding Controller".
package secretbinding

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/uses"
)

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	return guard.Add(mgr, "secretbinding", concurrentSyncs, &corev1beta1.SecretBinding{}, guard.Use{
		User: &corev1beta1.Shoot{}, Users: &corev1beta1.ShootList{},
		Of: func(user client.Object) []reconcile.Request {
			name := user.(*corev1beta1.Shoot).Spec.SecretBindingName //nolint:staticcheck // Shoots without a CredentialsBinding still have one
			if name == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: user.GetNamespace(), Name: *name}}}
		},
		By: func(binding client.Object) []client.ListOption {
			return []client.ListOption{
				client.InNamespace(binding.GetNamespace()), client.MatchingFields{uses.ShootBySecretBinding: binding.GetName()},
			}
		},
	})
}
