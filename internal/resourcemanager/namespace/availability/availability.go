// Package availability lets workloads be admitted again when the zones or the failure tolerance of their namespace change.
//
// The webhook high-availability-config reads both from the Namespace. An object that is as it was applied is not written again, so the webhook would not see it:
// pods would not be spread over a new zone, and where a zone is gone, the second pod would wait for it for ever. This controller reads Namespaces and the
// metadata of what the webhook configures in the target cluster, and patches without a change what gardener-resource-manager has applied there.
package availability

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// passTimeout limits a reconciliation, which may have to patch some workloads.
const passTimeout = time.Minute

// admitted are the kinds that the webhook configures.
var admitted = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
}

// Add adds the controller to a manager. The objects that gardener-resource-manager has applied have the label managed-by with the value managedBy.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, managedBy string) error {
	r := &reconciler{target: targetCluster.GetClient(), targetAPI: targetCluster.GetAPIReader(), managedBy: managedBy}
	c, err := controller.New("namespace-high-availability-config", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	// The cache is the one that the webhook reads Namespaces from.
	return c.Watch(source.Kind(targetCluster.GetCache(), &corev1.Namespace{}, &handler.TypedEnqueueRequestForObject[*corev1.Namespace]{}, changed()))
}

// changed passes changes of what the webhook reads. What has changed while no process ran is admitted when the object changes next: to write all objects of a
// seed whenever a process starts would be too many requests.
func changed() predicate.TypedFuncs[*corev1.Namespace] {
	return predicate.TypedFuncs[*corev1.Namespace]{
		CreateFunc: func(event.TypedCreateEvent[*corev1.Namespace]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Namespace]) bool {
			return considered(e.ObjectNew) && (!considered(e.ObjectOld) || settingsOf(e.ObjectOld) != settingsOf(e.ObjectNew))
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.Namespace]) bool { return false },
	}
}

func considered(namespace *corev1.Namespace) bool {
	return namespace.Labels[resourcesv1alpha1.HighAvailabilityConfigConsider] == "true"
}

// settings are the annotations of a Namespace that the webhook reads. No failure tolerance is different from an empty one.
type settings struct {
	zones, pinning, tolerance string
	tolerant                  bool
}

func settingsOf(namespace *corev1.Namespace) settings {
	tolerance, tolerant := namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigFailureToleranceType]
	return settings{
		zones:     namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZones],
		pinning:   namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZonePinning],
		tolerance: tolerance, tolerant: tolerant,
	}
}

type reconciler struct {
	target    client.Client
	targetAPI client.Reader
	managedBy string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	var errs []error
	for _, kind := range admitted {
		errs = append(errs, r.admit(ctx, request.Name, kind))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// admit lets all objects of a kind be admitted that were applied in a namespace.
func (r *reconciler) admit(ctx context.Context, namespace string, kind schema.GroupVersionKind) error {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(kind)
	if err := r.targetAPI.List(ctx, objects, client.InNamespace(namespace), client.MatchingLabels{resourcesv1alpha1.ManagedBy: r.managedBy}); err != nil {
		return fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	var errs []error
	for i := range objects.Items {
		object := &objects.Items[i]
		logf.FromContext(ctx).Info("Letting the webhook see an object, as its namespace has changed", "kind", kind.Kind, "object", client.ObjectKeyFromObject(object))
		object.SetGroupVersionKind(kind)
		if err := r.target.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{}`))); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("patch %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err))
		}
	}
	return errors.Join(errs...)
}
