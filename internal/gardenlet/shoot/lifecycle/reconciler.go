package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/turns"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// flowTimeout is the end of one run of a flow, besides the delay of node agents. The next one continues. Machines take some minutes to be
	// created and deleted.
	flowTimeout = 30 * time.Minute
	// fieldManager is the one of server-side apply.
	fieldManager = "gardenlet"
)

type reconciler struct {
	Values
	gardenCache client.Client
	recorder    events.EventRecorder
	// running has the functions that interrupt running flows, by the keys of their shoots.
	running sync.Map
	turns   turns.Turns
	// started is when the first pass began; start sets it.
	started time.Time
	start   sync.Once
}

// relevant are the annotations and the fields of the status on which the decision depends, besides the generation.
func relevant(shoot *corev1beta1.Shoot) [5]string {
	a := shoot.Annotations
	return [5]string{
		a[constants.ShootIgnore], a[constants.ShootSyncPeriod], a[constants.ConfirmationForceDeletion], responsible(shoot),
		string(ptr.Deref(kube.Condition(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration), corev1beta1.Condition{}).Status),
	}
}

// Reconcile creates, changes, hibernates, releases or deletes the control plane of a Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot, seed := &corev1beta1.Shoot{}, &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %q: %w", r.SeedName, err)
	}
	// Not when the process has started: it may have waited for the leader election.
	r.start.Do(func() { r.started = r.Clock.Now() })
	v := decide(facts{
		shoot: shoot, seed: seed, seedName: r.SeedName, version: r.Gardener.Version, config: r.Config, now: r.Clock.Now(), started: r.started,
	})
	logf.FromContext(ctx).V(1).Info("Decided what to do", "action", v.action, "reason", v.reason, "checkAgainIn", v.after)
	switch v.action {
	case idle:
		if v.after > 0 { // it is a shoot of this seed
			if err := r.endIgnoring(ctx, shoot, seed); err != nil {
				return clusterResult(err)
			}
		}
		return reconcile.Result{RequeueAfter: v.after}, nil
	case removeFinalizer:
		status := r.statusReporter(shoot, v)
		if err := status.succeeded(ctx, nil); err != nil { // the API server allows it only after a deletion that has succeeded
			return kube.Result(err)
		}
		return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, status.shoot, constants.FinalizerGardenerName))
	case writeCluster:
		return clusterResult(r.updateCluster(ctx, shoot, seed))
	case postpone:
		if err := r.statusReporter(shoot, v).postponed(ctx, v.reason); err != nil {
			return kube.Result(err)
		}
		return reconcile.Result{RequeueAfter: v.after}, nil
	case reconcileShoot, migrateShoot, deleteShoot:
	}
	if !r.turns.Take(shoot.Namespace, mostOperations(shoot.Namespace, r.Config.ConcurrentSyncs)) {
		logf.FromContext(ctx).V(1).Info("Waiting for other shoots of the project")
		return reconcile.Result{RequeueAfter: retryTurn}, nil
	}
	defer r.turns.Give(shoot.Namespace)
	if v.action == reconcileShoot {
		if err := kube.AddFinalizer(ctx, r.gardenCache, shoot, constants.FinalizerGardenerName); err != nil {
			return kube.Result(err)
		}
	}
	return r.operate(ctx, shoot, seed, v)
}

func (r *reconciler) observer() observer {
	return observer{gardenCache: r.gardenCache, gardenAPI: r.GardenAPI, seedAPI: r.SeedAPI, gateways: r.Gateways}
}

// observe reads what is known of a shoot.
func (r *reconciler) observe(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) (*observed.State, error) {
	return r.observer().observe(ctx, shoot, seed)
}

// updateCluster writes the Cluster resource of a shoot that is ignored, if it has one.
func (r *reconciler) updateCluster(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) error {
	if shoot.Status.TechnicalID == "" {
		return nil
	}
	o, err := r.observe(ctx, shoot, seed)
	if err != nil || !o.HasNamespace || o.CloudProfile == nil {
		return err
	}
	return r.writeCluster(ctx, o, shoot)
}

