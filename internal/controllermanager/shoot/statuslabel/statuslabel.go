// Package statuslabel writes the health of Shoots, in one word, to the label "shoot.gardener.cloud/status".
//
// Reads the status of Shoots, writes the label. Source: concepts.txt, Shoot controller, "Status Label".
package statuslabel

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("shoot-statuslabel").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// To compute the label costs less than to enqueue the Shoot.
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return outdated(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return outdated(e.ObjectNew) },
		})).
		Complete(&reconciler{gardenCache: mgr.GetClient()})
}

type reconciler struct {
	gardenCache client.Client
}

// Reconcile writes the label of a Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := kube.PatchMetadata(ctx, r.gardenCache, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataLabel(&o.ObjectMeta, constants.ShootStatus, health(&shoot.Status))
	})
	if err != nil {
		return kube.Result(fmt.Errorf("label Shoot with its health: %w", err))
	}
	return reconcile.Result{}, nil
}

func outdated(obj client.Object) bool {
	shoot := obj.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
	return shoot.Labels[constants.ShootStatus] != health(&shoot.Status)
}
