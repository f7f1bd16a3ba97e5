// Package care maintains the conditions BackupBucketsReady and ExtensionsReady of Seeds.
//
// It reads Seeds, BackupBuckets and ControllerInstallations, and writes the status of Seeds. Source: concepts.txt, Seed controller,
// "Backup Buckets Check" and "Extensions Check" reconcilers.
package care

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// AddBackupBuckets adds the controller for BackupBucketsReady to a manager.
func AddBackupBuckets(mgr manager.Manager, config *controllermanagerconfigv1alpha1.SeedBackupBucketsCheckControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{
		gardenClient: mgr.GetClient(), clock: clk, syncPeriod: config.SyncPeriod.Duration, check: checkBackupBuckets,
		threshold: thresholdOf(corev1beta1.SeedBackupBucketsReady, config.ConditionThresholds),
	}
	return builder.ControllerManagedBy(mgr).Named("seed-backupbuckets-check").
		WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		// Whether a Seed has backups is in its spec; other changes are found at the next look.
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.BackupBucket{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			return requestFor(obj.(*corev1beta1.BackupBucket).Spec.SeedName) //nolint:forcetypeassert // the kind that is watched
		}), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*corev1beta1.BackupBucket), e.ObjectNew.(*corev1beta1.BackupBucket) //nolint:forcetypeassert // the kind that is watched
			return !apiequality.Semantic.DeepEqual(before.Status.LastError, after.Status.LastError) || before.Generation != after.Generation
		}})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// AddExtensions adds the controller for ExtensionsReady to a manager.
func AddExtensions(mgr manager.Manager, config *controllermanagerconfigv1alpha1.SeedExtensionsCheckControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{
		gardenClient: mgr.GetClient(), clock: clk, syncPeriod: config.SyncPeriod.Duration, check: checkExtensions,
		threshold: thresholdOf(corev1beta1.SeedExtensionsReady, config.ConditionThresholds),
	}
	return builder.ControllerManagedBy(mgr).Named("seed-extensions-check").
		WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		// Nothing of a Seed counts but that it is there.
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Watches(&corev1beta1.ControllerInstallation{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			if ref := obj.(*corev1beta1.ControllerInstallation).Spec.SeedRef; ref != nil { //nolint:forcetypeassert // the kind that is watched
				return requestFor(&ref.Name)
			}
			return nil
		}), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*corev1beta1.ControllerInstallation), e.ObjectNew.(*corev1beta1.ControllerInstallation) //nolint:forcetypeassert // the kind that is watched
			return unhealthy(before) != unhealthy(after)
		}})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

func requestFor(seed *string) []reconcile.Request {
	if seed == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: *seed}}}
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
