// Package cloudprofile keeps CloudProfiles while Shoots or NamespacedCloudProfiles use them.
//
// Reads CloudProfiles, Shoots and NamespacedCloudProfiles; writes the finalizer of CloudProfiles. Source: concepts.txt, "CloudProfile
// Controller".
package cloudprofile

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many CloudProfiles are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return guard.Add(mgr, guard.Values{
		Name: "cloudprofile", ConcurrentSyncs: v.ConcurrentSyncs,
		Object: &corev1beta1.CloudProfile{}, Users: []client.Object{&corev1beta1.Shoot{}, &corev1beta1.NamespacedCloudProfile{}},
	})
}
