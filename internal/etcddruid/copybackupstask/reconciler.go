package copybackupstask

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/etcddruid/etcd"
	"gardener.cloud/gardener/internal/kube"
)

const (
	fieldOwner = "etcd-druid"
	// reportTimeout is how long the closing write of the status may take.
	reportTimeout = 5 * time.Second
)

// reconciler creates Jobs. They are deleted with their tasks, by their owner references.
type reconciler struct {
	client client.Client
	api    client.Reader // for Secrets, which are not in the cache
	clock  clock.PassiveClock
	image  string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	task := &druidv1alpha1.EtcdCopyBackupsTask{}
	if err := r.client.Get(ctx, req.NamespacedName, task); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if task.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	before := task.DeepCopy()
	job := &batchv1.Job{}
	defer func() { err = kube.Reported(err, r.report(ctx, task, before, job, err)) }()
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: task.Namespace, Name: jobName(task.Name)}, job); {
	case err == nil:
		return reconcile.Result{}, nil // a Job is immutable
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("read Job: %w", err)
	}
	if finished(task) {
		return reconcile.Result{}, nil // its Job was cleaned up
	}
	values := jobValues{Task: task, Image: r.image}
	for _, side := range []struct {
		store *druidv1alpha1.StoreSpec
		path  *string
	}{{&task.Spec.SourceStore, &values.SourceHostPath}, {&task.Spec.TargetStore, &values.TargetHostPath}} {
		if etcd.IsLocal(side.store) {
			if *side.path, err = etcd.HostPath(ctx, r.api, task.Namespace, side.store); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	desired, err := object(values)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	log.FromContext(ctx).Info("Creating Job", "job", desired.Name)
	return reconcile.Result{}, kube.Apply(ctx, r.client, fieldOwner, desired)
}

func finished(task *druidv1alpha1.EtcdCopyBackupsTask) bool {
	return slices.ContainsFunc(task.Status.Conditions, func(c druidv1alpha1.Condition) bool { return c.Status == druidv1alpha1.ConditionTrue })
}

// report writes the status if it differs.
func (r *reconciler) report(ctx context.Context, task, before *druidv1alpha1.EtcdCopyBackupsTask, job *batchv1.Job, err error) error {
	status := &task.Status
	status.ObservedGeneration = &task.Generation
	status.LastError = nil
	if err != nil {
		status.LastError = new(err.Error())
	}
	for _, c := range conditions(job, finished(task)) {
		setCondition(status, c, metav1.NewTime(r.clock.Now()))
	}
	if apiequality.Semantic.DeepEqual(before.Status, task.Status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if err := r.client.Status().Patch(ctx, task, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// conditions returns the conditions of a task by its Job. Those of a finished task are kept.
func conditions(job *batchv1.Job, finished bool) []druidv1alpha1.Condition {
	if finished {
		return nil
	}
	pairs := map[batchv1.JobConditionType]druidv1alpha1.ConditionType{
		batchv1.JobComplete: druidv1alpha1.EtcdCopyBackupsTaskSucceeded, batchv1.JobFailed: druidv1alpha1.EtcdCopyBackupsTaskFailed,
	}
	var out []druidv1alpha1.Condition
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		c := druidv1alpha1.Condition{Type: pairs[kind], Status: druidv1alpha1.ConditionFalse, Reason: "JobRunning", Message: "The Job has not ended"}
		if at := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue }); at >= 0 {
			c.Status, c.Reason, c.Message = druidv1alpha1.ConditionTrue, "JobEnded", "The Job has ended"
			if message := job.Status.Conditions[at].Message; message != "" {
				c.Message = message
			}
		}
		out = append(out, c)
	}
	return out
}

func setCondition(status *druidv1alpha1.EtcdCopyBackupsTaskStatus, c druidv1alpha1.Condition, now metav1.Time) {
	at := slices.IndexFunc(status.Conditions, func(other druidv1alpha1.Condition) bool { return other.Type == c.Type })
	if at < 0 {
		c.LastTransitionTime, c.LastUpdateTime = now, now
		status.Conditions = append(status.Conditions, c)
		return
	}
	old := status.Conditions[at]
	c.LastTransitionTime, c.LastUpdateTime = old.LastTransitionTime, old.LastUpdateTime
	if c == old {
		return
	}
	c.LastUpdateTime = now
	if c.Status != old.Status {
		c.LastTransitionTime = now
	}
	status.Conditions[at] = c
}
