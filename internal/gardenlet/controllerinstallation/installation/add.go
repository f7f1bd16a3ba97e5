// Package installation installs extensions in a seed.
//
// It reads ControllerInstallations of the seed, and in the garden the objects that they refer to. For each it writes in the seed a namespace,
// Secrets with a kubeconfig for the garden if the ControllerDeployment says so, and a ManagedResource with the objects of the Helm chart, and in
// the garden the conditions Valid and Installed. With the access to the garden it deletes its ServiceAccount there.
// Source: concepts.txt, gardenlet, ControllerInstallation Controller, "Main" reconciler.
package installation

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/component/extensionobject"
)

// Label is on a ManagedResource and names its ControllerInstallation.
const Label = "controllerinstallation-name"

// AnnotationSecretData is on a ManagedResource whose objects have data of Secrets in the garden, so that what API servers say about them is not
// for everyone who may read the ControllerInstallation.
const AnnotationSecretData = "controllerinstallation.gardener.cloud/secret-data"

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the ControllerInstallations.
	Garden cluster.Cluster
	// GardenAPI is the API server of the garden, for ControllerInstallations, ControllerDeployments, which are large, and Secrets.
	GardenAPI client.Reader
	// GardenConfig has the address and the CA of the garden, for the kubeconfigs of extensions.
	GardenConfig *rest.Config
	// SeedVersion reads the Kubernetes version of the seed.
	SeedVersion discovery.ServerVersionInterface
	// Version is the version of the gardenlet.
	Version string
	// FeatureGates are all of the gardenlet with their values, for the charts.
	FeatureGates map[string]bool
	// ConcurrentSyncs is how many are reconciled at once.
	ConcurrentSyncs int
	// Clock is for the conditions.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	// The deletion continues when the ManagedResource is deleted.
	toInstallation := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if name := obj.GetLabels()[Label]; name != "" {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
		}
		return nil
	})
	// It ends when the namespace is deleted. One that a user deletes is created again.
	toOwner := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if name, ok := strings.CutPrefix(obj.GetName(), extensionobject.NamespacePrefix); ok {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
		}
		return nil
	})
	deletions := builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	})
	return builder.ControllerManagedBy(mgr).Named("controllerinstallation").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// A change of the ControllerRegistration or ControllerDeployment changes the spec too: the references have resource versions.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.TypedEnqueueRequestForObject[*corev1beta1.ControllerInstallation]{},
			predicate.TypedFuncs[*corev1beta1.ControllerInstallation]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.ControllerInstallation]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil ||
						e.ObjectOld.Annotations[constants.PodSecurityEnforce] != e.ObjectNew.Annotations[constants.PodSecurityEnforce]
				},
			})).
		Watches(&resourcesv1alpha1.ManagedResource{}, toInstallation, deletions).
		Watches(&corev1.Namespace{}, toOwner, deletions).
		Complete(&reconciler{
			Values: v, gardenCache: v.Garden.GetClient(), seedCache: mgr.GetClient(), charts: &chart.Puller{},
		})
}
