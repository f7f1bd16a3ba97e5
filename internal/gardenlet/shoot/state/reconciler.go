package state

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/state"
)

// passTimeout limits a pass, which reads all Secrets and extension resources of one control plane.
const passTimeout = 2 * time.Minute

type reconciler struct {
	Values
	gardenCache client.Client
}

// Reconcile saves the state of one Shoot when it is due, and deletes it with the Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(shoot.Status.SeedName, "") != r.SeedName {
		return reconcile.Result{}, nil // the state is saved by the gardenlet of its seed
	}
	if shoot.DeletionTimestamp != nil {
		return kube.Result(Delete(ctx, r.GardenAPI, req.NamespacedName))
	}
	if !saveable(shoot) {
		return reconcile.Result{}, nil // the watch triggers when it is
	}
	managed, err := r.seedIsManaged(ctx)
	if err != nil || managed {
		return reconcile.Result{}, err
	}
	saved := &corev1beta1.ShootState{}
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, saved); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read ShootState: %w", err)
	}
	period, now := r.Config.SyncPeriod.Duration, r.Clock.Now()
	if wait := nextSave(shoot, saved, period, now).Sub(now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.save(ctx, shoot, saved); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: period * 9 / 10}, nil // nextSave decides then whether it is due
}

// seedIsManaged is whether the seed is a shoot itself: then the state of its control planes is in the backup of its etcd.
func (v Values) seedIsManaged(ctx context.Context) (bool, error) {
	err := v.GardenAPI.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: v.SeedName}, &seedmanagementv1alpha1.ManagedSeed{})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return false, nil // a gardenlet may read a ManagedSeed that is its own, and thus none if there is none
	}
	return false, fmt.Errorf("read ManagedSeed %q: %w", v.SeedName, err)
}

// Saves is whether states are saved on the seed.
func Saves(ctx context.Context, v Values) (bool, error) {
	if *v.Config.ConcurrentSyncs <= 0 {
		return false, nil
	}
	managed, err := v.seedIsManaged(ctx)
	return !managed, err
}

// Delete deletes the ShootState of a Shoot.
func Delete(ctx context.Context, gardenAPI client.Client, key client.ObjectKey) error {
	saved := &corev1beta1.ShootState{}
	if err := gardenAPI.Get(ctx, key, saved); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := kube.PatchMetadata(ctx, gardenAPI, saved, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(gardenAPI.Delete(ctx, saved))
}

// save writes the state of a control plane to the garden. What an operation that fails again and again has not changed is written after the period only.
func (r *reconciler) save(ctx context.Context, shoot *corev1beta1.Shoot, saved *corev1beta1.ShootState) error {
	if _, err := observed.ReadNamespace(ctx, r.SeedAPI, shoot, shoot.Status.TechnicalID); err != nil {
		return err
	}
	spec, err := state.Collect(ctx, r.SeedAPI, shoot.Status.TechnicalID, observed.BackupEntryName(shoot), shoot.Spec.Provider.Workers)
	if err != nil {
		return err
	}
	if retried(shoot) && savedWithin(saved, r.Config.SyncPeriod.Duration, r.Clock.Now()) && same(spec, &saved.Spec) {
		return nil
	}
	logf.FromContext(ctx).V(1).Info("Saving state", "secrets", len(spec.Gardener), "extensions", len(spec.Extensions), "resources", len(spec.Resources))
	return state.Write(ctx, r.GardenAPI, shoot, r.Clock.Now(), func(*corev1beta1.ShootStateSpec) (*corev1beta1.ShootStateSpec, error) {
		return spec, nil
	})
}
