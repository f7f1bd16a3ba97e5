// Package lease renews the Lease that shows that the gardener-node-agent of a Node runs.
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
	// renewEvery is how often the Lease is renewed, and duration how long it is valid.
	renewEvery, duration = 10 * time.Second, 40 * time.Second
	// passTimeout limits a pass: the next one is due then.
	passTimeout = renewEvery
	// firstRetry is the delay before a failed renewal is retried for the first time. It grows up to renewEvery.
	firstRetry = 500 * time.Millisecond
)

// Values configure the controller.
type Values struct {
	// Cache reads the Node from a cache.
	Cache client.Reader
	// API reads and writes the Lease at the API server.
	API client.Client
	// Clock has the time of renewals.
	Clock clock.PassiveClock
}

// reconciler renews the Lease.
type reconciler struct {
	Values
	lease *coordinationv1.Lease // as it was written last, so that a renewal takes one request
}

// Add adds the controller to a manager whose cache has no other Node than that of the agent.
func Add(mgr manager.Manager, v Values) error {
	c, err := controller.New("lease", mgr, controller.Options{
		Reconciler: &reconciler{Values: v}, MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, renewEvery),
	})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		predicate.TypedFuncs[*corev1.Node]{ // once there is a Node, the Lease is renewed periodically
			UpdateFunc: func(event.TypedUpdateEvent[*corev1.Node]) bool { return false },
			DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
		}))
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Cache.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.renew(ctx, node); err != nil {
		r.lease = nil
		return kube.Result(fmt.Errorf("renew Lease: %w", err))
	}
	return reconcile.Result{RequeueAfter: renewEvery}, nil
}

func (r *reconciler) renew(ctx context.Context, node *corev1.Node) error {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	if r.lease == nil || len(r.lease.OwnerReferences) != 1 || r.lease.OwnerReferences[0] != owner {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: nodeagentconfigv1alpha1.NodeLeasePrefix + node.Name,
		}}
		err := r.API.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		r.fill(lease, owner)
		if apierrors.IsNotFound(err) {
			err = r.API.Create(ctx, lease)
		} else if err == nil {
			err = r.API.Update(ctx, lease)
		}
		r.lease = lease
		return err
	}
	r.fill(r.lease, owner)
	return r.API.Update(ctx, r.lease)
}

func (r *reconciler) fill(lease *coordinationv1.Lease, owner metav1.OwnerReference) {
	lease.OwnerReferences = []metav1.OwnerReference{owner}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:       new(owner.Name),
		LeaseDurationSeconds: new(int32(duration.Seconds())),
		RenewTime:            new(metav1.NewMicroTime(r.Clock.Now())),
	}
}
