// Package credentials labels the Secrets, InternalSecrets, WorkloadIdentities and Quotas that SecretBindings and CredentialsBindings
// refer to, and keeps the credentials among them from being deleted.
//
// It reconciles the objects that are referred to: however many bindings refer to a Secret, it is reconciled once. Reads bindings, and of
// the other kinds only metadata; writes finalizers and labels. Source: concepts.txt, "CredentialsBinding Controller" and "SecretBinding
// Controller".
package credentials

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
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