// endIgnoring writes the Cluster resource of a shoot that extensions still ignore although it is not to be ignored any more.
func (r *reconciler) endIgnoring(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) error {
	if shoot.Status.TechnicalID == "" {
		return nil
	}
	cluster, err := extension.ReadCluster(ctx, r.SeedAPI, shoot.Status.TechnicalID)
	if err != nil || cluster.SkipReason() == "" {
		return err
	}
	return r.updateCluster(ctx, shoot, seed)
}

// clusterResult is the result of a pass that only writes the Cluster resource. An object that it needs and that is missing may stay so,
// which is an error and not a conflict.
func clusterResult(err error) (reconcile.Result, error) {
	if kube.Contested(err) {
		return kube.Result(err)
	}
	return reconcile.Result{}, err
}

func (r *reconciler) statusReporter(shoot *corev1beta1.Shoot, v verdict) *statusReporter {
	return &statusReporter{
		gardenCache: r.gardenCache, recorder: r.recorder, clock: r.Clock, shoot: shoot, operation: v.operation, generation: shoot.Generation,
		gardener: r.Gardener, retry: r.Config.RetryDuration.Duration,
	}
}

// checkNamespace refuses to reconcile a Shoot in a seed that does not have its control plane: a new one would have other credentials, which replace those of
// its ShootState, and would delete its machines, which it does not know. That is the state after a cluster was exchanged for another one under the same Seed,
// or after the garden was restored as it was before a move.
func (r *reconciler) checkNamespace(v verdict, o *observed.State) error {
	if o.HasNamespace || v.action != reconcileShoot || v.operation != corev1beta1.LastOperationTypeReconcile {
		return nil
	}
	return fmt.Errorf("namespace %q with the control plane does not exist in seed %q, where the shoot was reconciled before: it is not created again, "+
		"as its credentials and machines would be lost; bring the seed's cluster back, or hand the shoot over to the seed that has or restores it, see docs/migration.md", o.Namespace, r.SeedName)
}

// operate runs the flow of an operation.
func (r *reconciler) operate(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, v verdict) (reconcile.Result, error) {
	status := r.statusReporter(shoot, v)
	if v.action == migrateShoot {
		if err := r.mayMigrate(ctx, shoot); err != nil {
			return r.failed(ctx, status, err)
		}
	}
	o, err := r.observe(ctx, shoot, seed)
	if err == nil {
		err = r.checkNamespace(v, o)
	}
	if err == nil && v.operation == corev1beta1.LastOperationTypeRestore {
		o.Restoration, err = r.restoration(ctx, o)
	}
	if err != nil {
		return r.failed(ctx, status, err)
	}
	begun, err := status.begun(ctx, o, r.SeedName)
	if err != nil {
		return kube.Result(err)
	}
	if err := r.removeOperations(ctx, shoot, begun); err != nil {
		return kube.Result(err)
	}
	o.Shoot = status.shoot.DeepCopy() // with its present status
	compose := r.reconcileFlow
	switch {
	case forced(o.Shoot):
		compose = r.forcedFlow
	case v.action == deleteShoot:
		compose = r.deletionFlow
	case v.action == migrateShoot:
		compose = r.migrationFlow
	}
	f, err := compose(o)
	if err != nil {
		return r.failed(ctx, status, err)
	}
	logf.FromContext(ctx).Info("Beginning operation", "operation", v.operation, "reason", v.reason)
	if err := r.run(ctx, status, f); errors.Is(err, errForced) {
		return reconcile.Result{}, nil // the change of the annotation has queued the shoot
	} else if err != nil {
		return r.failed(ctx, status, err)
	}
	if v.action == migrateShoot {
		if ptr.Deref(status.shoot.Spec.SeedName, "") != ptr.Deref(o.Shoot.Spec.SeedName, "") {
			// It was bound to another seed meanwhile, and was released for the former one.
			return reconcile.Result{RequeueAfter: firstRetry}, nil
		}
		// The status is the last write: with it, the gardenlet of the other seed is responsible, and this one has no permission any more.
		if err := r.updateAnnotation(ctx, shoot, constants.ShootTasks, func(string) string { return "" }); err != nil {
			return kube.Result(err)
		}
		return kube.Result(status.succeeded(ctx, o))
	}
	if v.action == reconcileShoot { // extensions may have exposed something meanwhile
		if o.Endpoints, err = r.observer().endpoints(ctx, o.Namespace); err != nil {
			return r.failed(ctx, status, err)
		}
	}
	if err := status.succeeded(ctx, o); err != nil {
		return kube.Result(err)
	}
	if v.action == deleteShoot { // only now, as above
		return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, status.shoot, constants.FinalizerGardenerName))
	}
	if err := r.removeTasks(ctx, status.shoot, requestedTasks(o.Shoot)); err != nil {
		return kube.Result(err)
	}
	const force = constants.ShootOperationForceInPlaceUpdate
	if status.shoot.Annotations[constants.GardenerOperation] == force && !status.shoot.Status.AnyUpdatePending() {
		if err := r.removeOperations(ctx, status.shoot, []string{force}); err != nil {
			return kube.Result(err)
		}
	}
	if err := r.removeSkipReadiness(ctx, o.Shoot); err != nil {
		return kube.Result(err)
	}
	if v.operation == corev1beta1.LastOperationTypeRestore {
		if err := r.deleteState(ctx, status.shoot); err != nil {
			return kube.Result(err)
		}
	}
	// Extensions read the last operation, too.
	if err := r.writeCluster(ctx, o, status.shoot); err != nil {
		return reconcile.Result{}, err
	}
	if rotating(status.shoot) { // the next step of the rotation begins at once
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	return reconcile.Result{RequeueAfter: nextRegular(facts{shoot: status.shoot, config: r.Config, now: r.Clock.Now()}).Sub(r.Clock.Now())}, nil
}

