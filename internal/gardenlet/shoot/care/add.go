// Package care reports the health of the control planes of a seed.
//
// It reads Shoots in the garden, the objects of their control planes in the seed, and the API servers of the shoots. It writes the
// conditions and constraints in the status of Shoots and deletes stuck pods of control planes and system components. If it is configured to,
// it changes webhooks in shoots that block operations. Each condition is decided in the file of its name: controlplane.go,
// observability.go, systemcomponents.go and nodes.go; constraints are decided in constraints.go. Source: concepts.txt, gardenlet, Shoot
// Controller, "Care" Reconciler.
package care

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout is the end of one pass, which waits for nothing but answers of API servers.
const passTimeout = time.Minute

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Shoots. Its cache also has the ControllerInstallations of the seed and all ControllerRegistrations,
	// and the index of package technicalid.
	Garden cluster.Cluster
	// SeedAPI is the API server of the seed, for what is in no cache: Secrets, Leases and machines.
	SeedAPI client.Reader
	// Connect returns a client for the shoot of a kubeconfig.
	Connect func(kubeconfig []byte) (ShootClient, error)
	// Config has periods and thresholds. It is defaulted.
	Config gardenletconfigv1alpha1.ShootCareControllerConfiguration
	// Clock is for thresholds and the status.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient(), seedCache: mgr.GetClient(), shoots: shootClients{connect: v.Connect}}
	return builder.ControllerManagedBy(mgr).Named("shoot-care").
		WithOptions(controller.Options{MaxConcurrentReconciles: *v.Config.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		// The end of an operation changes which conditions are tolerated. The conditions are written here.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Shoot{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Shoot]{},
			predicate.TypedFuncs[*corev1beta1.Shoot]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
					return operationState(e.ObjectOld) != operationState(e.ObjectNew)
				},
			})).
		// The status of these decides ControlPlaneHealthy, and that of ManagedResources SystemComponentsHealthy.
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(healthChanged())).
		Watches(&druidv1alpha1.Etcd{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(healthChanged())).
		Watches(&resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(r.shootOf)).
		Complete(r)
}

// operationState is the state of the last operation, or empty if there was none.
func operationState(shoot *corev1beta1.Shoot) corev1beta1.LastOperationState {
	if last := shoot.Status.LastOperation; last != nil {
		return last.State
	}
	return ""
}

// healthChanged filters out updates of Deployments and Etcds that do not change their health.
func healthChanged() predicate.Funcs {
	health := func(object client.Object) error {
		switch o := object.(type) {
		case *appsv1.Deployment:
			return kube.DeploymentAvailable(o)
		case *druidv1alpha1.Etcd:
			return etcd.Healthy(o)
		}
		return nil
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return fmt.Sprint(health(e.ObjectOld)) != fmt.Sprint(health(e.ObjectNew))
	}}
}
