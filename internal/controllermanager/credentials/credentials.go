// Package credentials marks the Secrets, InternalSecrets, WorkloadIdentities and Quotas that SecretBindings and CredentialsBindings
// refer to, and keeps the credentials among them from being deleted.
//
// It reconciles what is referred to, not what refers: however many bindings there are for a Secret, it is looked at once. Reads
// bindings, and of the other kinds only metadata; writes finalizers and labels. Source: concepts.txt, "CredentialsBinding Controller"
// and "SecretBinding Controller".
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
	"k8s.io/apimachinery/pkg/types"
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
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// name is that of the controller.
const name = "binding-references"

// kinds are the kinds of objects that bindings can refer to.
var kinds = map[string]schema.GroupVersionKind{
	uses.Secret:           corev1.SchemeGroupVersion.WithKind(uses.Secret),
	uses.InternalSecret:   corev1beta1.SchemeGroupVersion.WithKind(uses.InternalSecret),
	uses.WorkloadIdentity: securityv1alpha1.SchemeGroupVersion.WithKind(uses.WorkloadIdentity),
	uses.Quota:            corev1beta1.SchemeGroupVersion.WithKind(uses.Quota),
}

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	r := &reconciler{client: mgr.GetClient()}
	b := builder.TypedControllerManagedBy[uses.Ref](mgr).Named(name).
		WithOptions(controller.TypedOptions[uses.Ref]{MaxConcurrentReconciles: concurrentSyncs}).
		Watches(&corev1beta1.SecretBinding{}, watch.Mapped(func(obj client.Object) []uses.Ref {
			return uses.SecretBindingReferences(obj.(*corev1beta1.SecretBinding)) //nolint:forcetypeassert // the only kind here
		})).
		Watches(&securityv1alpha1.CredentialsBinding{}, watch.Mapped(func(obj client.Object) []uses.Ref {
			return uses.CredentialsBindingReferences(obj.(*securityv1alpha1.CredentialsBinding)) //nolint:forcetypeassert // as above
		}))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		// An object may come after its binding, lose its marks, or have kept them although the last binding went while nobody watched.
		b = b.WatchesMetadata(kube.Metadata(kinds[kind]), watch.Every(func(obj client.Object) []uses.Ref {
			return []uses.Ref{{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}}
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) || r.used(kind, e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool {
				changed := !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
					!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
				return changed && (marked(e.ObjectNew) || r.used(kind, e.ObjectNew))
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}))
	}
	return b.Complete(r)
}

type reconciler struct {
	client client.Client
}

// Reconcile gives an object the marks that its bindings ask for.
func (r *reconciler) Reconcile(ctx context.Context, ref uses.Ref) (reconcile.Result, error) {
	gvk, ok := kinds[ref.Kind]
	if !ok {
		return reconcile.Result{}, nil // a kind that nobody knows yet
	}
	obj := kube.Metadata(gvk)
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	use, err := r.use(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = kube.PatchMetadata(ctx, r.client, obj, func(o *metav1.PartialObjectMetadata) { use.mark(o, ref.Kind) })
	if err != nil {
		return kube.Result(fmt.Errorf("mark what bindings refer to: %w", err))
	}
	return reconcile.Result{}, nil
}

// use returns how bindings use an object.
func (r *reconciler) use(ctx context.Context, ref uses.Ref) (usage, error) {
	u := usage{providers: sets.New[string]()}
	selected := []client.ListOption{client.MatchingFields{uses.BindingByReference: ref.Key()}, client.UnsafeDisableDeepCopy}
	secretBindings, credentialsBindings := &corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}
	if err := r.client.List(ctx, secretBindings, selected...); err != nil {
		return usage{}, fmt.Errorf("list SecretBindings: %w", err)
	}
	if err := r.client.List(ctx, credentialsBindings, selected...); err != nil {
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

// used says whether a binding refers to an object, as far as the cache knows. If it does not yet, the binding's own event will tell.
func (r *reconciler) used(kind string, obj client.Object) bool {
	use, err := r.use(context.Background(), uses.Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()})
	return err != nil || use.secretBinding || use.credentialsBinding
}

// usage is how bindings use an object.
type usage struct {
	secretBinding, credentialsBinding bool
	providers                         sets.Set[string]
}

// mark gives an object the finalizers and labels for its use, and takes those away that nobody asks for any more.
func (u usage) mark(obj *metav1.PartialObjectMetadata, kind string) {
	wasMarked := marked(obj)
	labels := map[string]string{}
	maps.Copy(labels, obj.Labels)
	set := func(label string, wanted bool) {
		if wanted {
			labels[label] = "true"
		} else {
			delete(labels, label)
		}
	}
	set(constants.SecretBindingReference, u.secretBinding)
	set(constants.CredentialsBindingReference, u.credentialsBinding)
	if kind != uses.Quota { // another controller keeps these, and they are of no provider
		setFinalizer(obj, constants.FinalizerSecretBinding, u.secretBinding)
		setFinalizer(obj, constants.FinalizerCredentialsBinding, u.credentialsBinding)
		for label := range labels {
			// What somebody else put on an object that no binding ever referred to is not ours to remove.
			if provider, ok := strings.CutPrefix(label, constants.ShootProviderPrefix); ok && wasMarked && !u.providers.Has(provider) {
				delete(labels, label)
			}
		}
		for provider := range u.providers {
			// SecretBindings have names of providers that nobody checked.
			if label := constants.ShootProviderPrefix + provider; len(validation.IsQualifiedName(label)) == 0 {
				labels[label] = "true"
			}
		}
	}
	if len(labels) > 0 || obj.Labels != nil {
		obj.Labels = labels
	}
}

func setFinalizer(obj *metav1.PartialObjectMetadata, finalizer string, wanted bool) {
	switch {
	case !wanted:
		controllerutil.RemoveFinalizer(obj, finalizer)
	case obj.DeletionTimestamp == nil: // none can be added to an object that is being deleted
		controllerutil.AddFinalizer(obj, finalizer)
	}
}

// marked says whether an object has a mark that tells of bindings.
func marked(obj client.Object) bool {
	labels := obj.GetLabels()
	return labels[constants.SecretBindingReference] != "" || labels[constants.CredentialsBindingReference] != "" ||
		controllerutil.ContainsFinalizer(obj, constants.FinalizerSecretBinding) ||
		controllerutil.ContainsFinalizer(obj, constants.FinalizerCredentialsBinding)
}
