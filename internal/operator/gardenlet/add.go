// Package gardenlet deploys the gardenlets of seeds that are not there yet.
//
// It reads Gardenlets, Seeds and Secrets in the namespace "garden" of the virtual garden, and the Garden in the runtime cluster. In the cluster
// that becomes the seed (the runtime cluster, or one that a kubeconfig is for) it writes what the chart of the gardenlet has. In the virtual garden
// it writes bootstrap tokens and the condition SeedRegistered, and in the end deletes the token and the Secret with the kubeconfig, and clears the
// reference to it. In the ConfigMap gardenlet-placements of the runtime cluster it records which gardenlet belongs there, and which do not.
//
// Once the Seed exists, the gardenlet updates itself. When a Gardenlet is deleted nothing happens: neither the gardenlet nor its Seed are deleted.
package gardenlet

import (
	"context"

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
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/pkg/destination"
)

// Values are what the controller works with.
type Values struct {
	// Virtual is the virtual garden. Its configuration has the CA of the garden, which gardenlets trust.
	Virtual cluster.Cluster
	// Version is that of the operator. Image is its image with all processes of Gardener, for Gardenlets with a chart of this version that do not name
	// another.
	Version, Image string
	// ImageVectorOverwrite and ComponentImageVectorOverwrites are the files of the operator itself, as text, for Gardenlets that do not have
	// their own. Empty for none.
	ImageVectorOverwrite, ComponentImageVectorOverwrites string
	// Blocked returns why the operator must not connect to a host, with charts or as the cluster of a kubeconfig, or "". Nil blocks what is blocked
	// for control planes of shoots: tests have servers on the loopback interface.
	Blocked func(host string) string
	// ConcurrentSyncs is how many are reconciled at once.
	ConcurrentSyncs int
	// Clock is for conditions and certificates.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	if v.Blocked == nil {
		v.Blocked = destination.Host
	}
	toGardenlet := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, seed *corev1beta1.Seed) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.Name}}}
	})
	return builder.ControllerManagedBy(mgr).Named("gardenlet").
		// The controller is added again when the virtual garden is created again.
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, SkipNameValidation: new(true)}).
		// Operations that are requested by an annotation raise the generation.
		WatchesRawSource(source.Kind(v.Virtual.GetCache(), &seedmanagementv1alpha1.Gardenlet{},
			&handler.TypedEnqueueRequestForObject[*seedmanagementv1alpha1.Gardenlet]{},
			predicate.TypedFuncs[*seedmanagementv1alpha1.Gardenlet]{
				UpdateFunc: func(e event.TypedUpdateEvent[*seedmanagementv1alpha1.Gardenlet]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation
				},
				DeleteFunc: func(event.TypedDeleteEvent[*seedmanagementv1alpha1.Gardenlet]) bool { return false },
			})).
		// The gardenlet that was deployed has registered its Seed.
		WatchesRawSource(source.Kind(v.Virtual.GetCache(), &corev1beta1.Seed{}, toGardenlet, predicate.TypedFuncs[*corev1beta1.Seed]{
			UpdateFunc: func(event.TypedUpdateEvent[*corev1beta1.Seed]) bool { return false },
			DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
		})).
		Complete(&reconciler{
			Values: v, virtualCache: v.Virtual.GetClient(), virtualAPI: v.Virtual.GetAPIReader(),
			runtimeCache: mgr.GetClient(), runtimeAPI: mgr.GetAPIReader(), runtimeConfig: mgr.GetConfig(), charts: &chart.Puller{Blocked: v.Blocked},
		})
}
