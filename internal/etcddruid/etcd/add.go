// Package etcd keeps the objects of Etcds: it turns an Etcd into a StatefulSet with etcd and etcd-backup-restore, and what
// these need, and reports how they are.
//
// It reads Etcds, the Leases that etcd-backup-restore renews, and the Secret of backups on the node. It writes the status of
// Etcds, and the objects in objects.go.
//
// A changed spec is acted on when the Etcd has the annotation druid.gardener.cloud/operation=reconcile (or
// gardener.cloud/operation=reconcile), when it is new, or always if the configuration says so; never while it has
// druid.gardener.cloud/suspend-etcd-spec-reconcile. Objects that others change are taken back, for as long as the Etcd does not
// have druid.gardener.cloud/disable-etcd-component-protection.
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
)

// passTimeout is how long one pass may take. It is some twenty requests.
const passTimeout = 2 * time.Minute

// CacheByObject keeps everything out of the cache that is not etcd-druid's.
func CacheByObject() map[client.Object]cache.ByObject {
	own := cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{druidv1alpha1.LabelManagedByKey: druidv1alpha1.LabelManagedByValue})}
	out := map[client.Object]cache.ByObject{}
	for _, object := range append(owned(), &coordinationv1.Lease{}, &corev1.Pod{}) {
		out[object] = own
	}
	return out
}

// owned are the kinds of objects whose changes by others are taken back. Leases are watched apart.
func owned() []client.Object {
	return []client.Object{
		&appsv1.StatefulSet{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{},
	}
}

// AddToManager adds the controller.
func AddToManager(mgr manager.Manager, config *etcddruidconfigv1alpha1.EtcdDruidConfiguration, c clock.PassiveClock) error {
	etcdConfig := config.Controllers.Etcd
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: c, images: config.Images, autoReconcile: etcdConfig.EnableEtcdSpecAutoReconcile,
		thresholds: thresholds{unknown: etcdConfig.MemberUnknownAfter.Duration, notReady: etcdConfig.MemberNotReadyAfter.Duration},
		applied:    map[types.UID]applied{},
	}
	b := builder.ControllerManagedBy(mgr).
		Named("etcd").
		// Its status is our own writing.
		For(&druidv1alpha1.Etcd{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: etcdConfig.ConcurrentSyncs, ReconciliationTimeout: passTimeout})
	for _, kind := range owned() {
		b = b.Owns(kind)
	}
	return b.
		// Members renew their Leases every few seconds. Only what a renewal says is of interest at once; that it did not
		// come is noticed when it is due.
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(partOf), builder.WithPredicates(predicate.Funcs{UpdateFunc: holderChanged})).
		// A deletion waits for the end of the pods.
		WatchesMetadata(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(partOf), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		Complete(r)
}

// partOf leads from an object to its Etcd.
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
		// The first sign of life after a silence, which may have been noticed.
		stale(before, after)
}

// longSilence is a silence that is worth a look when it ends. It is below the shortest sensible threshold.
const longSilence = 30 * time.Second

func stale(before, after *coordinationv1.Lease) bool {
	return before.Spec.RenewTime == nil != (after.Spec.RenewTime == nil) ||
		before.Spec.RenewTime != nil && after.Spec.RenewTime.Sub(before.Spec.RenewTime.Time) > longSilence
}
