package managedseed

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/access"
)

// gardenletWatches watches the Deployments and pods of gardenlets in their shoots, and keeps the clients for that. Each watch ends before its credentials
// expire; its ManagedSeed is then reconciled, which starts another one.
type gardenletWatches struct {
	starts chan gardenletWatch

	mu      sync.Mutex
	running map[types.NamespacedName]gardenletWatch
}

// gardenletWatch is one of them.
type gardenletWatch struct {
	key         types.NamespacedName
	shootClient client.WithWatch
	// stop ends it. Nil before it has started.
	stop context.CancelFunc
}

func newGardenletWatches() *gardenletWatches {
	return &gardenletWatches{starts: make(chan gardenletWatch), running: map[types.NamespacedName]gardenletWatch{}}
}

// run runs the watches until its context ends.
func (w *gardenletWatches) run(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case watch := <-w.starts:
			watchCtx, stop := context.WithTimeout(ctx, access.RenewAfter)
			watch.stop = stop
			w.set(watch)
			all.Go(func() {
				defer stop()
				request := reconcile.Request{NamespacedName: watch.key}
				watch.run(watchCtx, func() { queue.Add(request) })
				w.remove(watch.key)
				queue.Add(request)
			})
		}
	}
}

// run notifies of each change until its context ends.
func (w gardenletWatch) run(ctx context.Context, notify func()) {
	check := func([]client.Object) error {
		notify()
		return errWatching
	}
	namespace := client.InNamespace(constants.GardenNamespace)
	var both sync.WaitGroup
	both.Go(func() {
		_ = kube.AwaitKind(ctx, w.shootClient, &appsv1.Deployment{}, &appsv1.DeploymentList{}, check, nil, namespace,
			client.MatchingFields{metav1.ObjectNameField: gardenlet.Name})
	})
	both.Go(func() {
		_ = kube.AwaitKind(ctx, w.shootClient, &corev1.Pod{}, &corev1.PodList{}, check, nil, namespace, client.MatchingLabels{"app": "gardener", "role": "gardenlet"})
	})
	both.Wait()
}

// ensure starts the watch of a ManagedSeed, unless it runs.
func (w *gardenletWatches) ensure(ctx context.Context, key types.NamespacedName, shootClient client.WithWatch) {
	if w.client(key) != nil {
		return
	}
	watch := gardenletWatch{key: key, shootClient: shootClient}
	w.set(watch)
	select {
	case w.starts <- watch:
	case <-ctx.Done(): // the next pass does it
		w.remove(key)
	}
}

func (w *gardenletWatches) set(watch gardenletWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[watch.key] = watch
}

func (w *gardenletWatches) remove(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, key)
}

// client returns the client of a watch, or nil if it does not run.
func (w *gardenletWatches) client(key types.NamespacedName) client.WithWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[key].shootClient
}

// end ends the watch of a ManagedSeed, if it runs.
func (w *gardenletWatches) end(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.running[key].stop; stop != nil {
		stop()
	}
}