// failed reports an error, and when to try again. A conflict is retried without a report. An object that is missing may stay so, which is
// reported.
func (r *reconciler) failed(ctx context.Context, status *statusReporter, err error) (reconcile.Result, error) {
	if kube.Contested(err) && len(errorcode.Of(err)) == 0 {
		return kube.Result(err)
	}
	final, reported := status.failed(ctx, err)
	if final {
		err = reconcile.TerminalError(err)
	}
	return reconcile.Result{}, kube.Reported(err, reported)
}

// timeoutOf is the end of one run of a flow of a shoot. Node agents may wait longer than anything else.
func timeoutOf(shoot *corev1beta1.Shoot) time.Duration {
	return flowTimeout + observed.NodeAgentDelay(shoot)
}

// run runs a flow and reports its progress.
func (r *reconciler) run(ctx context.Context, status *statusReporter, f *flow.Flow) error {
	timeout := timeoutOf(status.shoot)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
	defer cancel()
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	key := client.ObjectKeyFromObject(status.shoot)
	r.running.Store(key, interrupt)
	defer r.running.Delete(key)
	begin := r.Clock.Now()
	var period time.Duration
	if p := r.Config.ProgressReportPeriod; p != nil {
		period = p.Duration
	}
	offer, stop := flow.LatestEvery(period, func(p flow.Progress) { status.progress(ctx, p) })
	log := logf.FromContext(ctx)
	timings := log
	if status.operation == corev1beta1.LastOperationTypeReconcile {
		timings = log.V(1) // it is repeated regularly, other operations are not
	}
	options := flow.Options{Progress: offer, Metrics: r.FlowMetrics, Clock: r.Clock, Ended: flow.LogTimings(timings, f.Name())}
	if status.operation == corev1beta1.LastOperationTypeCreate {
		// Other tasks would wait for what never comes, such as nodes that cannot resolve the name of their control plane. A shoot that exists is
		// reconciled as far as possible.
		options.StopOn = func(err error) bool { return errorcode.NeedsUser(errorcode.Of(err)) }
	}
	_, err := f.Run(ctx, options)
	stop()
	r.Metrics.observe(status.operation, status.shoot, r.Clock.Since(begin), err)
	log.Info("Ended flow", "flow", f.Name(), "took", r.Clock.Since(begin).Round(time.Millisecond).String(), "succeeded", err == nil)
	if err != nil && errors.Is(context.Cause(ctx), errForced) {
		return errForced
	}
	return err
}

// errForced ends a flow that waits for what a deletion by force does not wait for.
var errForced = errors.New("the shoot is deleted by force from now on")

// interrupt ends the flow of a shoot, if one runs.
func (r *reconciler) interrupt(shoot *corev1beta1.Shoot) {
	if end, ok := r.running.Load(client.ObjectKeyFromObject(shoot)); ok {
		end.(context.CancelCauseFunc)(errForced) //nolint:forcetypeassert // the map has nothing else
	}
}
