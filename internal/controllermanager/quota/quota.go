// Package quota keeps Quotas while SecretBindings or CredentialsBindings refer to them.
//
// Reads Quotas and bindings; writes the finalizer of Quotas. Source: concepts.txt, "Quota Controller".
package quota

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Quotas are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return guard.Add(mgr, guard.Values{
		Name: "quota", ConcurrentSyncs: v.ConcurrentSyncs,
		Object: &corev1beta1.Quota{}, Users: []client.Object{&corev1beta1.SecretBinding{}, &securityv1alpha1.CredentialsBinding{}},
	})
}
