// Package copybackupstask creates a Job for each EtcdCopyBackupsTask, and reports its result.
//
// It reads EtcdCopyBackupsTasks and the Secrets of their stores, for the directory of backups on the node. It writes Jobs and the status of
// the tasks.
package copybackupstask

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a pass, which takes a few requests.
const passTimeout = time.Minute

// Values configure the controller.
type Values struct {
	// Config is the configuration of the controller.
	Config etcddruidconfigv1alpha1.EtcdCopyBackupsTaskControllerConfiguration
	// Image is the image of etcd-backup-restore.
	Image string
	// Clock has the time for conditions.
	Clock clock.PassiveClock
}

// Add adds the controller.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{client: mgr.GetClient(), api: mgr.GetAPIReader(), clock: v.Clock, image: v.Image}
	return builder.ControllerManagedBy(mgr).
		Named("etcdcopybackupstask").
		For(&druidv1alpha1.EtcdCopyBackupsTask{}, builder.WithPredicates(changed())).
		Owns(&batchv1.Job{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.Config.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// changed passes changes of the spec, and of the status, which only this controller writes: one that was decided by an old cache is corrected. An error is
// retried anyway, and what it says may be different each time.
func changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, kube.StatusChanged(func(task *druidv1alpha1.EtcdCopyBackupsTask) any {
		return []any{task.Status.Conditions, task.Status.ObservedGeneration, task.Status.LastError != nil}
	}))
}
