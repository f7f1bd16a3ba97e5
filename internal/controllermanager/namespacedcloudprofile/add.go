// Package namespacedcloudprofile merges NamespacedCloudProfiles with the CloudProfiles that they extend, and keeps them while Shoots use
// them.
//
// Reads NamespacedCloudProfiles, CloudProfiles and Shoots; writes finalizer and status of NamespacedCloudProfiles. Source: concepts.txt,
// "NamespacedCloudProfile Controller".
package namespacedcloudprofile

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

const name = "namespacedcloudprofile"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many NamespacedCloudProfiles are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient(), guard: guard.Guard{
		GardenCache: mgr.GetClient(), Recorder: mgr.GetEventRecorder(name), Users: []client.Object{&corev1beta1.Shoot{}},
	}}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.NamespacedCloudProfile{}, builder.WithPredicates(changed())).
		// CloudProfiles have no generation. They are kept while NamespacedCloudProfiles refer to them.
		Watches(&corev1beta1.CloudProfile{}, watch.Referrers(mgr.GetClient(), references.CloudProfile, &corev1beta1.NamespacedCloudProfile{}),
			builder.WithPredicates(watch.NoDeletes(), watch.Updated(func(before, after *corev1beta1.CloudProfile) bool {
				return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec)
			}))).
		// A Shoot that is created changes nothing: the finalizer exists already.
		Watches(&corev1beta1.Shoot{}, watch.ChangedReferences(references.NamespacedCloudProfile), builder.WithPredicates(watch.NoCreates())).
		Complete(r)
}

// changed passes changes of the spec, and of the status, which only this controller writes: one that was merged from an old cache is corrected. What
// webhooks of extensions add to it stays until the profile or its parent changes. They do so for a provider configuration, with which each pass writes
// the status anyway.
func changed() predicate.Predicate {
	return predicate.Or(guard.MetadataChanged(), predicate.GenerationChangedPredicate{}, predicate.And(
		predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.(*corev1beta1.NamespacedCloudProfile).Spec.ProviderConfig == nil //nolint:forcetypeassert // the kind that is watched
		}),
		kube.StatusChanged(func(p *corev1beta1.NamespacedCloudProfile) any { return p.Status }),
	))
}
