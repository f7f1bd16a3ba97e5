// Package installation installs extensions in a garden.
//
// It reads Extensions, the Garden, and the Secrets and ConfigMaps of namespace garden that Extensions refer to. It writes in namespace garden of the
// runtime cluster, for each Extension, ManagedResources with the objects of its charts and with its registration, in the runtime cluster the namespace
// of the extension, the Secret with the token of its admission controller, and the condition Installed. It keeps an Extension until these objects
// are deleted.
package installation

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

// Values are what the controller works with.
type Values struct {
	// RuntimeVersion reads the Kubernetes version of the runtime cluster, for the charts.
	RuntimeVersion discovery.ServerVersionInterface
	// ConcurrentSyncs is how many Extensions are reconciled at the same time.
	ConcurrentSyncs int
	// Clock is for the condition.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	// The kinds that ManagedResources have beside those of charts. The runtime cluster does not serve all of them.
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), gardencorev1.AddToScheme(kinds), corev1beta1.AddToScheme(kinds)); err != nil {
		return err
	}
	r := &reconciler{Values: v, runtimeCache: mgr.GetClient(), runtimeAPI: mgr.GetAPIReader(), kinds: kinds, charts: &chart.Puller{}, recorder: mgr.GetEventRecorder("extension")}
	// The deletion continues when a ManagedResource is deleted. One that a user deletes is created again.
	// Creations count, as the watch may begin after such a deletion: those that are left are then seen for the first time.
	managedResources, err := kube.WhenServed(mgr, extension.ManagedResourceDefinition, source.Kind(mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, mr *resourcesv1alpha1.ManagedResource) []reconcile.Request {
			return extension.Requests(mr)
		}), predicate.TypedFuncs[*resourcesv1alpha1.ManagedResource]{
			UpdateFunc: func(event.TypedUpdateEvent[*resourcesv1alpha1.ManagedResource]) bool { return false },
		}))
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).Named("extension").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&operatorv1alpha1.Extension{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*operatorv1alpha1.Extension), e.ObjectNew.(*operatorv1alpha1.Extension) //nolint:forcetypeassert // the kind that is watched
			return before.Generation != after.Generation || requiredRuntime(before) != requiredRuntime(after) ||
				before.Annotations[constants.PodSecurityEnforce] != after.Annotations[constants.PodSecurityEnforce]
		}})).
		// Its status says whether its virtual garden can be used.
		Watches(&operatorv1alpha1.Garden{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*operatorv1alpha1.Garden), e.ObjectNew.(*operatorv1alpha1.Garden) //nolint:forcetypeassert // the kind that is watched
			return before.Generation != after.Generation || reconciled(before) != reconciled(after) ||
				before.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName] != after.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]
		}})).
		WatchesRawSource(managedResources).
		// Extensions wait for the PriorityClass of their pods, which the Garden brings.
		WatchesMetadata(&schedulingv1.PriorityClass{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(
			predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == runtimePriorityClass }),
			predicate.Funcs{
				UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
			}))
	// The deletion ends when the namespace is deleted, and an extension that is needed again waits for that. One that a user deletes is created again.
	b = b.WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace")), handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, obj client.Object) []reconcile.Request { return extension.Requests(obj) }),
		builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		}))
	for _, kind := range []string{"Secret", "ConfigMap"} {
		b = b.WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind(kind)), handler.EnqueueRequestsFromMapFunc(r.referring(kind)),
			builder.WithPredicates(
				predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == constants.GardenNamespace }),
				predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}))
	}
	return b.Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// all returns requests for all Extensions, of which there are few.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return extension.Select(ctx, r.runtimeCache, func(*operatorv1alpha1.Extension) bool { return true })
}

// referring returns a function that maps an object of a kind to the Extensions that refer to it.
func (r *reconciler) referring(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		ref := extension.Reference{Kind: kind, Name: obj.GetName()}
		return extension.Select(ctx, r.runtimeCache, func(e *operatorv1alpha1.Extension) bool { return slices.Contains(extension.References(e), ref) })
	}
}

func requiredRuntime(e *operatorv1alpha1.Extension) corev1beta1.ConditionStatus {
	if condition := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionRequiredRuntime); condition != nil {
		return condition.Status
	}
	return corev1beta1.ConditionUnknown
}
