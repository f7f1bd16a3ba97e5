// Package installation decides which extension controllers a cluster needs and keeps its ControllerInstallations accordingly: for
// each Seed, and for each Shoot that hosts its own control plane.
//
// It reads Seeds, Shoots, BackupBuckets, BackupEntries, ControllerRegistrations, ControllerDeployments and the metadata of Secrets
// and ConfigMaps in the namespace "garden". It creates, changes and deletes ControllerInstallations; their status is the
// gardenlet's. Source: concepts.txt, ControllerRegistration controller, "Main" reconciler.
package installation

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
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
	"gardener.cloud/gardener/internal/controllermanager/index"
)

// settle is how long events are gathered before a cluster is looked at, so that many shoots at once cost one pass and not one
// each. It is short beside the time that an extension takes to start.
const settle = 200 * time.Millisecond

// AddSeed adds the controller for Seeds to a manager.
func AddSeed(mgr manager.Manager, concurrentSyncs int) error {
	m := newMemory()
	w := watches{mgr.GetClient(), func(ctx context.Context, c client.Reader) ([]reconcile.Request, error) {
		seeds := &corev1beta1.SeedList{}
		if err := c.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var all []reconcile.Request
		for i := range seeds.Items {
			all = append(all, request("", seeds.Items[i].Name))
		}
		return all, nil
	}}
	b := builder.ControllerManagedBy(mgr).Named("controllerinstallation-seed").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		// A heartbeat changes the status only.
		Watches(&corev1beta1.Seed{}, w.gather(self), builder.WithPredicates(clusterChanges())).
		Watches(&corev1beta1.Shoot{}, shootEvents(m), builder.WithPredicates(shootChanges())).
		Watches(&corev1beta1.BackupBucket{}, w.gather(func(obj client.Object) []reconcile.Request {
			return optional(obj.(*corev1beta1.BackupBucket).Spec.SeedName) //nolint:forcetypeassert // the kind that is watched
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.BackupEntry{}, w.gather(func(obj client.Object) []reconcile.Request {
			return optional(obj.(*corev1beta1.BackupEntry).Spec.SeedName) //nolint:forcetypeassert // the kind that is watched
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.ControllerInstallation{}, w.gather(func(obj client.Object) []reconcile.Request {
			if ref := obj.(*corev1beta1.ControllerInstallation).Spec.SeedRef; ref != nil { //nolint:forcetypeassert // the kind that is watched
				return []reconcile.Request{request("", ref.Name)}
			}
			return nil
		}), builder.WithPredicates(installationChanges()))
	return w.common(b).Complete(&seedReconciler{reader: reader{mgr.GetClient()}, memory: m})
}

// AddShoot adds the controller for Shoots that host their own control plane to a manager.
func AddShoot(mgr manager.Manager, concurrentSyncs int) error {
	w := watches{mgr.GetClient(), func(ctx context.Context, c client.Reader) ([]reconcile.Request, error) {
		shoots := &corev1beta1.ShootList{}
		if err := c.List(ctx, shoots, client.MatchingFields{index.ShootSelfHosted: index.True}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var all []reconcile.Request
		for i := range shoots.Items {
			all = append(all, request(shoots.Items[i].Namespace, shoots.Items[i].Name))
		}
		return all, nil
	}}
	b := builder.ControllerManagedBy(mgr).Named("controllerinstallation-shoot").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		Watches(&corev1beta1.Shoot{}, w.gather(func(obj client.Object) []reconcile.Request {
			if !index.SelfHosted(obj.(*corev1beta1.Shoot)) { //nolint:forcetypeassert // the kind that is watched
				return nil
			}
			return self(obj)
		}), builder.WithPredicates(clusterChanges())).
		Watches(&corev1beta1.BackupBucket{}, w.gather(func(obj client.Object) []reconcile.Request {
			return referenced(obj.(*corev1beta1.BackupBucket).Spec.ShootRef) //nolint:forcetypeassert // the kind that is watched
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.BackupEntry{}, w.gather(func(obj client.Object) []reconcile.Request {
			return referenced(obj.(*corev1beta1.BackupEntry).Spec.ShootRef) //nolint:forcetypeassert // the kind that is watched
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.ControllerInstallation{}, w.gather(func(obj client.Object) []reconcile.Request {
			return referenced(obj.(*corev1beta1.ControllerInstallation).Spec.ShootRef) //nolint:forcetypeassert // the kind that is watched
		}), builder.WithPredicates(installationChanges()))
	return w.common(b).Complete(&shootReconciler{reader{mgr.GetClient()}})
}

// watches turns events into requests.
type watches struct {
	gardenClient client.Client
	// all returns the requests for all clusters.
	all func(context.Context, client.Reader) ([]reconcile.Request, error)
}

// common watches what concerns all clusters.
func (w watches) common(b *builder.Builder) *builder.Builder {
	return b.
		Watches(&corev1beta1.ControllerRegistration{}, w.gatherAll(nil), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, deletionBegins(), podSecurityChanges()))).
		// Most deployments that change belong to a registration, so finding out which clusters have it is not worth it.
		Watches(&gardencorev1.ControllerDeployment{}, w.gatherAll(nil), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, w.gatherAll(w.concernsSecret), builder.WithPredicates(inGarden(), contentChanges())).
		WatchesMetadata(&corev1.ConfigMap{}, w.gatherAll(w.concernsConfigMap), builder.WithPredicates(inGarden(), contentChanges()))
}

// concernsSecret tells whether a Secret describes a domain of the garden, or is named by a deployment.
func (w watches) concernsSecret(ctx context.Context, obj client.Object) bool {
	role := obj.GetLabels()[constants.GardenRole]
	return role == constants.GardenRoleInternalDomain || role == constants.GardenRoleDefaultDomain || w.named(ctx, "Secret", obj)
}

func (w watches) concernsConfigMap(ctx context.Context, obj client.Object) bool {
	return w.named(ctx, "ConfigMap", obj)
}

// named tells whether a ControllerDeployment names an object. There are as many deployments as extensions: some dozens.
func (w watches) named(ctx context.Context, kind string, obj client.Object) bool {
	deployments := &gardencorev1.ControllerDeploymentList{}
	if err := w.gardenClient.List(ctx, deployments, client.UnsafeDisableDeepCopy); err != nil {
		return true // a pass too many does no harm
	}
	for i := range deployments.Items {
		for _, ref := range index.DeploymentReferences(&deployments.Items[i]) {
			if ref.Kind == kind && ref.Name == obj.GetName() {
				return true
			}
		}
	}
	return false
}

// gather enqueues the clusters that an object is about, before its change and after it, once things have settled.
func (w watches) gather(clusters func(client.Object) []reconcile.Request) handler.EventHandler {
	return events(func(_ context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, cluster := range clusters(obj) {
			queue.AddAfter(cluster, settle)
		}
	})
}

// shootEvents enqueues the seeds in which a shoot may change what is needed.
func shootEvents(m *memory) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	of := func(obj client.Object) *corev1beta1.Shoot { return obj.(*corev1beta1.Shoot) } //nolint:forcetypeassert // the kind that is watched
	add := func(queue queue, seed string) { queue.AddAfter(request("", seed), settle) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) {
			for _, seed := range index.Seeds(of(e.Object)) {
				if !m.covers(seed, of(e.Object)) {
					add(queue, seed)
				}
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			before, after := of(e.ObjectOld), of(e.ObjectNew)
			for _, seed := range sets.List(sets.New(index.Seeds(before)...).Insert(index.Seeds(after)...)) {
				if !slices.Equal(index.Seeds(before), index.Seeds(after)) || !m.same(seed, before, after) {
					add(queue, seed)
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) {
			for _, seed := range index.Seeds(of(e.Object)) {
				add(queue, seed)
			}
		},
	}
}

// gatherAll enqueues all clusters once things have settled, if the object is of concern.
func (w watches) gatherAll(concerns func(context.Context, client.Object) bool) handler.EventHandler {
	return events(func(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if concerns != nil && !concerns(ctx, obj) {
			return
		}
		clusters, err := w.all(ctx, w.gardenClient)
		if err != nil { // the cache stops, or has not begun: then each cluster brings its own event
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

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

func self(obj client.Object) []reconcile.Request {
	return []reconcile.Request{request(obj.GetNamespace(), obj.GetName())}
}

func optional(name *string) []reconcile.Request {
	if name == nil {
		return nil
	}
	return []reconcile.Request{request("", *name)}
}

func referenced(ref *corev1.ObjectReference) []reconcile.Request {
	if ref == nil {
		return nil
	}
	return []reconcile.Request{request(ref.Namespace, ref.Name)}
}

// clusterChanges lets through what of a cluster itself counts: its spec, the labels that selectors look at, and its deletion.
func clusterChanges() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, deletionBegins())
}

// deletionBegins lets through the change that sets the deletion timestamp.
func deletionBegins() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
	}}
}

// podSecurityChanges lets through changes of the annotation that installations take over.
func podSecurityChanges() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[constants.PodSecurityEnforce] != e.ObjectNew.GetAnnotations()[constants.PodSecurityEnforce]
	}}
}

// shootChanges lets through changes of a shoot's spec and seeds. The rest of the status changes all the time.
func shootChanges() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1beta1.Shoot), e.ObjectNew.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
		return before.Generation != after.Generation || value(before.Status.SeedName) != value(after.Status.SeedName)
	}}
}

// installationChanges lets through what others did to an installation, and what decides about its deletion.
func installationChanges() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before := e.ObjectOld.(*corev1beta1.ControllerInstallation) //nolint:forcetypeassert // the kind that is watched
		after := e.ObjectNew.(*corev1beta1.ControllerInstallation)  //nolint:forcetypeassert // as above
		return before.Generation != after.Generation || required(before) != required(after) || !maps.Equal(before.Labels, after.Labels) ||
			before.Annotations[constants.PodSecurityEnforce] != after.Annotations[constants.PodSecurityEnforce]
	}}
}

// inGarden lets through objects in the namespace "garden".
func inGarden() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == constants.GardenNamespace })
}

// contentChanges keeps out what an informer repeats.
func contentChanges() predicate.Predicate { return predicate.ResourceVersionChangedPredicate{} }

func required(installation *corev1beta1.ControllerInstallation) bool {
	for _, condition := range installation.Status.Conditions {
		if condition.Type == corev1beta1.ControllerInstallationRequired {
			return condition.Status == corev1beta1.ConditionTrue
		}
	}
	return false
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
