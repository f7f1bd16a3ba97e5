// Package access grants each gardenlet access to the Secrets that its seed needs, so that no gardenlet can read those of other seeds and
// their shoots: one Role for each seed and namespace, which names the Secrets and InternalSecrets, and is bound to the user of the gardenlet.
// Only the namespace of the seed is completely its own, with the ServiceAccounts of its extensions and their tokens.
//
// It reads Seeds, Shoots, bindings of credentials, BackupBuckets, BackupEntries, ControllerInstallations and ControllerDeployments. It writes
// Roles and RoleBindings, which the Seed owns. Source: concepts.txt, Admission Controller, "Authorization Webhook Handler for gardenlets",
// whose edges lead to the same Secrets.
package access

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Seeds are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("seed-access").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// A user may change or delete them.
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		// Nothing can be granted in the namespace of a Seed until it exists.
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1beta1.Seed{}, handler.OnlyControllerOwner()),
			builder.WithPredicates(watch.NoUpdates())).
		// Updates enqueue the seeds of before and of after.
		Watches(&corev1beta1.Shoot{}, watch.References(references.Seed), builder.WithPredicates(
			watch.Updated(func(before, after *corev1beta1.Shoot) bool {
				return !apiequality.Semantic.DeepEqual(references.Of(before), references.Of(after)) || issuerSecret(before, "") != issuerSecret(after, "")
			}))).
		Watches(&corev1beta1.BackupBucket{}, watch.References(references.Seed), builder.WithPredicates(
			watch.Updated(func(before, after *corev1beta1.BackupBucket) bool {
				return before.Generation != after.Generation || !apiequality.Semantic.DeepEqual(before.Status.GeneratedSecretRef, after.Status.GeneratedSecretRef)
			}))).
		Watches(&corev1beta1.BackupEntry{}, watch.References(references.Seed), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.ControllerInstallation{}, watch.References(references.Seed), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&gardencorev1.ControllerDeployment{}, handler.EnqueueRequestsFromMapFunc(r.allSeeds), builder.WithPredicates(
			watch.Updated(func(before, after *gardencorev1.ControllerDeployment) bool {
				return !apiequality.Semantic.DeepEqual(references.Of(before), references.Of(after))
			}))).
		Watches(&securityv1alpha1.CredentialsBinding{}, handler.EnqueueRequestsFromMapFunc(r.seedsOfBinding(references.CredentialsBinding)),
			builder.WithPredicates(watch.Updated(func(before, after *securityv1alpha1.CredentialsBinding) bool {
				return before.CredentialsRef != after.CredentialsRef
			}))).
		Watches(&corev1beta1.SecretBinding{}, handler.EnqueueRequestsFromMapFunc(r.seedsOfBinding(references.SecretBinding)),
			builder.WithPredicates(watch.Updated(func(before, after *corev1beta1.SecretBinding) bool { return before.SecretRef != after.SecretRef }))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// allSeeds returns requests for all Seeds. ControllerDeployments are few, and change seldom.
func (r *reconciler) allSeeds(ctx context.Context, _ client.Object) []reconcile.Request {
	seeds := &corev1beta1.SeedList{}
	if err := r.gardenCache.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Seeds")
		return nil
	}
	var requests []reconcile.Request
	for i := range seeds.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&seeds.Items[i])})
	}
	return requests
}

// seedsOfBinding returns requests for the seeds of the Shoots that refer to a binding of a kind.
func (r *reconciler) seedsOfBinding(kind string) handler.MapFunc {
	return func(ctx context.Context, binding client.Object) []reconcile.Request {
		shoots := &corev1beta1.ShootList{}
		if err := r.gardenCache.List(ctx, shoots, references.To(references.RefOf(kind, binding)), client.UnsafeDisableDeepCopy); err != nil {
			logf.FromContext(ctx).Error(err, "Listing the Shoots of a binding", "kind", kind, "binding", client.ObjectKeyFromObject(binding))
			return nil
		}
		var requests []reconcile.Request
		for i := range shoots.Items {
			requests = append(requests, references.Requests(&shoots.Items[i], references.Seed)...)
		}
		return requests
	}
}
