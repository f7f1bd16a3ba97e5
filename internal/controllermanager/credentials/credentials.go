// Package credentials labels the Secrets, InternalSecrets, WorkloadIdentities and Quotas that SecretBindings and CredentialsBindings
// refer to, and keeps the credentials among them from being deleted.
//
// It reconciles the objects that are referred to: however many bindings refer to a Secret, it is reconciled once. Reads bindings, and of
// the other kinds only metadata; writes finalizers and labels. Source: concepts.txt, "CredentialsBinding Controller" and "SecretBinding
// Controller".
package credentials

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// kinds are the kinds of objects that bindings can refer to.
var kinds = map[string]schema.GroupVersionKind{
	references.Secret:           corev1.SchemeGroupVersion.WithKind(references.Secret),
	references.InternalSecret:   corev1beta1.SchemeGroupVersion.WithKind(references.InternalSecret),
	references.WorkloadIdentity: securityv1alpha1.SchemeGroupVersion.WithKind(references.WorkloadIdentity),
	references.Quota:            corev1beta1.SchemeGroupVersion.WithKind(references.Quota),
}

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many objects are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	referenced := watch.Mapped(func(binding client.Object) []references.Ref { return references.Of(binding) })
	b := builder.TypedControllerManagedBy[references.Ref](mgr).Named("binding-references").
		WithOptions(controller.TypedOptions[references.Ref]{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		Watches(&corev1beta1.SecretBinding{}, referenced).
		Watches(&securityv1alpha1.CredentialsBinding{}, referenced)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		// An object may be created after its binding, lose its labels and finalizers, or have kept them although its last binding was deleted
		// while the controller did not run.
		b = b.WatchesMetadata(kube.Metadata(kinds[kind]), watch.Every(func(obj client.Object) []references.Ref {
			return []references.Ref{references.RefOf(kind, obj)}
		}), builder.WithPredicates(watch.NoDeletes(), predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) || r.used(kind, e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool {
				changed := !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
					!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
				return changed && (marked(e.ObjectNew) || r.used(kind, e.ObjectNew))
			},
		}))
	}
	return b.Complete(r)
}

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

// used reports whether a binding refers to an object, as far as the cache knows. A binding that is not in the cache yet causes an event of
// its own.
func (r *reconciler) used(kind string, obj client.Object) bool {
	use, err := r.use(context.Background(), references.RefOf(kind, obj))
	return err != nil || use.secretBinding || use.credentialsBinding
}

// usage is how bindings use an object.
type usage struct {
	secretBinding, credentialsBinding bool
	providers                         sets.Set[string]
}

// mark adds the labels and finalizers for the use of an object, and removes those for other uses.
func (u usage) mark(obj *metav1.PartialObjectMetadata, kind string) {
	wasMarked := marked(obj)
	labels := map[string]string{}
	maps.Copy(labels, obj.Labels)
	set := func(label string, desired bool) {
		if desired {
			labels[label] = "true"
		} else {
			delete(labels, label)
		}
	}
	set(constants.SecretBindingReference, u.secretBinding)
	set(constants.CredentialsBindingReference, u.credentialsBinding)
	if kind != references.Quota { // another controller keeps Quotas, and they belong to no provider
		setFinalizer(obj, constants.FinalizerSecretBinding, u.secretBinding)
		setFinalizer(obj, constants.FinalizerCredentialsBinding, u.credentialsBinding)
		for label := range labels {
			// On an object that no binding has referred to, the label was set by a user, and stays.
			if provider, ok := strings.CutPrefix(label, constants.ShootProviderPrefix); ok && wasMarked && !u.providers.Has(provider) {
				delete(labels, label)
			}
		}
		for provider := range u.providers {
			// Provider types in SecretBindings are not validated.
			if label := constants.ShootProviderPrefix + provider; len(validation.IsQualifiedName(label)) == 0 {
				labels[label] = "true"
			}
		}
	}
	if len(labels) > 0 || obj.Labels != nil {
		obj.Labels = labels
	}
}

func setFinalizer(obj *metav1.PartialObjectMetadata, finalizer string, desired bool) {
	switch {
	case !desired:
		controllerutil.RemoveFinalizer(obj, finalizer)
	case obj.DeletionTimestamp == nil: // none can be added to an object that is being deleted
		controllerutil.AddFinalizer(obj, finalizer)
	}
}

// marked reports whether an object has a label or finalizer that stands for a binding.
func marked(obj client.Object) bool {
	labels := obj.GetLabels()
	return labels[constants.SecretBindingReference] != "" || labels[constants.CredentialsBindingReference] != "" ||
		controllerutil.ContainsFinalizer(obj, constants.FinalizerSecretBinding) ||
		controllerutil.ContainsFinalizer(obj, constants.FinalizerCredentialsBinding)
}
