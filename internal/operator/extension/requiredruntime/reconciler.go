package requiredruntime

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

type reconciler struct {
	runtimeCache client.Client
	runtimeAPI   client.Reader
	clock        clock.PassiveClock
}

// Reconcile writes the condition.
func (r *reconciler) Reconcile(ctx context.Context, e *operatorv1alpha1.Extension) (reconcile.Result, error) {
	garden, err := extension.Garden(ctx, r.runtimeCache)
	if err != nil {
		return reconcile.Result{}, err
	}
	all := &operatorv1alpha1.ExtensionList{}
	if err := r.runtimeCache.List(ctx, all); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Extensions: %w", err)
	}
	objects, err := objects(ctx, r.runtimeCache)
	if err != nil {
		return reconcile.Result{}, err
	}
	// The cache may not have the condition yet that the last pass has written.
	if err := r.runtimeAPI.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return kube.Result(extension.Write(ctx, r.runtimeCache, e, r.clock.Now(), extension.Status{
		Conditions: []corev1beta1.Condition{decide(e, ofSpec(garden, all.Items), objects)},
	}))
}

// objects returns the kinds and types of the objects of class garden. There are none of a kind that is not defined.
func objects(ctx context.Context, runtimeCluster client.Reader) ([]need, error) {
	var found []need
	for _, k := range kinds {
		list := k.list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
		if err := runtimeCluster.List(ctx, list); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.name, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if obj := item.(extensionsv1alpha1.Object); ofGarden(obj) { //nolint:forcetypeassert // an extension kind
				found = append(found, need{k.name, obj.GetExtensionSpec().GetExtensionType()})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
