// Package copybackupstask runs a Job for each EtcdCopyBackupsTask, and reports how it went.
//
// It reads EtcdCopyBackupsTasks and the Secrets of their stores if these say where backups on the node are. It writes Jobs and
// the status of the tasks.
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
)

// passTimeout is how long one pass may take, which is a handful of requests.
const passTimeout = time.Minute

// AddToManager adds the controller.
func AddToManager(mgr manager.Manager, config *etcddruidconfigv1alpha1.EtcdDruidConfiguration, c clock.PassiveClock) error {
	r := &Reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: c, image: config.Images.BackupRestore}
	return builder.ControllerManagedBy(mgr).
		Named("etcdcopybackupstask").
		// Its status is our own writing.
		For(&druidv1alpha1.EtcdCopyBackupsTask{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: config.Controllers.EtcdCopyBackupsTask.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		Complete(r)
}
