// Package status removes worker pools from status.inPlaceUpdates of Shoots when the extension reports that their nodes are updated in place.
//
// It reads Workers and Clusters in the seed, and writes the status of Shoots in the garden. When the last pool is removed, it requests a reconciliation for
// a rotation of credentials that waits for the pools, and removes the operation force-in-place-update. Source: compat, gardenlet, shoot-status.
package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	name = "shoot-status"
	// passTimeout limits a pass: a few requests.
	passTimeout = time.Minute
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// GardenAPI is the garden without a cache.
	GardenAPI client.Client
	// SeedAPI is the API server of the seed, for Clusters.
	SeedAPI client.Reader
	// Config is how many Workers are reconciled at a time.
	Config gardenletconfigv1alpha1.ShootStatusControllerConfiguration
}

type reconciler struct {
	Values
	seedCache client.Client
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: ptr.Deref(v.Config.ConcurrentSyncs, 5), ReconciliationTimeout: passTimeout}).
		// Only a report of the extension removes pools.
		For(&extensionsv1alpha1.Worker{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, isWorker := e.ObjectOld.(*extensionsv1alpha1.Worker)
				after, same := e.ObjectNew.(*extensionsv1alpha1.Worker)
				return isWorker && same && !apiequality.Semantic.DeepEqual(before.Status.InPlaceUpdates, after.Status.InPlaceUpdates)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(&reconciler{Values: v, seedCache: mgr.GetClient()})
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	worker := &extensionsv1alpha1.Worker{}
	if err := r.seedCache.Get(ctx, request.NamespacedName, worker); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if worker.Status.InPlaceUpdates == nil {
		return reconcile.Result{}, nil
	}
	cluster, err := extension.ReadCluster(ctx, r.SeedAPI, request.Namespace)
	if err != nil || cluster == nil || cluster.Shoot == nil {
		return reconcile.Result{}, err
	}
	// From the API server: a pool that was added a moment ago must not be missed.
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenAPI.Get(ctx, client.ObjectKeyFromObject(cluster.Shoot), shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(shoot.Spec.SeedName, "") != r.SeedName || !shoot.Status.AnyUpdatePending() {
		return reconcile.Result{}, nil
	}
	left, err := observed.PendingUpdates(shoot, worker.Status.InPlaceUpdates, false)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return kube.Result(r.update(ctx, shoot, remaining(shoot.Status.InPlaceUpdates, left)))
}

// remaining returns the pools that were pending and still are: only the operation that begins an update adds pools.
func remaining(before, left *corev1beta1.InPlaceUpdatesStatus) *corev1beta1.InPlaceUpdatesStatus {
	if left == nil {
		return nil
	}
	were := before.PendingWorkerUpdates
	both := func(a, b []string) []string {
		kept := slices.DeleteFunc(slices.Clone(a), func(pool string) bool { return !slices.Contains(b, pool) })
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	pending := &corev1beta1.PendingWorkerUpdates{
		AutoInPlaceUpdate:   both(were.AutoInPlaceUpdate, left.PendingWorkerUpdates.AutoInPlaceUpdate),
		ManualInPlaceUpdate: both(were.ManualInPlaceUpdate, left.PendingWorkerUpdates.ManualInPlaceUpdate),
	}
	if pending.AutoInPlaceUpdate == nil && pending.ManualInPlaceUpdate == nil {
		return nil
	}
	return &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: pending}
}

// operation returns the operation annotation of a Shoot whose last pool with manual updates, or last pool at all, is updated.
func operation(shoot *corev1beta1.Shoot, after *corev1beta1.InPlaceUpdatesStatus) string {
	current := shoot.Annotations[constants.GardenerOperation]
	if after != nil && len(after.PendingWorkerUpdates.ManualInPlaceUpdate) > 0 {
		return current
	}
	if after == nil && current == constants.ShootOperationForceInPlaceUpdate {
		current = ""
	}
	if current == "" && len(shoot.Status.ManualUpdatesPending()) > 0 && rotationWaits(shoot) {
		return constants.GardenerOperationReconcile
	}
	return current
}

// rotationWaits reports whether a rotation of credentials that nodes have is not prepared yet.
func rotationWaits(shoot *corev1beta1.Shoot) bool {
	waits := func(phase corev1beta1.CredentialsRotationPhase) bool {
		return phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationWaitingForWorkersRollout
	}
	rotation := observed.Rotation(shoot)
	return rotation.CertificateAuthorities != nil && waits(rotation.CertificateAuthorities.Phase) ||
		rotation.ServiceAccountKey != nil && waits(rotation.ServiceAccountKey.Phase)
}

// update writes the annotation before the status, so that it is not lost if this process ends in between.
func (r *reconciler) update(ctx context.Context, shoot *corev1beta1.Shoot, after *corev1beta1.InPlaceUpdatesStatus) error {
	if apiequality.Semantic.DeepEqual(shoot.Status.InPlaceUpdates, after) {
		return nil
	}
	logf.FromContext(ctx).Info("Worker pools are updated in place", "shoot", shoot.Namespace+"/"+shoot.Name)
	if want := operation(shoot, after); want != shoot.Annotations[constants.GardenerOperation] {
		changed := shoot.DeepCopy()
		if want == "" {
			delete(changed.Annotations, constants.GardenerOperation)
		} else {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, constants.GardenerOperation, want)
		}
		if err := r.GardenAPI.Patch(ctx, changed, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("annotate Shoot: %w", err)
		}
		shoot = changed
	}
	changed := shoot.DeepCopy()
	changed.Status.InPlaceUpdates = after
	if err := r.GardenAPI.Status().Patch(ctx, changed, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write status.inPlaceUpdates of Shoot: %w", err)
	}
	return nil
}
