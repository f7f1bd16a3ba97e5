package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// flowTimeout is the end of one run of a flow. The next one continues.
	flowTimeout = 30 * time.Minute
	// fieldManager is the one of server-side apply.
	fieldManager = "gardener-operator"
	// defaultSyncPeriod is how often an unchanged Garden is reconciled.
	defaultSyncPeriod = time.Hour
)

type reconciler struct {
	Values
	runtimeCache client.Client
	recorder     events.EventRecorder
	running      interruptions
}

// Reconcile runs the flows for a Garden, or the one that deletes it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	garden := &operatorv1alpha1.Garden{}
	if err := r.runtimeCache.Get(ctx, req.NamespacedName, garden); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status := &statusReporter{
		runtimeCache: r.runtimeCache, recorder: r.recorder, clock: r.Clock, garden: garden, gardener: r.Gardener, operation: corev1beta1.LastOperationTypeReconcile,
	}
	if garden.DeletionTimestamp != nil {
		status.operation = corev1beta1.LastOperationTypeDelete
		return r.delete(ctx, status)
	}
	if older, err := r.olderGarden(ctx, garden); err != nil {
		return reconcile.Result{}, err
	} else if older != "" {
		err := fmt.Errorf("there is another Garden, %q, and a runtime cluster can have one only: delete this one", older)
		return reconcile.Result{}, kube.Reported(reconcile.TerminalError(err), status.failed(ctx, err))
	}
	if err := kube.AddFinalizer(ctx, r.runtimeCache, garden, operatorv1alpha1.FinalizerName); err != nil {
		return kube.Result(err)
	}
	return r.reconcile(ctx, status)
}

// reconcile runs the flow for the runtime cluster, and then the one for the virtual cluster.
func (r *reconciler) reconcile(ctx context.Context, status *statusReporter) (reconcile.Result, error) {
	begun, err := status.begun(ctx)
	if err != nil {
		return kube.Result(err)
	}
	if err := r.removeOperations(ctx, status.garden, begun); err != nil {
		return kube.Result(err)
	}
	s, err := r.observe(ctx, status.garden)
	if err != nil {
		return r.failed(ctx, status, err)
	}
	for _, step := range []struct {
		compose func() (*flow.Flow, error)
		share   share
	}{{s.runtimeFlow, share{0, 30}}, {s.virtualFlow, share{30, 100}}} {
		f, err := step.compose()
		if err == nil {
			err = r.run(ctx, status, f, step.share, s.garden.Generation)
		}
		if err != nil {
			return r.failed(ctx, status, err)
		}
	}
	if err := status.succeeded(ctx, s.source); err != nil {
		return kube.Result(err)
	}
	if continues(status.garden) { // the next step of a rotation begins at once
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	period := defaultSyncPeriod
	if p := r.Config.Controllers.Garden.SyncPeriod; p != nil {
		period = p.Duration
	}
	return reconcile.Result{RequeueAfter: period}, nil
}

// delete runs the flow that deletes everything, and removes the finalizer.
func (r *reconciler) delete(ctx context.Context, status *statusReporter) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(status.garden, operatorv1alpha1.FinalizerName) {
		return reconcile.Result{}, nil
	}
	if _, err := status.begun(ctx); err != nil {
		return kube.Result(err)
	}
	s, err := r.observe(ctx, status.garden)
	if err != nil {
		return r.failed(ctx, status, err)
	}
	f, err := s.deletionFlow()
	if err == nil {
		err = r.run(ctx, status, f, share{0, 100}, s.garden.Generation)
	}
	if err != nil {
		return r.failed(ctx, status, err)
	}
	if err := status.succeeded(ctx, s.source); err != nil {
		return kube.Result(err)
	}
	return kube.Result(kube.RemoveFinalizer(ctx, r.runtimeCache, status.garden, operatorv1alpha1.FinalizerName))
}

// failed reports an error, and when to try again. A conflict is retried without a report, and a flow that was interrupted is no error.
func (r *reconciler) failed(ctx context.Context, status *statusReporter, err error) (reconcile.Result, error) {
	if errors.Is(err, errChanged) {
		return reconcile.Result{}, nil
	}
	if kube.Contested(err) {
		return kube.Result(err)
	}
	return reconcile.Result{}, errors.Join(err, status.failed(ctx, err))
}

// run runs a flow and reports its progress, which is a share of that of the operation. It returns errChanged if the Garden has a later generation than the
// flow meanwhile.
func (r *reconciler) run(ctx context.Context, status *statusReporter, f *flow.Flow, of share, generation int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, flowTimeout, fmt.Errorf("not done within %s", flowTimeout))
	defer cancel()
	ctx, end := r.running.begin(ctx, status.garden.Name)
	defer end()
	latest := &operatorv1alpha1.Garden{} // it may have changed before the flow could be interrupted
	if err := r.runtimeCache.Get(ctx, client.ObjectKeyFromObject(status.garden), latest); err == nil && latest.Generation > generation {
		r.running.interrupt(latest.Name, r.Clock.Now(), latest.DeletionTimestamp != nil && status.operation != corev1beta1.LastOperationTypeDelete)
	}
	begin := r.Clock.Now()
	offer, stop := flow.Latest(func(p flow.Progress) { status.progress(ctx, of, p) })
	log := logf.FromContext(ctx)
	options := flow.Options{Progress: offer, Metrics: r.FlowMetrics, Clock: r.Clock, Ended: flow.LogTimings(log.V(1), f.Name())}
	if c := status.garden.Status.Credentials; c == nil || c.EncryptionAtRest == nil {
		// It was never reconciled to the end: other tasks would wait for what never comes. A Garden that exists is reconciled as far as possible.
		options.StopOn = func(error) bool { return true }
	}
	_, err := f.Run(ctx, options)
	stop()
	log.Info("Ended flow", "flow", f.Name(), "took", r.Clock.Since(begin).Round(time.Millisecond).String(), "succeeded", err == nil)
	if err != nil && errors.Is(context.Cause(ctx), errChanged) {
		return errChanged
	}
	return err
}

// removeOperations removes the operations that have begun from the annotation: the status has them now.
func (r *reconciler) removeOperations(ctx context.Context, garden *operatorv1alpha1.Garden, begun []string) error {
	if len(begun) == 0 {
		return nil
	}
	return kube.RemoveFromAnnotation(ctx, r.RuntimeAPI, garden, constants.GardenerOperation, constants.OperationsSeparator, begun)
}
