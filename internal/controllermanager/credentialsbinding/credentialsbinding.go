// Package credentialsbinding keeps CredentialsBindings while Shoots use them.
//
// Reads CredentialsBindings and Shoots; writes the finalizer of CredentialsBindings. The objects that bindings refer to are left to
// package credentials. Source: concepts.txt, "CredentialsBinding Controller".
package credentialsbinding

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many CredentialsBindings are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return guard.Add(mgr, guard.Values{
		Name: "credentialsbinding", ConcurrentSyncs: v.ConcurrentSyncs,
		Object: &securityv1alpha1.CredentialsBinding{}, Users: []client.Object{&corev1beta1.Shoot{}},
	})
}
