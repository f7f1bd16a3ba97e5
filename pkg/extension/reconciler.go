package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// reportTimeout is how long the closing write of the status may take, also after the pass has run out of time.
	reportTimeout = 5 * time.Second
	// retryConflictAfter is when a pass is repeated that met a conflict. By then the cache has what somebody else wrote.
	retryConflictAfter = 200 * time.Millisecond
	// lookAgainAfter is when to look again at what an actuator waits for, if it does not say.
	lookAgainAfter = time.Minute
)

type reconciler[T extensionsv1alpha1.Object] struct {
	Options[T]
	kind, finalizer string
	client          client.Client
	recorder        events.EventRecorder
}

// Reconcile does what is asked for.
func (r *reconciler[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := newObject[T]()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	operation := decide(obj, r.finalizer, r.ByGeneration)
	if !r.responsible(obj) || operation == "" {
		return reconcile.Result{}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("not done after %s", r.Timeout))
	defer cancel()
	var cluster *Cluster
	if req.Namespace != "" {
		var err error
		if cluster, err = ReadCluster(ctx, r.client, req.Namespace); err != nil {
			return reconcile.Result{}, err
		}
	}
	if reason := cluster.Resting(); reason != "" {
		logf.FromContext(ctx).V(1).Info("Leaving it alone", "reason", reason)
		return reconcile.Result{}, nil // The Cluster brings it back.
	}
	err := r.operate(ctx, obj, cluster, operation)
	var waiting *Wait
	switch {
	case errors.As(err, &waiting) && waiting.After > 0:
		return reconcile.Result{RequeueAfter: waiting.After}, nil
	case waiting != nil:
		return reconcile.Result{RequeueAfter: lookAgainAfter}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{}, err
}

// operate begins an operation, does it, and reports how it ended.
func (r *reconciler[T]) operate(ctx context.Context, obj T, cluster *Cluster, operation corev1beta1.LastOperationType) error {
	if err := r.prepare(ctx, obj, operation); err != nil {
		return err
	}
	// What is reported is about the spec of now, whatever is written meanwhile.
	generation, before := obj.GetGeneration(), obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	err := r.act(ctx, obj, cluster, operation)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	var waiting *Wait
	status, said, now := obj.GetExtensionStatus(), words[operation], r.Clock.Now()
	switch {
	case err == nil && operation == corev1beta1.LastOperationTypeDelete:
		r.recorder.Eventf(obj, nil, corev1.EventTypeNormal, said.succeeded, said.action, "%s is deleted.", r.kind)
		return r.release(ctx, obj)
	case err == nil:
		succeed(status, operation, r.kind+" "+said.done+".", generation, now)
	case apierrors.IsConflict(err):
		return err // Routine: the pass is repeated, and nobody hears of it.
	case errors.As(err, &waiting):
		wait(status, operation, waiting.Reason, generation, now)
	default:
		if last := status.GetLastError(); last == nil || last.Description != err.Error() {
			r.recorder.Eventf(obj, nil, corev1.EventTypeWarning, said.failed, said.action, "%s", err.Error())
		}
		fail(status, operation, err, generation, now)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if reported := r.report(closing, obj, before, client.MergeFrom(before)); reported != nil || err != nil {
		return errors.Join(err, reported)
	}
	r.recorder.Eventf(obj, nil, corev1.EventTypeNormal, said.succeeded, said.action, "%s %s.", r.kind, said.done)
	if operation == corev1beta1.LastOperationTypeMigrate {
		return r.release(ctx, obj)
	}
	return r.mark(ctx, obj, func() { answer(obj, constants.GardenerOperationRestore) })
}

// prepare reports that an operation has begun, puts the finalizer on, and takes the annotation away that asked to reconcile, in this
// order: whoever waits must never see an object that looks done, and a process that starts again must find what it was about to do.
// What asks to migrate and to restore stays until that is done, because the object must not be reconciled before.
func (r *reconciler[T]) prepare(ctx context.Context, obj T, operation corev1beta1.LastOperationType) error {
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	asked := obj.GetAnnotations()[constants.GardenerOperation] != ""
	begin(obj.GetExtensionStatus(), operation, r.kind+" "+words[operation].doing+".", asked, r.Clock.Now())
	if err := r.report(ctx, obj, before, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	return r.mark(ctx, obj, func() {
		if operation != corev1beta1.LastOperationTypeDelete && operation != corev1beta1.LastOperationTypeMigrate {
			controllerutil.AddFinalizer(obj, r.finalizer)
		}
		answer(obj, constants.GardenerOperationReconcile)
	})
}

// act calls the actuator.
func (r *reconciler[T]) act(ctx context.Context, obj T, cluster *Cluster, operation corev1beta1.LastOperationType) error {
	logf.FromContext(ctx).Info("Calling actuator", "operation", operation)
	switch operation {
	case corev1beta1.LastOperationTypeDelete:
		if forced, ok := r.Actuator.(ForceDeleter[T]); ok && cluster.forced() {
			return forced.ForceDelete(ctx, obj, cluster)
		}
		return r.Actuator.Delete(ctx, obj, cluster)
	case corev1beta1.LastOperationTypeMigrate:
		if migrator, ok := r.Actuator.(Migrator[T]); ok {
			return migrator.Migrate(ctx, obj, cluster)
		}
		return nil
	case corev1beta1.LastOperationTypeRestore:
		if restorer, ok := r.Actuator.(Restorer[T]); ok {
			return restorer.Restore(ctx, obj, cluster)
		}
	}
	return r.Actuator.Reconcile(ctx, obj, cluster)
}

// report writes the status, if it differs.
func (r *reconciler[T]) report(ctx context.Context, obj T, before client.Object, patch client.Patch) error {
	if apiequality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, obj, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// mark writes finalizers and annotations, if they differ, and if nobody else has written meanwhile.
func (r *reconciler[T]) mark(ctx context.Context, obj T, change func()) error {
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	change()
	if apiequality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	err := r.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write finalizers and annotations: %w", err)
	}
	return nil
}

// release lets an object go.
func (r *reconciler[T]) release(ctx context.Context, obj T) error {
	return r.mark(ctx, obj, func() {
		controllerutil.RemoveFinalizer(obj, r.finalizer)
		answer(obj, constants.GardenerOperationMigrate)
	})
}

// answer takes an order off an object.
func answer(obj client.Object, order string) {
	annotations := obj.GetAnnotations()
	if annotations[constants.GardenerOperation] == order {
		delete(annotations, constants.GardenerOperation)
		obj.SetAnnotations(annotations)
	}
}

// phrases are how an operation is called in descriptions and events.
type phrases struct {
	doing, done               string
	action, succeeded, failed string
}

var words = map[corev1beta1.LastOperationType]phrases{
	corev1beta1.LastOperationTypeCreate: {
		"is being created", "is created", constants.EventActionReconcile, constants.EventReconciled, constants.EventReconcileError,
	},
	corev1beta1.LastOperationTypeReconcile: {
		"is being reconciled", "is reconciled", constants.EventActionReconcile, constants.EventReconciled, constants.EventReconcileError,
	},
	corev1beta1.LastOperationTypeDelete: {
		"is being deleted", "is deleted", constants.EventActionDelete, constants.EventDeleted, constants.EventDeleteError,
	},
	corev1beta1.LastOperationTypeMigrate: {
		"is being prepared to move", "is ready to move", constants.EventActionMigrate, constants.EventMigrationPrepared, constants.EventMigrationPreparationFailed,
	},
	corev1beta1.LastOperationTypeRestore: {
		"is being restored", "is restored", constants.EventActionReconcile, constants.EventReconciled, constants.EventReconcileError,
	},
}
