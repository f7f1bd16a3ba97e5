// Package exposureclass keeps ExposureClasses while Shoots refer to them.
//
// Reads ExposureClasses and Shoots; writes the finalizer of ExposureClasses. Source: concepts.txt, "ExposureClass Controller".
package exposureclass

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/index"
)

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	return guard.Add(mgr, "exposureclass", concurrentSyncs, &corev1beta1.ExposureClass{}, guard.Use{
		User: &corev1beta1.Shoot{}, Users: &corev1beta1.ShootList{},
		Of: func(user client.Object) []reconcile.Request {
			name := user.(*corev1beta1.Shoot).Spec.ExposureClassName //nolint:forcetypeassert // the kind of the User
			if name == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: *name}}}
		},
		By: func(class client.Object) []client.ListOption {
			return []client.ListOption{client.MatchingFields{index.ExposureClass: class.GetName()}}
		},
	})
}
