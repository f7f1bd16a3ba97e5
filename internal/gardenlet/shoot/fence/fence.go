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
	"sync"
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
	// workers is how many control planes are fenced at a time: a seed that comes back may have hundreds.
	workers = 20
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
	// away has since when the cache lacks a Shoot, by the namespace of its control plane.
	away sync.Map
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, seedCache: mgr.GetClient(), gardenCache: v.Garden.GetClient(), recorder: v.Garden.GetEventRecorder(name)}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: passTimeout}).
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
		r.away.Delete(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if here, err := technicalid.Shoot(ctx, r.gardenCache, namespace.Name); err != nil || here != nil {
		r.away.Delete(request.Name)
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	since, _ := r.away.LoadOrStore(request.Name, now)
	if wait := r.Confirmation - now.Sub(since.(time.Time)); wait > 0 { //nolint:forcetypeassert // all values are times
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	shoot, err := r.shootAway(ctx, namespace.Name)
	if err != nil || shoot == nil {
		r.away.Delete(request.Name)
		return reconcile.Result{}, err
	}
	if err := errors.Join(r.stop(ctx, namespace.Name), r.releaseDNS(ctx, namespace.Name)); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: repetition}, r.report(ctx, namespace.Name, shoot)
}

// shootAway returns the Shoot of a control plane if the API server of the garden says, like the cache, that it does not belong to this seed. A single answer
// may come from a garden whose authorizer does not run. This one takes seconds, as clients of the garden repeat requests that are forbidden.
func (r *reconciler) shootAway(ctx context.Context, namespace string) (*corev1beta1.Shoot, error) {
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
