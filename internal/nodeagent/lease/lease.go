// Package lease renews the Lease by which others see that the gardener-node-agent of a Node lives.
//
// It reads the Node of the agent and writes the Lease gardener-node-agent-<node> in kube-system, which belongs to the Node.
// Source: concepts.txt, Gardener Node Agent, "Lease Controller".
package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// renewEvery is how often the Lease is renewed, and duration how long it is good for.
	renewEvery, duration = 10 * time.Second, 40 * time.Second
	// passTimeout limits a pass: the next one is due then.
	passTimeout = renewEvery
	// firstRetry is how soon a renewal is tried again that failed. After a long outage, too, it takes no longer than to the next one.
	firstRetry = 500 * time.Millisecond
)

// Reconciler renews the Lease.
type Reconciler struct {
	// Nodes reads the Node from a cache.
	Nodes client.Reader
	// Client reads and writes the Lease at the API server.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock

	lease *coordinationv1.Lease // as it was written last, so that a renewal is one request
}

// Add adds the controller to a manager whose cache has no other Node than that of the agent.
func (r *Reconciler) Add(mgr manager.Manager) error {
	c, err := controller.New("lease", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, renewEvery),
	})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		predicate.TypedFuncs[*corev1.Node]{ // a Lease is renewed by the clock once there is a Node
			UpdateFunc: func(event.TypedUpdateEvent[*corev1.Node]) bool { return false },
			DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
		}))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Nodes.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.renew(ctx, node); err != nil {
		r.lease = nil
		return kube.Result(fmt.Errorf("renew the Lease: %w", err))
	}
	return reconcile.Result{RequeueAfter: renewEvery}, nil
}

func (r *Reconciler) renew(ctx context.Context, node *corev1.Node) error {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	if r.lease == nil || len(r.lease.OwnerReferences) != 1 || r.lease.OwnerReferences[0] != owner {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: nodeagentconfigv1alpha1.NodeLeasePrefix + node.Name,
		}}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		r.fill(lease, owner)
		if apierrors.IsNotFound(err) {
			err = r.Client.Create(ctx, lease)
		} else if err == nil {
			err = r.Client.Update(ctx, lease)
		}
		r.lease = lease
		return err
	}
	r.fill(r.lease, owner)
	return r.Client.Update(ctx, r.lease)
}

func (r *Reconciler) fill(lease *coordinationv1.Lease, owner metav1.OwnerReference) {
	lease.OwnerReferences = []metav1.OwnerReference{owner}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To(owner.Name),
		LeaseDurationSeconds: ptr.To(int32(duration.Seconds())),
		RenewTime:            ptr.To(metav1.NewMicroTime(r.Clock.Now())),
	}
}
