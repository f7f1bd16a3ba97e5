package reference

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/kube"
)

// Shoots refer to Secrets and ConfigMaps of their namespace.
func Shoots() Referrer {
	return Referrer{
		Object: &corev1beta1.Shoot{}, List: &corev1beta1.ShootList{}, Index: uses.ShootByReference,
		Refs: func(obj client.Object) []uses.Ref {
			return uses.ShootReferences(obj.(*corev1beta1.Shoot)) //nolint:forcetypeassert // the kind of the Referrer
		},
	}
}

// addReferrer adds the controller that puts the finalizer on the objects that refer.
func (r *reconciler) addReferrer(mgr manager.Manager, referrer Referrer, concurrentSyncs int) error {
	gvk, err := apiutil.GVKForObject(referrer.Object, mgr.GetScheme())
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named(strings.ToLower(gvk.Kind)+"-reference").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		For(referrer.Object, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return !settled(referrer, e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return !settled(referrer, e.ObjectNew) },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			obj := referrer.Object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
			if err := r.client.Get(ctx, req.NamespacedName, obj, client.UnsafeDisableDeepCopy); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if settled(referrer, obj) {
				return reconcile.Result{}, nil
			}
			if err := keep(ctx, r.client, obj, len(referrer.Refs(obj)) > 0); err != nil {
				return kube.Result(fmt.Errorf("protect %s: %w", req, err))
			}
			return reconcile.Result{}, nil
		}))
}

// settled says whether an object has the finalizer exactly if it refers to something. One that is being deleted can only lose it.
func settled(referrer Referrer, obj client.Object) bool {
	has, wanted := controllerutil.ContainsFinalizer(obj, constants.FinalizerReferenceProtection), len(referrer.Refs(obj)) > 0
	return has == wanted || wanted && obj.GetDeletionTimestamp() != nil
}
