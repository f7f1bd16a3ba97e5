// Package quota deletes Shoots when the lifetime that the Quotas of their credentials allow is over.
//
// It reads Shoots, their SecretBinding or CredentialsBinding, and Quotas. It writes the annotation with the expiration timestamp, and
// deletes Shoots. Source: concepts.txt, Shoot controller, "Quota" reconciler.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
	// SyncPeriod is how often each Shoot is checked.
	SyncPeriod time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("shoot-quota").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// Lifetimes are days, so a change of a binding or Quota need not be noticed before the next sync.
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), watch.Updated(func(before, after *corev1beta1.Shoot) bool {
			return before.Annotations[constants.ShootExpirationTimestamp] != after.Annotations[constants.ShootExpirationTimestamp] ||
				ptr.Deref(before.Spec.CredentialsBindingName, "") != ptr.Deref(after.Spec.CredentialsBindingName, "")
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{Values: v, gardenCache: mgr.GetClient()}))
}

type reconciler struct {
	Values
	gardenCache client.Client
}

// Reconcile writes when a Shoot expires, and deletes it then.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: r.SyncPeriod}
	days, err := r.lifetime(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	expiration := expires(shoot, days)
	err = kube.PatchMetadata(ctx, r.gardenCache, shoot, func(o *metav1.PartialObjectMetadata) {
		if expiration.IsZero() {
			delete(o.Annotations, constants.ShootExpirationTimestamp)
		} else {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ShootExpirationTimestamp, expiration.Format(time.RFC3339))
		}
	})
	if err != nil {
		return kube.Result(fmt.Errorf("write expiration: %w", err))
	}
	if expiration.IsZero() {
		return again, nil
	}
	if left := expiration.Sub(r.Clock.Now()); left > 0 {
		again.RequeueAfter = min(again.RequeueAfter, left)
		return again, nil
	}
	logf.FromContext(ctx).Info("Deleting Shoot because its lifetime is over", "expiration", expiration)
	err = kube.PatchMetadata(ctx, r.gardenCache, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	})
	if err != nil {
		return kube.Result(fmt.Errorf("confirm deletion: %w", err))
	}
	if err := r.gardenCache.Delete(ctx, shoot, client.Preconditions{UID: &shoot.UID}); client.IgnoreNotFound(err) != nil {
		return kube.Result(fmt.Errorf("delete: %w", err))
	}
	return reconcile.Result{}, nil
}

// lifetime returns the shortest lifetime, in days, that the Quotas of a Shoot's credentials set. Zero means that none does. Objects that do
// not exist set none.
func (r *reconciler) lifetime(ctx context.Context, shoot *corev1beta1.Shoot) (int32, error) {
	var refs []corev1.ObjectReference
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := r.read(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, binding); err != nil {
			return 0, err
		}
		refs = binding.Quotas
	} else if name := shoot.Spec.SecretBindingName; name != nil { //nolint:staticcheck // Shoots without a CredentialsBinding still have one
		binding := &corev1beta1.SecretBinding{}
		if err := r.read(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, binding); err != nil {
			return 0, err
		}
		refs = binding.Quotas
	}
	var days int32
	for _, ref := range refs {
		key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, shoot.Namespace), Name: ref.Name}
		quota := &corev1beta1.Quota{}
		if err := r.read(ctx, key, quota); err != nil {
			return 0, err
		}
		if own := quota.Spec.ClusterLifetimeDays; own != nil && (days == 0 || *own < days) {
			days = *own
		}
	}
	return days, nil
}

func (r *reconciler) read(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	if err := r.gardenCache.Get(ctx, key, obj, client.UnsafeDisableDeepCopy); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read %T %q: %w", obj, key, err)
	}
	return nil
}

// expires returns when a Shoot expires: the time in its annotation, which the shoot owner may change within limits that the API server
// enforces, or else the end of its lifetime. The zero time means never.
func expires(shoot *corev1beta1.Shoot, days int32) time.Time {
	if days <= 0 {
		return time.Time{}
	}
	if set, err := time.Parse(time.RFC3339, shoot.Annotations[constants.ShootExpirationTimestamp]); err == nil {
		return set
	}
	return shoot.CreationTimestamp.UTC().AddDate(0, 0, int(days))
}
