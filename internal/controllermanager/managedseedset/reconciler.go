package managedseedset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	Values
	gardenCache client.Client
	// gardenAPI reads sets, and counts Shoots before another is created.
	gardenAPI client.Reader
	recorder  events.EventRecorder
}

// errBehind is when the cache does not have all Shoots of a set yet.
var errBehind = errors.New("the cache does not have all Shoots of the set yet")

// Reconcile does the next step for a set.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	set := &seedmanagementv1alpha1.ManagedSeedSet{}
	// The cache may not have the status yet that the last pass has written.
	if err := r.gardenAPI.Get(ctx, req.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp == nil && !controllerutil.ContainsFinalizer(set, constants.FinalizerGardenerName) {
		if err := kube.AddFinalizer(ctx, r.gardenCache, set, constants.FinalizerGardenerName); err != nil {
			return kube.Result(err)
		}
		if err := r.gardenAPI.Get(ctx, req.NamespacedName, set); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	o, err := r.observe(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	if set.DeletionTimestamp != nil && len(o.Replicas) == 0 {
		return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, set, constants.FinalizerGardenerName))
	}
	v, decideErr := decide(o)
	for _, one := range o.Replicas {
		if one.shoot.Name == v.GaveUp {
			r.event(set, corev1.EventTypeWarning, givenUp(one), v.GaveUp)
		}
	}
	err = r.act(ctx, set, &v)
	if errors.Is(err, errBehind) {
		return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil // the Shoot that is missing causes an event
	}
	if err == nil {
		err = r.report(ctx, set, o, v)
	}
	if err = errors.Join(decideErr, err); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// observe reads what a set has.
func (r *reconciler) observe(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet) (observed, error) {
	o := observed{
		Set: set.Name, Target: int(ptr.Deref(set.Spec.Replicas, 1)), Next: int(set.Status.NextReplicaNumber),
		Pending: set.Status.PendingReplica, MaxRetries: r.MaxShootRetries,
		RetriedBefore: r.Clock.Now().Add(-r.SyncPeriod),
	}
	if set.DeletionTimestamp != nil {
		o.Target = 0
	}
	shoots, err := shootsOf(ctx, r.gardenCache, set)
	if err != nil {
		return o, err
	}
	for i := range shoots {
		one := replica{shoot: &shoots[i]}
		key := client.ObjectKeyFromObject(one.shoot)
		managedSeed, seed := &seedmanagementv1alpha1.ManagedSeed{}, &corev1beta1.Seed{}
		if err := r.gardenCache.Get(ctx, key, managedSeed); err == nil {
			one.managedSeed = managedSeed
		} else if !apierrors.IsNotFound(err) {
			return o, fmt.Errorf("read ManagedSeed %q: %w", key, err)
		}
		if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: key.Name}, seed); err == nil {
			one.seed = seed
		} else if !apierrors.IsNotFound(err) {
			return o, fmt.Errorf("read Seed %q: %w", key.Name, err)
		}
		hosted := &corev1beta1.ShootList{}
		if err := r.gardenCache.List(ctx, hosted, client.MatchingLabels{constants.PrefixSeedName + key.Name: "true"}, client.Limit(1)); err != nil {
			return o, fmt.Errorf("list Shoots on Seed %q: %w", key.Name, err)
		}
		one.hosts = len(hosted.Items) > 0
		o.Replicas = append(o.Replicas, one)
	}
	return o, nil
}

// shootsOf returns the Shoots of a set: those that it selects, and controls.
func shootsOf(ctx context.Context, reader client.Reader, set *seedmanagementv1alpha1.ManagedSeedSet) ([]corev1beta1.Shoot, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, reconcile.TerminalError(fmt.Errorf("spec.selector: %w", err))
	}
	list := &corev1beta1.ShootList{}
	if err := reader.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Shoots: %w", err)
	}
	var shoots []corev1beta1.Shoot
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) && ordinal(set.Name, list.Items[i].Name) >= 0 {
			shoots = append(shoots, list.Items[i])
		}
	}
	return shoots, nil
}

