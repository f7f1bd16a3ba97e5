package credentials

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	gardenCache client.Client
}

// Reconcile sets the labels and finalizers of an object that follow from its bindings.
func (r *reconciler) Reconcile(ctx context.Context, ref references.Ref) (reconcile.Result, error) {
	gvk, ok := kinds[ref.Kind]
	if !ok {
		return reconcile.Result{}, nil // a kind that this version does not know
	}
	obj := kube.Metadata(gvk)
	if err := r.gardenCache.Get(ctx, ref.ObjectKey(), obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	use, err := r.use(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = kube.PatchMetadata(ctx, r.gardenCache, obj, func(o *metav1.PartialObjectMetadata) { use.mark(o, ref.Kind) })
	if err != nil {
		return kube.Result(fmt.Errorf("set labels and finalizers for bindings: %w", err))
	}
	return reconcile.Result{}, nil
}

// use returns how bindings use an object.
func (r *reconciler) use(ctx context.Context, ref references.Ref) (usage, error) {
	u := usage{providers: sets.New[string]()}
	selected := []client.ListOption{references.To(ref), client.UnsafeDisableDeepCopy}
	secretBindings, credentialsBindings := &corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}
	if err := r.gardenCache.List(ctx, secretBindings, selected...); err != nil {
		return usage{}, fmt.Errorf("list SecretBindings: %w", err)
	}
	if err := r.gardenCache.List(ctx, credentialsBindings, selected...); err != nil {
		return usage{}, fmt.Errorf("list CredentialsBindings: %w", err)
	}
	for _, binding := range secretBindings.Items {
		u.secretBinding = true
		if binding.Provider != nil {
			u.providers.Insert(strings.Split(binding.Provider.Type, ",")...)
		}
	}
	for _, binding := range credentialsBindings.Items {
		u.credentialsBinding = true
		u.providers.Insert(binding.Provider.Type)
	}
	return u, nil
}

// used reports whether a binding refers to an object, according to the cache. A binding that is not in the cache yet causes an event of
// its own.
func (r *reconciler) used(kind string, obj client.Object) bool {
	use, err := r.use(context.Background(), references.RefOf(kind, obj))
	return err != nil || use.secretBinding || use.credentialsBinding
}
