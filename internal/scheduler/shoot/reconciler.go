// Package shoot binds Shoots that have no seed to the seed that suits them best.
//
// Garden cluster only: reads Shoot, Seed, CloudProfile, NamespacedCloudProfile and the ConfigMaps with distances between regions, all
// from informers; writes spec.seedName of Shoots through their binding subresource and, if no seed fits, status.lastOperation, and
// events. Source: concepts.txt, "Gardener Scheduler".
//
// What a decision needs is in an index that informers keep up to date, and a decision holds a place on the seed until the informer shows
// the binding. So many workers can decide at once without one seed getting more than it takes. What another scheduler does at the same
// moment shows as a conflict at the API server, or is refused by it, and leads to another try.
package shoot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const (
	// passLimit is how long a pass may take; it makes at most two requests.
	passLimit = 30 * time.Second
	// conflictRetry is when a Shoot is looked at again that somebody else has just written. By then, the informer has shown it.
	conflictRetry = 100 * time.Millisecond
)

// Reconciler binds one Shoot at a time.
type Reconciler struct {
	gardenClient client.Client
	index        *index
	clock        clock.PassiveClock
	recorder     events.EventRecorder
	metrics      *metrics
	backoff      workqueue.TypedRateLimiter[reconcile.Request]
}

// Reconcile finds a seed for a Shoot that has none.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passLimit)
	defer cancel()
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, shoot); err != nil {
		r.backoff.Forget(req)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !unassigned(shoot) {
		r.backoff.Forget(req)
		return reconcile.Result{}, nil
	}
	seed, err := r.decide(shoot)
	switch {
	case err != nil:
		r.metrics.failed.Inc()
		return reconcile.Result{RequeueAfter: r.backoff.When(req)}, r.reportFailure(ctx, shoot, err)
	case seed == "": // bound already
		return reconcile.Result{}, nil
	}
	log.FromContext(ctx).Info("Binding shoot", "seed", seed)
	if err := r.bind(ctx, shoot, seed); err != nil {
		return r.notBound(ctx, shoot, seed, err)
	}
	r.index.confirm(req.NamespacedName)
	r.backoff.Forget(req)
	r.metrics.bound.Inc()
	r.reportSuccess(shoot, seed)
	return reconcile.Result{}, nil
}

func (r *Reconciler) decide(shoot *corev1beta1.Shoot) (seed string, err error) {
	start := r.clock.Now()
	defer func() { r.metrics.decisionDuration.Observe(r.clock.Since(start).Seconds()) }()
	request, err := newRequest(shoot)
	if err != nil {
		return "", err
	}
	return r.index.place(request, profileOf(shoot))
}

// bind gives a Shoot its seed, if nobody has changed the Shoot since it was read.
func (r *Reconciler) bind(ctx context.Context, shoot *corev1beta1.Shoot, seed string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion},
		"spec":     map[string]any{"seedName": seed},
	})
	if err != nil {
		return err
	}
	bound := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	return r.gardenClient.SubResource("binding").Patch(ctx, bound, client.RawPatch(types.MergePatchType, patch))
}

// notBound decides how a binding that failed goes on.
func (r *Reconciler) notBound(ctx context.Context, shoot *corev1beta1.Shoot, seed string, err error) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(shoot)
	var status apierrors.APIStatus
	refused := errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
	if refused { // otherwise it may have been bound after all; the place is held until the informer or the next try tells
		r.index.release(key)
	}
	switch {
	case apierrors.IsConflict(err):
		r.metrics.conflicted.Inc()
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err): // by a rule that the index does not know, or does not know yet
		r.metrics.refused.Inc()
		req := reconcile.Request{NamespacedName: key}
		return reconcile.Result{RequeueAfter: r.backoff.When(req)}, r.reportFailure(ctx, shoot, fmt.Errorf("seed %q: %w", seed, err))
	}
	return reconcile.Result{}, fmt.Errorf("bind to seed %q: %w", seed, err)
}