// act does what was decided. The name of a replica that is created may become another one.
func (r *reconciler) act(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, v *verdict) error {
	key := client.ObjectKey{Namespace: set.Namespace, Name: v.Name}
	switch v.Action {
	case createShoot:
		return r.createShoot(ctx, set, v)
	case createManagedSeed:
		managedSeed, err := managedSeedOf(set, v.Name)
		if err != nil {
			return reconcile.TerminalError(err)
		}
		if err := r.gardenCache.Create(ctx, managedSeed); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create ManagedSeed %q: %w", v.Name, err)
		}
	case deleteManagedSeed:
		managedSeed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := r.gardenCache.Delete(ctx, managedSeed); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ManagedSeed %q: %w", v.Name, err)
		}
	case deleteShoot:
		if err := kube.DeleteShoot(ctx, r.gardenCache, key); err != nil {
			return err
		}
	case retryReconciliation, retryDeletion:
		shoot := &corev1beta1.Shoot{}
		if err := r.gardenCache.Get(ctx, key, shoot); err != nil {
			return fmt.Errorf("read Shoot %q: %w", v.Name, err)
		}
		if err := kube.PatchMetadata(ctx, r.gardenCache, shoot, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.ShootOperationRetry)
		}); err != nil {
			return err
		}
	case giveUpReconciliation, giveUpDeletion:
		r.event(set, corev1.EventTypeWarning, v.Action, v.Name)
		return nil
	default: // waiting is told by the status
		return nil
	}
	logf.FromContext(ctx).Info("Changed replica", "action", v.Action, "replica", v.Name)
	r.event(set, corev1.EventTypeNormal, v.Action, v.Name)
	return nil
}

// createShoot creates the Shoot of another replica, unless the cache lacks one. Numbers of Shoots that exist and are not of the set are left out.
func (r *reconciler) createShoot(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, v *verdict) error {
	cached, err := shootsOf(ctx, r.gardenCache, set)
	if err != nil {
		return err
	}
	current, err := shootsOf(ctx, r.gardenAPI, set)
	if err != nil {
		return err
	}
	if len(cached) != len(current) {
		return errBehind
	}
	for {
		err := r.gardenCache.Create(ctx, shootOf(set, v.Name))
		if err == nil {
			break
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Shoot %q: %w", v.Name, err)
		}
		existing := &corev1beta1.Shoot{}
		if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: v.Name}, existing); err != nil {
			return fmt.Errorf("read Shoot %q, which exists already: %w", v.Name, err)
		}
		if metav1.IsControlledBy(existing, set) {
			return errBehind
		}
		r.recorder.Eventf(set, nil, corev1.EventTypeWarning, "ShootExists", constants.EventActionReconcile,
			"Shoot %s exists already and is not of the set: the replica gets another number", v.Name)
		v.Name = replicaName(set.Name, ordinal(set.Name, v.Name)+1)
	}
	logf.FromContext(ctx).Info("Created replica", "replica", v.Name)
	r.event(set, corev1.EventTypeNormal, v.Action, v.Name)
	return nil
}

func (r *reconciler) event(set *seedmanagementv1alpha1.ManagedSeedSet, typ string, what action, replica string) {
	r.recorder.Eventf(set, nil, typ, string(what), constants.EventActionReconcile, "Replica %s", replica)
}

// report writes what differs in the status.
func (r *reconciler) report(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, o observed, v verdict) error {
	after := set.DeepCopy()
	status := &after.Status
	status.ObservedGeneration, status.Replicas, status.ReadyReplicas = set.Generation, int32(len(o.Replicas)), 0 //nolint:gosec // a few
	for _, one := range o.Replicas {
		if one.ready() {
			status.ReadyReplicas++
		}
	}
	status.NextReplicaNumber = int32(o.next()) //nolint:gosec // ordinals have 31 bits
	if v.Action == createShoot {
		status.Replicas++
		status.NextReplicaNumber = int32(ordinal(set.Name, v.Name) + 1) //nolint:gosec // ordinals have 31 bits
	}
	status.PendingReplica = v.pending(set.Status.PendingReplica, r.Clock.Now())
	if apiequality.Semantic.DeepEqual(set.Status, after.Status) {
		return nil
	}
	if err := r.gardenCache.Status().Patch(ctx, after, client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write status of ManagedSeedSet %q: %w", set.Name, err)
	}
	return nil
}
