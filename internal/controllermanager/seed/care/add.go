// Package care maintains the conditions BackupBucketsReady and ExtensionsReady of Seeds.
//
// It reads Seeds, BackupBuckets and ControllerInstallations, and writes the status of Seeds. Source: concepts.txt, Seed controller,
// "Backup Buckets Check" and "Extensions Check" reconcilers.
package care

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what the controllers work with.
type Values struct {
	// BackupBuckets is for the controller for BackupBucketsReady.
	BackupBuckets Check
	// Extensions is for the controller for ExtensionsReady.
	Extensions Check
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Check is what the controller for one condition works with.
type Check struct {
	// ConcurrentSyncs is how many Seeds are reconciled at the same time.
	ConcurrentSyncs int
	// SyncPeriod is how often each Seed is checked, if there is no event before.
	SyncPeriod time.Duration
	// Thresholds are how long conditions stay Progressing before they turn False.
	Thresholds []controllermanagerconfigv1alpha1.ConditionThreshold
}

// Add adds the controllers to a manager, one for each condition.
func Add(mgr manager.Manager, v Values) error {
	if err := addBackupBuckets(mgr, v.BackupBuckets, v.Clock); err != nil {
		return err
	}
	return addExtensions(mgr, v.Extensions, v.Clock)
}

func addBackupBuckets(mgr manager.Manager, c Check, clk clock.PassiveClock) error {
	return builder.ControllerManagedBy(mgr).Named("seed-backupbuckets-check").
		WithOptions(controller.Options{MaxConcurrentReconciles: c.ConcurrentSyncs}).
		// Whether a Seed has backups is in its spec.
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.BackupBucket{}, watch.References(references.Seed), builder.WithPredicates(
			watch.Updated(func(before, after *corev1beta1.BackupBucket) bool {
				return !apiequality.Semantic.DeepEqual(before.Status.LastError, after.Status.LastError) || before.Generation != after.Generation
			}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{
			gardenCache: mgr.GetClient(), clock: clk, syncPeriod: c.SyncPeriod, check: checkBackupBuckets,
			threshold: thresholdOf(corev1beta1.SeedBackupBucketsReady, c.Thresholds),
		}))
}

func addExtensions(mgr manager.Manager, c Check, clk clock.PassiveClock) error {
	return builder.ControllerManagedBy(mgr).Named("seed-extensions-check").
		WithOptions(controller.Options{MaxConcurrentReconciles: c.ConcurrentSyncs}).
		// The condition does not depend on the spec of a Seed.
		For(&corev1beta1.Seed{}, builder.WithPredicates(watch.NoUpdates())).
		Watches(&corev1beta1.ControllerInstallation{}, watch.References(references.Seed), builder.WithPredicates(
			watch.Updated(func(before, after *corev1beta1.ControllerInstallation) bool { return unready(before) != unready(after) }))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{
			gardenCache: mgr.GetClient(), clock: clk, syncPeriod: c.SyncPeriod, check: checkExtensions,
			threshold: thresholdOf(corev1beta1.SeedExtensionsReady, c.Thresholds),
		}))
}

// thresholdOf returns how long a condition stays Progressing before it turns False. Zero means not at all.
func thresholdOf(typ corev1beta1.ConditionType, thresholds []controllermanagerconfigv1alpha1.ConditionThreshold) time.Duration {
	for _, threshold := range thresholds {
		if threshold.Type == string(typ) {
			return threshold.Duration.Duration
		}
	}
	return 0
}
