// Package quota deletes Shoots when the lifetime that a Quota of their credentials allows is over.
//
// It reads Shoots, their SecretBinding or CredentialsBinding, and Quotas. It writes the annotation with the time of expiration, and
// deletes Shoots. Source: concepts.txt, Shoot controller, "Quota" reconciler.
package quota

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// Add adds the controller.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.ShootQuotaControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{gardenClient: mgr.GetClient(), clock: clk, syncPeriod: config.SyncPeriod.Duration}
	return builder.ControllerManagedBy(mgr).Named("shoot-quota").WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		// Lifetimes are days: that a binding or Quota has changed is found soon enough at the next look.
		For(&corev1beta1.Shoot{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*corev1beta1.Shoot), e.ObjectNew.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
				return before.Annotations[constants.ShootExpirationTimestamp] != after.Annotations[constants.ShootExpirationTimestamp] ||
					value(before.Spec.CredentialsBindingName) != value(after.Spec.CredentialsBindingName)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenClient client.Client
	clock        clock.Clock
	syncPeriod   time.Duration
}

// Reconcile says when a Shoot expires, and deletes it then.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: r.syncPeriod}
	days, err := r.lifetime(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	expiration := expires(shoot, days)
	err = kube.PatchMetadata(ctx, r.gardenClient, shoot, func(o *metav1.PartialObjectMetadata) {
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
	if left := expiration.Sub(r.clock.Now()); left > 0 {
		again.RequeueAfter = min(again.RequeueAfter, left)
		return again, nil
	}
	logf.FromContext(ctx).Info("Deleting Shoot because its lifetime is over", "expiration", expiration)
	err = kube.PatchMetadata(ctx, r.gardenClient, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	})
	if err != nil {
		return kube.Result(fmt.Errorf("confirm deletion: %w", err))
	}
	if err := r.gardenClient.Delete(ctx, shoot, client.Preconditions{UID: &shoot.UID}); client.IgnoreNotFound(err) != nil {
		return kube.Result(fmt.Errorf("delete: %w", err))
	}
	return reconcile.Result{}, nil
}

// lifetime returns the shortest lifetime, in days, that the Quotas of a Shoot's credentials set. Zero means that none does. What does
// not exist sets none.
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
		key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
		if key.Namespace == "" {
			key.Namespace = shoot.Namespace
		}
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
	if err := r.gardenClient.Get(ctx, key, obj, client.UnsafeDisableDeepCopy); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read %T %q: %w", obj, key, err)
	}
	return nil
}

// expires returns when a Shoot expires: what its annotation says, which its owner may change within limits that the API server
// keeps, or else after its lifetime. The zero time means never.
func expires(shoot *corev1beta1.Shoot, days int32) time.Time {
	if days <= 0 {
		return time.Time{}
	}
	if said, err := time.Parse(time.RFC3339, shoot.Annotations[constants.ShootExpirationTimestamp]); err == nil {
		return said
	}
	return shoot.CreationTimestamp.UTC().AddDate(0, 0, int(days))
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
