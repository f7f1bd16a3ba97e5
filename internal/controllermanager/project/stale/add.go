// Package stale finds Projects that are not used, warns of their deletion, and deletes them.
//
// Reads Projects, Shoots, BackupEntries, Plants, SecretBindings, CredentialsBindings, and metadata of Namespaces and of the objects that bindings refer
// to; writes status.staleSinceTimestamp and status.staleAutoDeleteTimestamp of Projects, and deletes Projects. Source: concepts.txt, Project
// controller, "Stale Projects" reconciler; concepts-older.txt has Plants.
package stale

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

const name = "project-stale"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Projects are reconciled at the same time.
	ConcurrentSyncs int
	// SyncPeriod is how often each Project is checked. What its bindings are used for can change without an event of the Project.
	SyncPeriod time.Duration
	// MinimumLifetime is how old a Project is, and how long ago its last activity was, before it can be stale.
	MinimumLifetime time.Duration
	// GracePeriod is how long a Project is stale before the time of its deletion is set.
	GracePeriod time.Duration
	// Expiration is how long a Project is stale before it is deleted.
	Expiration time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Days returns the duration of a number of days, as in the configuration.
func Days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// New Shoots, BackupEntries and the like are activities, which end the time of a Project as a stale one.
		For(&corev1beta1.Project{}, builder.WithPredicates(watch.NoDeletes(), changed())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{
			Values: v, gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(name),
		}))
}

// changed passes changes of what decides, and of the timestamps that this controller writes: those that were decided by an old cache are corrected.
func changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, kube.StatusChanged(func(p *corev1beta1.Project) any {
		// A phase is reached when there is a namespace.
		return []any{p.Status.Phase, p.Status.LastActivityTimestamp, p.Status.StaleSinceTimestamp, p.Status.StaleAutoDeleteTimestamp}
	}))
}
