// Package secretbinding keeps SecretBindings while Shoots use them.
//
// Reads SecretBindings and Shoots; writes the finalizer of SecretBindings. The objects that bindings refer to are left to package
// credentials. Source: concepts.txt, "SecretBinding Controller".
package secretbinding

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many SecretBindings are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return guard.Add(mgr, guard.Values{
		Name: "secretbinding", ConcurrentSyncs: v.ConcurrentSyncs,
		Object: &corev1beta1.SecretBinding{}, Users: []client.Object{&corev1beta1.Shoot{}},
	})
}
