// Package fence keeps control planes whose Shoots belong to another seed from acting on machines and DNS records. There are such when a seed was lost,
// an operator has recovered its shoots on another one, and it comes back all the same.
//
// It reads Namespaces and Clusters in the seed and Shoots in the garden, scales Deployments in the seed to zero, and requests the migration of DNSRecords
// there. It deletes nothing, and the next reconciliation of a Shoot that is bound to this seed again undoes it. Source: docs/migration.md, "A lost seed".
package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/technicalid"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	name = "shoot-fence"
	// Confirmation is how long a Shoot has to be away before its control plane is fenced, so that a moment in which the garden does not know it is not enough.
	Confirmation = time.Minute
	// repetition is how often a fenced control plane is checked and reported, until its namespace is deleted.
	repetition  = time.Hour
	passTimeout = time.Minute
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Shoots. Its cache has the Shoots of this seed, with the index of package technicalid.
	Garden cluster.Cluster
	// GardenAPI is the API server of the garden: it forbids the gardenlet to read Shoots of other seeds.
	GardenAPI client.Reader
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// Confirmation is the constant of this name, or less in a test.
	Confirmation time.Duration
	// Clock is for this duration.
	Clock clock.PassiveClock
}

type reconciler struct {
	Values
	seedCache, gardenCache client.Reader
	recorder               events.EventRecorder
	// away is since when Shoots are known to be away, by the namespace of their control planes. There is one worker.
	away map[string]time.Time
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{
		Values: v, seedCache: mgr.GetClient(), gardenCache: v.Garden.GetClient(), recorder: v.Garden.GetEventRecorder(name), away: map[string]time.Time{},
	}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, ReconciliationTimeout: passTimeout}).
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(isControlPlane), predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		// A Shoot that the garden gives to another seed disappears from the cache.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Shoot{}, handler.TypedEnqueueRequestsFromMapFunc(controlPlane),
			predicate.TypedFuncs[*corev1beta1.Shoot]{
				CreateFunc: func(event.TypedCreateEvent[*corev1beta1.Shoot]) bool { return false },
				UpdateFunc: func(event.TypedUpdateEvent[*corev1beta1.Shoot]) bool { return false },
			})).
		Complete(r)
}

func isControlPlane(namespace client.Object) bool {
	return namespace.GetLabels()[constants.GardenRole] == constants.GardenRoleShoot
}

func controlPlane(_ context.Context, shoot *corev1beta1.Shoot) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: shoot.Status.TechnicalID}}}
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := r.seedCache.Get(ctx, request.NamespacedName, namespace); err != nil || namespace.DeletionTimestamp != nil || !isControlPlane(namespace) {
		delete(r.away, request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot, err := r.shootAway(ctx, namespace.Name)
	if err != nil || shoot == nil {
		delete(r.away, request.Name)
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	if _, known := r.away[request.Name]; !known {
		r.away[request.Name] = now
	}
	if wait := r.Confirmation - now.Sub(r.away[request.Name]); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := errors.Join(r.stop(ctx, namespace.Name), r.releaseDNS(ctx, namespace.Name)); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: repetition}, r.report(ctx, namespace.Name, shoot)
}

// shootAway returns the Shoot of a control plane if it does not belong to this seed. Two sources have to agree, the cache and the API server, as a single
// answer may come from a garden whose authorizer does not run.
func (r *reconciler) shootAway(ctx context.Context, namespace string) (*corev1beta1.Shoot, error) {
	if here, err := technicalid.Shoot(ctx, r.gardenCache, namespace); err != nil || here != nil {
		return nil, err
	}
	c, err := extension.ReadCluster(ctx, r.SeedAPI, namespace)
	if err != nil || c == nil || c.Shoot == nil {
		return nil, err
	}
	current := &corev1beta1.Shoot{}
	err = r.GardenAPI.Get(ctx, client.ObjectKeyFromObject(c.Shoot), current)
	if away, err := isAway(current, err, r.SeedName); !away {
		return nil, err
	}
	return c.Shoot, nil
}

// isAway decides by what the garden answers when it is asked for a Shoot. It forbids to read those of other seeds, and those that do not exist.
func isAway(shoot *corev1beta1.Shoot, err error, seedName string) (bool, error) {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read Shoot: %w", err)
	}
	return ptr.Deref(shoot.Spec.SeedName, "") != seedName && ptr.Deref(shoot.Status.SeedName, "") != seedName, nil
}
