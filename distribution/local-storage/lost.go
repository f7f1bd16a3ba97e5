package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// lost deletes the claims of volumes whose node was deleted. No node has their data, and pods with such a claim would stay pending forever. What has
// created a claim, such as a StatefulSet, creates it again. The instances on all nodes do the same: of several, all but one find the claim deleted.
//
// A node that was cordoned was removed on purpose. Any other one may have been deleted by mistake, and still have the data: its claims stay for a time, in which
// its kubelet may register it again.
type lost struct {
	client  kubernetes.Interface
	grace   time.Duration
	now     func() time.Time
	factory informers.SharedInformerFactory
	volumes corev1listers.PersistentVolumeLister
	queue   workqueue.TypedRateLimitingInterface[string]

	mutex sync.Mutex
	// absent are since when nodes do not exist, as far as this process has observed it. Those that were removed on purpose have the zero time.
	absent map[string]time.Time
}

func newLost(client kubernetes.Interface, grace time.Duration) *lost {
	factory := informers.NewSharedInformerFactory(client, 0)
	return &lost{
		client: client, grace: grace, now: time.Now, absent: map[string]time.Time{}, factory: factory, volumes: factory.Core().V1().PersistentVolumes().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
}

// run watches volumes and nodes until the context ends.
func (l *lost) run(ctx context.Context) error {
	volumes, nodes := l.factory.Core().V1().PersistentVolumes(), l.factory.Core().V1().Nodes()
	// Nodes may have been deleted while no instance was running.
	if _, err := volumes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: l.enqueue, UpdateFunc: func(_, volume any) { l.enqueue(volume) }}); err != nil {
		return err
	}
	if _, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: l.nodeAdded, DeleteFunc: l.nodeDeleted}); err != nil {
		return err
	}
	l.factory.Start(ctx.Done())
	context.AfterFunc(ctx, l.queue.ShutDown)
	for name, synced := range l.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("watch %s: %w", name, context.Cause(ctx))
		}
	}
	for l.next(ctx) {
	}
	return nil
}

func (l *lost) enqueue(volume any) {
	if volume, ok := volume.(*corev1.PersistentVolume); ok {
		l.queue.Add(volume.Name)
	}
}

func (l *lost) nodeAdded(object any) {
	if node, ok := object.(*corev1.Node); ok {
		l.present(node.Name)
	}
}

func (l *lost) nodeDeleted(object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if node, ok := object.(*corev1.Node); ok {
		since := l.now()
		if node.Spec.Unschedulable {
			since = time.Time{}
		}
		l.mutex.Lock()
		l.absent[node.Name] = since
		l.mutex.Unlock()
	}
	l.enqueueAll()
}

// present forgets that a node did not exist.
func (l *lost) present(node string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.absent, node)
}

// left returns how long the claims of a node that does not exist stay.
func (l *lost) left(node string) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	since, known := l.absent[node]
	if !known {
		since = l.now()
		l.absent[node] = since
	}
	return l.grace - l.now().Sub(since)
}

func (l *lost) enqueueAll() {
	volumes, err := l.volumes.List(labels.Everything())
	if err != nil {
		return // a lister of a cache does not fail
	}
	for _, volume := range volumes {
		l.enqueue(volume)
	}
}

// next handles the next volume, and reports whether there may be more.
func (l *lost) next(ctx context.Context) bool {
	name, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(name)
	if err := l.sync(ctx, name); err != nil {
		klog.FromContext(ctx).Error(err, "Deleting the claim of a volume has failed, and is tried again", "volume", name)
		l.queue.AddRateLimited(name)
		return true
	}
	l.queue.Forget(name)
	return true
}

// sync deletes the claim of a volume if its node was deleted, or does so later.
func (l *lost) sync(ctx context.Context, name string) error {
	volume, err := l.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	node, claim := volume.Annotations[ownNode], volume.Spec.ClaimRef
	if node == "" || claim == nil {
		return nil
	}
	// The cache may be behind: a node that is in the API server has the data.
	if _, err := l.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err == nil {
		l.present(node) // it may have been registered again without an event
		return nil
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read node %q: %w", node, err)
	}
	if left := l.left(node); left > 0 {
		klog.FromContext(ctx).Info("Keeping the claim of a volume whose node is gone for a while", "claim", klog.KRef(claim.Namespace, claim.Name), "volume", name, "node", node, "left", left)
		l.queue.AddAfter(name, left)
		return nil
	}
	// Another claim of that name may have a volume on a node that exists.
	err = l.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	klog.FromContext(ctx).Info("Deleted the claim of a volume whose node is gone", "claim", klog.KRef(claim.Namespace, claim.Name), "volume", name, "node", node)
	return nil
}
