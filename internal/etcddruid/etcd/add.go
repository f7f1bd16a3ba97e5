// Package etcd reconciles Etcds: it creates a StatefulSet with etcd and etcd-backup-restore, and the objects that these need, and reports
// their health.
//
// It reads Etcds, the Leases that etcd-backup-restore renews, and the Secret of a store on the node. It writes the status of
// Etcds, and the objects in objects.go. It reads pods, their volumes, and the zones of Nodes, and deletes the pod and the claim of a member
// that has to move to another zone.
//
// A changed spec is acted on when the Etcd has the annotation druid.gardener.cloud/operation=reconcile (or
// gardener.cloud/operation=reconcile), when it is new, or always with enableEtcdSpecAutoReconcile; never while it has
// druid.gardener.cloud/suspend-etcd-spec-reconcile. Changes of the objects by other clients are reverted, unless
// the Etcd has druid.gardener.cloud/disable-etcd-component-protection.
package etcd

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// controllerName is also the reporter of events.
const controllerName = "etcd"

// passTimeout limits a pass, which takes some twenty requests.
const passTimeout = 2 * time.Minute

// CacheByObject restricts the cache to objects that etcd-druid manages.
func CacheByObject() map[client.Object]cache.ByObject {
	own := cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{druidv1alpha1.LabelManagedByKey: druidv1alpha1.LabelManagedByValue})}
	out := map[client.Object]cache.ByObject{}
	for _, object := range append(owned(), &coordinationv1.Lease{}, &corev1.Pod{}) {
		out[object] = own
	}
	return out
}

// owned are the kinds of objects whose changes by other clients are reverted. Leases have a watch of their own.
func owned() []client.Object {
	return []client.Object{
		&appsv1.StatefulSet{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{},
	}
}

// Values configure the controller.
type Values struct {
	// Config is the configuration of the controller.
	Config etcddruidconfigv1alpha1.EtcdControllerConfiguration
	// Images are those of etcd and etcd-backup-restore, where the spec of an Etcd has no others.
	Images etcddruidconfigv1alpha1.Images
	// Clock has the time for conditions and for the age of Leases.
	Clock clock.PassiveClock
}

// Add adds the controller.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{
		client: mgr.GetClient(), api: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(controllerName), clock: v.Clock, images: v.Images, autoReconcile: v.Config.EnableEtcdSpecAutoReconcile,
		thresholds: thresholds{unknown: v.Config.MemberUnknownAfter.Duration, notReady: v.Config.MemberNotReadyAfter.Duration},
		applied:    map[types.UID]applied{},
	}
	b := builder.ControllerManagedBy(mgr).
		Named(controllerName).
		For(&druidv1alpha1.Etcd{}, builder.WithPredicates(changed())).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.Config.ConcurrentSyncs, ReconciliationTimeout: passTimeout})
	for _, kind := range owned() {
		b = b.Owns(kind)
	}
	return b.
		// Members renew their Leases every few seconds. Only changes of the holder are reconciled at once; a missing renewal is found by the
		// recheck at the time when it is due.
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(partOf), builder.WithPredicates(predicate.Funcs{UpdateFunc: holderChanged})).
		// A deletion waits until the pods have ended. A pod changes a few times when it starts, and when the scheduler finds no node for it.
		WatchesMetadata(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(partOf), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
		})).
		Complete(r)
}

// changed passes changes of the spec, of annotations, and of the status, which only this controller writes: one that was decided by an old cache is
// corrected. Errors are retried anyway, and what they say may be different each time.
func changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, kube.StatusChanged(func(etcd *druidv1alpha1.Etcd) any {
		status := etcd.Status.DeepCopy()
		for i := range status.LastErrors {
			status.LastErrors[i].Description, status.LastErrors[i].ObservedAt = "", metav1.Time{}
		}
		return status
	}))
}

// partOf maps an object to its Etcd.
func partOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[druidv1alpha1.LabelPartOfKey]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

func holderChanged(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*coordinationv1.Lease)
	after, okAfter := e.ObjectNew.(*coordinationv1.Lease)
	return !ok || !okAfter || !apiequality.Semantic.DeepEqual(before.Spec.HolderIdentity, after.Spec.HolderIdentity) ||
		!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations) || !apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		// The member may have been reported as not ready before this renewal.
		overdue(before, after)
}

// overdueAfter is how long after the previous one a renewal is reconciled at once. It is below the shortest sensible threshold.
const overdueAfter = 30 * time.Second

func overdue(before, after *coordinationv1.Lease) bool {
	return before.Spec.RenewTime == nil != (after.Spec.RenewTime == nil) ||
		before.Spec.RenewTime != nil && after.Spec.RenewTime.Sub(before.Spec.RenewTime.Time) > overdueAfter
}
