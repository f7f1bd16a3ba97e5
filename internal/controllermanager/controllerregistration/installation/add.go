// Package installation decides which extension controllers a cluster needs, and creates, updates and deletes its ControllerInstallations:
// for each Seed, and for each self-hosted Shoot.
//
// It reads Seeds, Shoots, BackupBuckets, BackupEntries, ControllerRegistrations, ControllerDeployments and the metadata of Secrets
// and ConfigMaps in the namespace "garden". It writes ControllerInstallations except for their status, which the gardenlet writes.
// Source: concepts.txt, ControllerRegistration controller, "Main" reconciler.
package installation

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// settle is how long events are collected before a cluster is reconciled, so that many Shoots at once cost one reconciliation and not one
// each. It is short compared to the time that an extension takes to start.
const settle = 200 * time.Millisecond

// Values are what the controllers work with.
type Values struct {
	// ConcurrentSyncs is how many Seeds, and how many Shoots, are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controllers to a manager, one for Seeds and one for self-hosted Shoots.
func Add(mgr manager.Manager, v Values) error {
	if err := addSeed(mgr, v.ConcurrentSyncs); err != nil {
		return err
	}
	return addShoot(mgr, v.ConcurrentSyncs)
}

func addSeed(mgr manager.Manager, concurrentSyncs int) error {
	m := newMemory()
	w := watches{mgr.GetClient(), references.Seed, func(ctx context.Context, c client.Reader) ([]reconcile.Request, error) {
		seeds := &corev1beta1.SeedList{}
		if err := c.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var all []reconcile.Request
		for i := range seeds.Items {
			all = append(all, requestFor(&seeds.Items[i]))
		}
		return all, nil
	}}
	b := builder.ControllerManagedBy(mgr).Named("controllerinstallation-seed").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		// A heartbeat changes the status only.
		Watches(&corev1beta1.Seed{}, gather(self), builder.WithPredicates(clusterChanges())).
		Watches(&corev1beta1.Shoot{}, shootEvents(m), builder.WithPredicates(shootChanges()))
	return w.common(b).Complete(&seedReconciler{reader: reader{mgr.GetClient()}, memory: m})
}

func addShoot(mgr manager.Manager, concurrentSyncs int) error {
	w := watches{mgr.GetClient(), references.Shoot, func(ctx context.Context, c client.Reader) ([]reconcile.Request, error) {
		shoots := &corev1beta1.ShootList{}
		if err := c.List(ctx, shoots, references.SelfHosted(), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var all []reconcile.Request
		for i := range shoots.Items {
			all = append(all, requestFor(&shoots.Items[i]))
		}
		return all, nil
	}}
	b := builder.ControllerManagedBy(mgr).Named("controllerinstallation-shoot").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		Watches(&corev1beta1.Shoot{}, gather(func(obj client.Object) []reconcile.Request {
			if !obj.(*corev1beta1.Shoot).SelfHosted() { //nolint:forcetypeassert // the kind that is watched
				return nil
			}
			return self(obj)
		}), builder.WithPredicates(clusterChanges()))
	return w.common(b).Complete(&shootReconciler{reader{mgr.GetClient()}})
}

// watches turns events into requests for clusters of a kind.
type watches struct {
	gardenCache client.Client
	// kind is the kind of the clusters: Seed or Shoot.
	kind string
	// all returns the requests for all clusters.
	all func(context.Context, client.Reader) ([]reconcile.Request, error)
}

// common watches the objects that influence the installations of both kinds of clusters.
func (w watches) common(b *builder.Builder) *builder.Builder {
	clusters := gather(func(obj client.Object) []reconcile.Request { return references.Requests(obj, w.kind) })
	return b.
		Watches(&corev1beta1.BackupBucket{}, clusters, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.BackupEntry{}, clusters, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.ControllerInstallation{}, clusters, builder.WithPredicates(installationChanges())).
		Watches(&corev1beta1.ControllerRegistration{}, w.gatherAll(nil), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, watch.DeletionStarted(), podSecurityChanges()))).
		// Most deployments belong to a registration, so that finding the clusters which have it installed is not worth it.
		Watches(&gardencorev1.ControllerDeployment{}, w.gatherAll(nil), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, w.gatherAll(w.concernsSecret), builder.WithPredicates(inGarden(), predicate.ResourceVersionChangedPredicate{})).
		WatchesMetadata(&corev1.ConfigMap{}, w.gatherAll(w.concernsConfigMap), builder.WithPredicates(inGarden(), predicate.ResourceVersionChangedPredicate{}))
}

// concernsSecret reports whether a Secret describes a domain of the garden, or a deployment refers to it.
func (w watches) concernsSecret(ctx context.Context, obj client.Object) bool {
	role := obj.GetLabels()[constants.GardenRole]
	return role == constants.GardenRoleInternalDomain || role == constants.GardenRoleDefaultDomain || w.referenced(ctx, references.Secret, obj)
}

