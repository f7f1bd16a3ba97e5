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
	// statusTimeout limits the last write of the status, also after the reconciliation has timed out.
	statusTimeout = 5 * time.Second
	// retryConflictAfter is when a reconciliation is repeated after a conflict. By then the cache has the other client's write.
	retryConflictAfter = 200 * time.Millisecond
	// defaultWait is Wait.After if an actuator does not set it.
	defaultWait = time.Minute
)

type reconciler[T extensionsv1alpha1.Object] struct {
	Options[T]
	kind, finalizer string
	client          client.Client
	reader          client.Reader // without a cache
	recorder        events.EventRecorder
}

// Reconcile does the operation that is requested for an object.
func (r *reconciler[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj, operation, err := r.read(ctx, r.client, req)
	if err == nil && operation != "" {
		// The cache may not have the end of an operation yet: what it restored or deleted may have changed since, also by a new object of this name.
		// Nor may it have the Cluster that was written before this operation was requested.
		obj, operation, err = r.read(ctx, r.reader, req)
	}
	if err != nil || operation == "" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("timed out after %s", r.Timeout))
	defer cancel()
	var cluster *Cluster
	if req.Namespace != "" && r.ofShoots() {
		if cluster, err = ReadCluster(ctx, r.reader, req.Namespace); err != nil {
			return reconcile.Result{}, err
		}
	}
	if reason := cluster.SkipReason(); reason != "" {
		logf.FromContext(ctx).V(1).Info("Skipping object", "reason", reason)
		return reconcile.Result{}, nil // The watch of Clusters requeues it.
	}
	err = r.operate(ctx, obj, cluster, operation)
	var waiting *Wait
	switch {
	case errors.As(err, &waiting) && waiting.After > 0:
		return reconcile.Result{RequeueAfter: waiting.After}, nil
	case waiting != nil:
		return reconcile.Result{RequeueAfter: defaultWait}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{}, err
}

// read reads an object, and decides which operation is to be done on it.
func (r *reconciler[T]) read(ctx context.Context, reader client.Reader, req reconcile.Request) (T, corev1beta1.LastOperationType, error) {
	obj := newObject[T]()
	if err := reader.Get(ctx, req.NamespacedName, obj); err != nil || !r.responsible(obj) {
		return obj, "", err
	}
	operation := decide(obj, r.finalizer, r.ByGeneration)
	if operation == "" && r.Repair != nil && repairable(obj) {
		lost, err := r.Repair(ctx, obj)
		if err != nil {
			return obj, "", fmt.Errorf("check whether it is to be repaired: %w", err)
		}
		if lost {
			operation = corev1beta1.LastOperationTypeReconcile
		}
	}
	return obj, operation, nil
}

// operate reports that an operation has begun, does it, and reports its result.
func (r *reconciler[T]) operate(ctx context.Context, obj T, cluster *Cluster, operation corev1beta1.LastOperationType) error {
	if err := r.prepare(ctx, obj, operation); err != nil {
		return err
	}
	// The status is about this generation, also if the spec changes during the operation.
	generation, before := obj.GetGeneration(), obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	err := r.act(ctx, obj, cluster, operation)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	var waiting *Wait
	status, text, now := obj.GetExtensionStatus(), texts[operation], r.Clock.Now()
	switch {
	case err == nil && operation == corev1beta1.LastOperationTypeDelete:
		r.recorder.Eventf(obj, nil, corev1.EventTypeNormal, text.succeeded, text.action, "%s is deleted.", r.kind)
		return r.release(ctx, obj)
	case err == nil:
		succeed(status, operation, r.kind+" "+text.done+".", generation, now)
	case apierrors.IsConflict(err): // Reconcile retries it, without an error in the status. What the actuator has written there is kept, as after other errors.
	case errors.As(err, &waiting):
		wait(status, operation, waiting.Reason, generation, now)
	default:
		if last := status.GetLastError(); last == nil || last.Description != err.Error() {
			r.recorder.Eventf(obj, nil, corev1.EventTypeWarning, text.failed, text.action, "%s", err.Error())
		}
		fail(status, operation, err, generation, now)
	}
	statusCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	if statusErr := r.patchStatus(statusCtx, obj, before, client.MergeFrom(before)); statusErr != nil || err != nil {
		return errors.Join(err, statusErr)
	}
	r.recorder.Eventf(obj, nil, corev1.EventTypeNormal, text.succeeded, text.action, "%s %s.", r.kind, text.done)
	if operation == corev1beta1.LastOperationTypeMigrate {
		return r.release(ctx, obj)
	}
	return r.patchMetadata(ctx, obj, func() { removeOperation(obj, constants.GardenerOperationRestore) })
}

// prepare reports that an operation has begun, adds the finalizer, and removes the annotation that requests reconciliation, in this order:
// gardenlet must never see an object that looks ready before it is, and after a restart the operation must still be requested. The annotation
// to migrate or to restore stays until that is done, because the object must not be reconciled before.
func (r *reconciler[T]) prepare(ctx context.Context, obj T, operation corev1beta1.LastOperationType) error {
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	requested := obj.GetAnnotations()[constants.GardenerOperation] != ""
	begin(obj.GetExtensionStatus(), operation, r.kind+" "+texts[operation].doing+".", requested, r.Clock.Now())
	if err := r.patchStatus(ctx, obj, before, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	return r.patchMetadata(ctx, obj, func() {
		if operation != corev1beta1.LastOperationTypeDelete && operation != corev1beta1.LastOperationTypeMigrate {
			controllerutil.AddFinalizer(obj, r.finalizer)
		}
		removeOperation(obj, constants.GardenerOperationReconcile)
	})
}

// act calls the actuator.
func (r *reconciler[T]) act(ctx context.Context, obj T, cluster *Cluster, operation corev1beta1.LastOperationType) error {
	logf.FromContext(ctx).Info("Calling actuator", "operation", operation)
	switch operation {
	case corev1beta1.LastOperationTypeDelete:
		if deleter, ok := r.Actuator.(ForceDeleter[T]); ok && cluster.forceDeleted() {
			return deleter.ForceDelete(ctx, obj, cluster)
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

// patchStatus writes the status, if it differs.
func (r *reconciler[T]) patchStatus(ctx context.Context, obj T, before client.Object, patch client.Patch) error {
	if apiequality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, obj, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// patchMetadata writes finalizers and annotations, if they differ. The error is a conflict if the object has changed since it was read.
func (r *reconciler[T]) patchMetadata(ctx context.Context, obj T, change func()) error {
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

// release removes the finalizer, and the annotation that requests to migrate.
func (r *reconciler[T]) release(ctx context.Context, obj T) error {
	return r.patchMetadata(ctx, obj, func() {
		controllerutil.RemoveFinalizer(obj, r.finalizer)
		removeOperation(obj, constants.GardenerOperationMigrate)
	})
}

// removeOperation removes the annotation that requests an operation.
func removeOperation(obj client.Object, operation string) {
	annotations := obj.GetAnnotations()
	if annotations[constants.GardenerOperation] == operation {
		delete(annotations, constants.GardenerOperation)
		obj.SetAnnotations(annotations)
	}
}

// operationTexts are what descriptions and events say about an operation.
type operationTexts struct {
	doing, done               string
	action, succeeded, failed string
}

var texts = map[corev1beta1.LastOperationType]operationTexts{
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
		"is being prepared for migration", "is prepared for migration", constants.EventActionMigrate, constants.EventMigrationPrepared, constants.EventMigrationPreparationFailed,
	},
	corev1beta1.LastOperationTypeRestore: {
		"is being restored", "is restored", constants.EventActionReconcile, constants.EventReconciled, constants.EventReconcileError,
	},
}
