package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// flowTimeout is the end of one run of a flow. The next one goes on where it was. Machines take some minutes to come and go.
	flowTimeout = 30 * time.Minute
	// owner is the field manager.
	owner = "gardenlet"
)

type reconciler struct {
	Values
	gardenClient client.Client
	// live reads what is not worth a cache.
	live     client.Reader
	recorder events.EventRecorder
	// running has what ends the flows that run, by the key of their shoots.
	running sync.Map
}

// relevant are the annotations that decide what happens to a shoot, besides its generation.
func relevant(shoot *corev1beta1.Shoot) [3]string {
	a := shoot.Annotations
	return [3]string{a[constants.ShootIgnore], a[constants.ShootSyncPeriod], a[constants.ConfirmationForceDeletion]}
}

// Reconcile makes a control plane be as its Shoot wants it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot, seed := &corev1beta1.Shoot{}, &corev1beta1.Seed{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.gardenClient.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %q: %w", r.SeedName, err)
	}
	v := decide(facts{shoot: shoot, seed: seed, seedName: r.SeedName, version: r.Gardener.Version, config: r.Config, now: r.Clock.Now()})
	logf.FromContext(ctx).V(1).Info("Decided what to do", "action", v.action, "reason", v.reason, "lookAgainIn", v.after)
	switch v.action {
	case idle:
		if v.after > 0 { // it is ours
			if err := r.recall(ctx, shoot, seed); err != nil {
				return told(err)
			}
		}
		return reconcile.Result{RequeueAfter: v.after}, nil
	case release:
		status := r.reporter(shoot, v)
		if err := status.succeeded(ctx, nil); err != nil { // the API wants to be told that nothing is left
			return kube.Result(err)
		}
		return kube.Result(kube.RemoveFinalizer(ctx, r.gardenClient, status.shoot, constants.FinalizerGardenerName))
	case tell:
		return told(r.tell(ctx, shoot, seed))
	case postpone:
		if err := r.reporter(shoot, v).postponed(ctx, v.reason); err != nil {
			return kube.Result(err)
		}
		return reconcile.Result{RequeueAfter: v.after}, nil
	case reconcileShoot, remove:
	}
	if v.action == reconcileShoot {
		if err := kube.AddFinalizer(ctx, r.gardenClient, shoot, constants.FinalizerGardenerName); err != nil {
			return kube.Result(err)
		}
	}
	return r.operate(ctx, shoot, seed, v)
}

// tell writes the Cluster resource of a shoot that is left alone, if it has one.
func (r *reconciler) tell(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) error {
	if shoot.Status.TechnicalID == "" {
		return nil
	}
	w, err := r.observe(ctx, shoot, seed)
	if err != nil || !w.hasNamespace || w.cloudProfile == nil {
		return err
	}
	return r.syncCluster(ctx, w, shoot)
}

// recall writes the Cluster resource of a shoot that extensions still leave alone although nobody wants that any more.
func (r *reconciler) recall(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) error {
	if shoot.Status.TechnicalID == "" {
		return nil
	}
	cluster, err := extension.ReadCluster(ctx, r.SeedClient, shoot.Status.TechnicalID)
	if err != nil || cluster.Resting() == "" {
		return err
	}
	return r.tell(ctx, shoot, seed)
}

// told is how a pass ends in which extensions were told something. What is missing for it may stay away.
func told(err error) (reconcile.Result, error) {
	if kube.Contested(err) {
		return kube.Result(err)
	}
	return reconcile.Result{}, err
}

func (r *reconciler) reporter(shoot *corev1beta1.Shoot, v verdict) *reporter {
	return &reporter{
		client: r.gardenClient, recorder: r.recorder, clock: r.Clock, shoot: shoot, operation: v.operation, generation: shoot.Generation,
		gardener: r.Gardener, retry: r.Config.RetryDuration.Duration,
	}
}

