// Package exposureclass keeps ExposureClasses while Shoots refer to them.
//
// Reads ExposureClasses and Shoots; writes the finalizer of ExposureClasses. Source: concepts.txt, "ExposureClass Controller".
package exposureclass

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ExposureClasses are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return guard.Add(mgr, guard.Values{
		Name: "exposureclass", ConcurrentSyncs: v.ConcurrentSyncs,
		Object: &corev1beta1.ExposureClass{}, Users: []client.Object{&corev1beta1.Shoot{}},
	})
}