func (w watches) concernsConfigMap(ctx context.Context, obj client.Object) bool {
	return w.referenced(ctx, references.ConfigMap, obj)
}

// referenced reports whether a ControllerDeployment refers to an object. An unnecessary reconciliation does no harm.
func (w watches) referenced(ctx context.Context, kind string, obj client.Object) bool {
	keys, err := references.Referrers(ctx, w.gardenCache, &gardencorev1.ControllerDeployment{}, references.RefOf(kind, obj), 1)
	return err != nil || len(keys) > 0
}

// gather enqueues, after a delay, the clusters that an object belongs to before and after its update.
func gather(clusters func(client.Object) []reconcile.Request) handler.EventHandler {
	return events(func(_ context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, cluster := range clusters(obj) {
			queue.AddAfter(cluster, settle)
		}
	})
}

// shootEvents enqueues the seeds that may need other extensions because of a Shoot.
func shootEvents(m *memory) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	of := func(obj client.Object) *corev1beta1.Shoot { return obj.(*corev1beta1.Shoot) } //nolint:forcetypeassert // the kind that is watched
	add := func(queue queue, seed string) {
		queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: seed}}, settle)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) {
			for _, seed := range seedsOf(of(e.Object)) {
				if !m.covers(seed, of(e.Object)) {
					add(queue, seed)
				}
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			before, after := of(e.ObjectOld), of(e.ObjectNew)
			for _, seed := range sets.List(sets.New(seedsOf(before)...).Insert(seedsOf(after)...)) {
				if !slices.Equal(seedsOf(before), seedsOf(after)) || !m.same(seed, before, after) {
					add(queue, seed)
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) {
			for _, seed := range seedsOf(of(e.Object)) {
				add(queue, seed)
			}
		},
	}
}

// gatherAll enqueues all clusters, after a delay, if concerns returns true for an object.
func (w watches) gatherAll(concerns func(context.Context, client.Object) bool) handler.EventHandler {
	return events(func(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if concerns != nil && !concerns(ctx, obj) {
			return
		}
		clusters, err := w.all(ctx, w.gardenCache)
		if err != nil { // the cache has stopped, or not started: then each cluster causes a create event
			return
		}
		for _, cluster := range clusters {
			queue.AddAfter(cluster, settle)
		}
	})
}

func events(each func(context.Context, client.Object, workqueue.TypedRateLimitingInterface[reconcile.Request])) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			each(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			each(ctx, e.ObjectOld, queue)
			each(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			each(ctx, e.Object, queue)
		},
	}
}

// seedsOf returns the names of the seeds of a Shoot, which are two while its control plane is migrated.
func seedsOf(shoot *corev1beta1.Shoot) []string {
	var names []string
	for _, ref := range references.Of(shoot, references.Seed) {
		names = append(names, ref.Name)
	}
	return names
}

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

func self(obj client.Object) []reconcile.Request { return []reconcile.Request{requestFor(obj)} }

// clusterChanges passes updates of the spec of a cluster, of the labels that selectors may match, and the start of its deletion.
func clusterChanges() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, watch.DeletionStarted())
}

// podSecurityChanges passes updates of the annotation that is copied to installations.
func podSecurityChanges() predicate.Predicate {
	return watch.Updated(func(before, after client.Object) bool {
		return before.GetAnnotations()[constants.PodSecurityEnforce] != after.GetAnnotations()[constants.PodSecurityEnforce]
	})
}

// shootChanges passes updates of a shoot's spec and seeds. The rest of the status changes all the time.
func shootChanges() predicate.Predicate {
	return watch.Updated(func(before, after *corev1beta1.Shoot) bool {
		return before.Generation != after.Generation || ptr.Deref(before.Status.SeedName, "") != ptr.Deref(after.Status.SeedName, "")
	})
}

// installationChanges passes updates of the fields of an installation that this controller writes, and of the condition Required.
func installationChanges() predicate.Predicate {
	return watch.Updated(func(before, after *corev1beta1.ControllerInstallation) bool {
		return before.Generation != after.Generation || required(before) != required(after) || !maps.Equal(before.Labels, after.Labels) ||
			before.Annotations[constants.PodSecurityEnforce] != after.Annotations[constants.PodSecurityEnforce]
	})
}

// inGarden passes objects in the namespace "garden".
func inGarden() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == constants.GardenNamespace })
}

// required reports whether the gardenlet has found extension resources that need an installation.
func required(installation *corev1beta1.ControllerInstallation) bool {
	condition := kube.Condition(installation.Status.Conditions, corev1beta1.ControllerInstallationRequired)
	return condition != nil && condition.Status == corev1beta1.ConditionTrue
}