// operate runs the flow of an operation.
func (r *reconciler) operate(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, v verdict) (reconcile.Result, error) {
	status := r.reporter(shoot, v)
	w, err := r.observe(ctx, shoot, seed)
	if err != nil {
		return r.failed(ctx, status, err)
	}
	if err := status.begun(ctx, w, r.SeedName); err != nil {
		return kube.Result(err)
	}
	if v.action == reconcileShoot {
		if err := r.takeOperations(ctx, shoot); err != nil {
			return kube.Result(err)
		}
	}
	w.shoot = status.shoot.DeepCopy() // with what the status says now
	compose := r.reconcileFlow
	switch {
	case forced(w.shoot):
		compose = r.forcedFlow
	case v.action == remove:
		compose = r.deletionFlow
	}
	f, err := compose(w)
	if err != nil {
		return r.failed(ctx, status, err)
	}
	logf.FromContext(ctx).Info("Beginning operation", "operation", v.operation, "reason", v.reason)
	if err := r.run(ctx, status, f, w); errors.Is(err, errForced) {
		return reconcile.Result{}, nil // the change has brought the shoot back into the queue
	} else if err != nil {
		return r.failed(ctx, status, err)
	}
	if err := status.succeeded(ctx, w); err != nil {
		return kube.Result(err)
	}
	if v.action == remove { // only now, as above
		return kube.Result(kube.RemoveFinalizer(ctx, r.gardenClient, status.shoot, constants.FinalizerGardenerName))
	}
	if err := r.dropTasks(ctx, status.shoot, tasksOf(w.shoot)); err != nil {
		return kube.Result(err)
	}
	// Extensions look at the last operation, too.
	if err := r.syncCluster(ctx, w, status.shoot); err != nil {
		return reconcile.Result{}, err
	}
	if rotating(status.shoot) { // the end of one step is the beginning of the next
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	return reconcile.Result{RequeueAfter: nextRegular(facts{shoot: status.shoot, config: r.Config, now: r.Clock.Now()}).Sub(r.Clock.Now())}, nil
}

// rotating is whether a rotation goes on by itself.
func rotating(shoot *corev1beta1.Shoot) bool {
	c := shoot.Status.Credentials
	if c == nil || c.Rotation == nil {
		return false
	}
	ca, key := c.Rotation.CertificateAuthorities, c.Rotation.ETCDEncryptionKey
	return key != nil && key.Phase == corev1beta1.RotationCompleting ||
		ca != nil && ca.Phase == corev1beta1.RotationCompleted && ca.LastCompletionTriggeredTime != nil
}

// failed reports an error, and says when to try again. What a shoot refers to and is missing may stay away, so people hear of it.
func (r *reconciler) failed(ctx context.Context, status *reporter, err error) (reconcile.Result, error) {
	if kube.Contested(err) && len(errorcode.Of(err)) == 0 {
		return kube.Result(err)
	}
	final, reported := status.failed(ctx, err)
	err = errors.Join(err, reported)
	if final {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return reconcile.Result{}, err
}

// takeOperations takes the operations off the annotation that are in the status now: those which were there when the pass began.
func (r *reconciler) takeOperations(ctx context.Context, shoot *corev1beta1.Shoot) error {
	asked := shoot.Annotations[constants.GardenerOperation]
	if asked == "" {
		return nil
	}
	others := kube.SplitAnnotation(order(shoot.DeepCopy(), metav1.NewTime(r.Clock.Now())), constants.OperationsSeparator)
	done := slices.DeleteFunc(kube.SplitAnnotation(asked, constants.OperationsSeparator), func(operation string) bool { return slices.Contains(others, operation) })
	return r.leave(ctx, shoot, constants.GardenerOperation, func(now string) string {
		left := slices.DeleteFunc(kube.SplitAnnotation(now, constants.OperationsSeparator), func(operation string) bool { return slices.Contains(done, operation) })
		return strings.Join(left, constants.OperationsSeparator)
	})
}

// leave writes what is left of an annotation. What somebody adds to it meanwhile stays.
func (r *reconciler) leave(ctx context.Context, shoot *corev1beta1.Shoot, annotation string, left func(now string) string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := &corev1beta1.Shoot{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(shoot), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		rest := left(current.Annotations[annotation])
		if rest == current.Annotations[annotation] {
			return nil
		}
		before := current.DeepCopy()
		if rest == "" {
			delete(current.Annotations, annotation)
		} else {
			current.Annotations[annotation] = rest
		}
		return r.gardenClient.Patch(ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// run runs a flow and reports its progress.
func (r *reconciler) run(ctx context.Context, status *reporter, f *flow.Flow, w *world) error {
	ctx, cancel := context.WithTimeoutCause(ctx, flowTimeout, fmt.Errorf("not done within %s", flowTimeout))
	defer cancel()
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	key := client.ObjectKeyFromObject(status.shoot)
	r.running.Store(key, interrupt)
	defer r.running.Delete(key)
	begin := r.Clock.Now()
	offer, stop := flow.Latest(func(p flow.Progress) { status.progress(ctx, p) })
	log := logf.FromContext(ctx)
	timings := log
	if status.operation == corev1beta1.LastOperationTypeReconcile {
		timings = log.V(1) // it happens again and again; what happens once is worth its lines
	}
	_, err := f.Run(ctx, flow.Options{
		Progress: offer, Metrics: r.FlowMetrics, Clock: r.Clock, Ended: flow.LogTimings(timings, f.Name()),
	})
	stop()
	r.Metrics.observe(status.operation, w, r.Clock.Since(begin), err)
	log.Info("Ended flow", "flow", f.Name(), "took", r.Clock.Since(begin).Round(time.Millisecond).String(), "succeeded", err == nil)
	if err != nil && errors.Is(context.Cause(ctx), errForced) {
		return errForced
	}
	return err
}

// errForced ends a flow that waits for what is not worth waiting for any more.
var errForced = errors.New("the shoot is deleted by force from now on")

// interrupt ends the flow of a shoot, if it has one.
func (r *reconciler) interrupt(shoot *corev1beta1.Shoot) {
	if end, ok := r.running.Load(client.ObjectKeyFromObject(shoot)); ok {
		end.(context.CancelCauseFunc)(errForced) //nolint:forcetypeassert // nothing else is in there
	}
}
