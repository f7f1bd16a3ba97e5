package shoot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	// reconciliationTimeout is how long a reconciliation may take. It makes two requests, and one more for each seed that turns out not to
	// offer the domain of the Shoot.
	reconciliationTimeout = 30 * time.Second
	// conflictRetry is when a Shoot is requeued after a conflict. By then, the informer has the new version.
	conflictRetry = 100 * time.Millisecond
)

// reconciler binds Shoots to seeds.
type reconciler struct {
	gardenCache client.Client
	index       *index
	clock       clock.PassiveClock
	recorder    events.EventRecorder
	metrics     *metrics
	backoff     workqueue.TypedRateLimiter[reconcile.Request]
}

// Reconcile finds a seed for a Shoot that has none.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, reconciliationTimeout)
	defer cancel()
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot); err != nil {
		r.backoff.Forget(req)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !unassigned(shoot) {
		r.backoff.Forget(req)
		return reconcile.Result{}, nil
	}
	var refusedBy []string
	for {
		seed, err := r.decide(shoot, refusedBy)
		switch {
		case err != nil:
			r.metrics.failed.Inc()
			return reconcile.Result{RequeueAfter: r.backoff.When(req)}, r.reportFailure(ctx, shoot, err)
		case seed == "": // bound already
			return reconcile.Result{}, nil
		}
		log.FromContext(ctx).Info("Binding shoot", "seed", seed)
		err = r.bind(ctx, shoot, seed)
		if err == nil {
			r.index.confirm(req.NamespacedName)
			r.backoff.Forget(req)
			r.metrics.bound.Inc()
			r.reportSuccess(shoot, seed)
			return reconcile.Result{}, nil
		}
		if !refusesDomain(err) {
			return r.notBound(ctx, shoot, seed, err)
		}
		log.FromContext(ctx).Info("Trying another seed, as this one does not offer the domain of the shoot", "seed", seed, "reason", err.Error())
		r.index.release(req.NamespacedName)
		r.metrics.rejected.Inc()
		refusedBy = append(refusedBy, seed)
	}
}

// refusesDomain reports whether a seed does not offer the domain of a Shoot: default domains may be in Secrets, which only the API server
// reads.
func refusesDomain(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "spec.dns.domain" })
}

// decide returns a seed for a Shoot, which is none of those that do not offer its domain.
func (r *reconciler) decide(shoot *corev1beta1.Shoot, refusedBy []string) (seed string, err error) {
	start := r.clock.Now()
	defer func() { r.metrics.decisionDuration.Observe(r.clock.Since(start).Seconds()) }()
	request, err := newRequest(shoot)
	if err != nil {
		return "", err
	}
	request.refusedBy = refusedBy
	return r.index.place(request, profileOf(shoot))
}

// bind writes spec.seedName of a Shoot. The error is a conflict if the Shoot has changed since it was read.
func (r *reconciler) bind(ctx context.Context, shoot *corev1beta1.Shoot, seed string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion},
		"spec":     map[string]any{"seedName": seed},
	})
	if err != nil {
		return err
	}
	bound := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	return r.gardenCache.SubResource("binding").Patch(ctx, bound, client.RawPatch(types.MergePatchType, patch))
}

// notBound returns the result of a reconciliation after a failed binding.
func (r *reconciler) notBound(ctx context.Context, shoot *corev1beta1.Shoot, seed string, err error) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(shoot)
	var status apierrors.APIStatus
	rejected := errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
	if rejected { // otherwise the Shoot may be bound; the place is held until the informer shows it or the next attempt
		r.index.release(key)
	}
	switch {
	case apierrors.IsConflict(err):
		r.metrics.conflicted.Inc()
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err): // because of a rule or an object that the index does not have, or not yet
		r.metrics.rejected.Inc()
		req := reconcile.Request{NamespacedName: key}
		return reconcile.Result{RequeueAfter: r.backoff.When(req)}, r.reportFailure(ctx, shoot, fmt.Errorf("seed %q: %w", seed, err))
	}
	return reconcile.Result{}, fmt.Errorf("bind to seed %q: %w", seed, err)
}
