package extensionclusterrole

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type reconciler struct{ gardenCache client.Client }

// all returns requests for all ClusterRoles for extensions. Only a few extensions need permissions of their own.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	roles := &rbacv1.ClusterRoleList{}
	if err := r.gardenCache.List(ctx, roles, client.MatchingLabels{labelCustomPermissions: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing ClusterRoles")
		return nil
	}
	var requests []reconcile.Request
	for i := range roles.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&roles.Items[i])})
	}
	return requests
}

// Reconcile creates or updates the binding of a ClusterRole, with the selected ServiceAccounts as its subjects.
func (r *reconciler) Reconcile(ctx context.Context, role *rbacv1.ClusterRole) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	binding := &rbacv1.ClusterRoleBinding{}
	err := r.gardenCache.Get(ctx, client.ObjectKey{Name: role.Name}, binding)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read ClusterRoleBinding %q: %w", role.Name, err)
	}
	exists := err == nil
	if role.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if !marked(role) {
		if !exists || !metav1.IsControlledBy(binding, role) {
			return reconcile.Result{}, nil
		}
		log.Info("Deleting binding of ClusterRole that is not for extensions any more")
		return reconcile.Result{}, client.IgnoreNotFound(r.gardenCache.Delete(ctx, binding))
	}
	selector, err := selectorOf(role)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only a change of the annotation helps
	}
	accounts := &metav1.PartialObjectMetadataList{}
	accounts.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	if err := r.gardenCache.List(ctx, accounts, client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ServiceAccounts: %w", err)
	}
	after := desired(role, accounts.Items)
	switch {
	case !exists:
		log.Info("Creating binding", "subjects", len(after.Subjects))
		if err := r.gardenCache.Create(ctx, after); err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, fmt.Errorf("create ClusterRoleBinding %q: %w", after.Name, err)
		}
		return reconcile.Result{}, nil
	case binding.RoleRef != after.RoleRef:
		// The role of a binding is immutable. Its deletion is an event, after which it is created again.
		log.Info("Deleting binding to another role")
		return reconcile.Result{}, client.IgnoreNotFound(r.gardenCache.Delete(ctx, binding))
	}
	before := binding.DeepCopy()
	binding.Subjects, binding.OwnerReferences = after.Subjects, after.OwnerReferences
	if apiequality.Semantic.DeepEqual(before, binding) {
		return reconcile.Result{}, nil
	}
	log.Info("Updating binding", "subjects", len(after.Subjects))
	return reconcile.Result{}, r.gardenCache.Patch(ctx, binding, client.MergeFrom(before))
}
