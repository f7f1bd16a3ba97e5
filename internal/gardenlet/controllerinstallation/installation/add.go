// Package installation installs extensions in a seed.
//
// It reads ControllerInstallations of the seed and what they refer to in the garden. For each it writes a namespace, an access to the
// garden, and a ManagedResource with the objects of the Helm chart in the seed, and the conditions Valid and Installed in the garden.
// Source: concepts.txt, gardenlet, ControllerInstallation Controller, "Main" reconciler.
package installation

import (
	"context"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/chart"
)

// Label is on a ManagedResource and names its ControllerInstallation.
const Label = "controllerinstallation-name"

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is where the ControllerInstallations are.
	Garden cluster.Cluster
	// GardenConfig is how extensions reach the garden: its address and its authority.
	GardenConfig *rest.Config
	// SeedVersion tells the version of the seed.
	SeedVersion discovery.ServerVersionInterface
	// Version is that of the gardenlet.
	Version string
	// FeatureGates are those of the gardenlet, for the charts.
	FeatureGates map[string]bool
	// ConcurrentSyncs is how many are worked on at once.
	ConcurrentSyncs int
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	// When it goes, the next step of the deletion can be taken.
	toInstallation := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if name := obj.GetLabels()[Label]; name != "" {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
		}
		return nil
	})
	return builder.ControllerManagedBy(mgr).Named("controllerinstallation").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// A change of the registration or of its deployment is one of the spec, too: the references have versions.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.TypedEnqueueRequestForObject[*corev1beta1.ControllerInstallation]{},
			predicate.TypedFuncs[*corev1beta1.ControllerInstallation]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.ControllerInstallation]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
				},
			})).
		Watches(&resourcesv1alpha1.ManagedResource{}, toInstallation, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		Complete(&reconciler{
			Values: v, gardenClient: v.Garden.GetClient(), live: v.Garden.GetAPIReader(), seedClient: mgr.GetClient(), charts: &chart.Puller{},
		})
}
