// Package extensionclusterrole grants extensions permissions in the garden: it binds labelled ClusterRoles to the ServiceAccounts in the
// namespaces of seeds that the ClusterRole selects.
//
// It reads ClusterRoles and the metadata of ServiceAccounts, and writes a ClusterRoleBinding with the name of the ClusterRole.
// Source: concepts.txt, ControllerRegistration controller, "Extension ClusterRole" reconciler.
package extensionclusterrole

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

const (
	// labelCustomPermissions is "true" on ClusterRoles for extensions.
	labelCustomPermissions = "authorization.gardener.cloud/custom-extensions-permissions"
	// annotationSelector is the label selector for ServiceAccounts, in JSON.
	annotationSelector = "authorization.gardener.cloud/extensions-serviceaccount-selector"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ClusterRoles are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("controllerregistration-extension-clusterrole").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&rbacv1.ClusterRole{}, builder.WithPredicates(watch.NoDeletes(), predicate.Funcs{ // the binding is deleted with its owner
			CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return marked(e.ObjectOld) || marked(e.ObjectNew) },
		})).
		Owns(&rbacv1.ClusterRoleBinding{}).
		WatchesMetadata(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(
			predicate.NewPredicateFuncs(func(obj client.Object) bool { return inSeedNamespace(obj.GetNamespace()) }),
			predicate.LabelChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

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

// selectorOf returns the selector for the ServiceAccounts of a ClusterRole.
func selectorOf(role *rbacv1.ClusterRole) (labels.Selector, error) {
	text, ok := role.Annotations[annotationSelector]
	if !ok {
		return nil, fmt.Errorf("ClusterRole %q: annotation %s is missing", role.Name, annotationSelector)
	}
	selector := &metav1.LabelSelector{}
	if err := json.Unmarshal([]byte(text), selector); err != nil {
		return nil, fmt.Errorf("ClusterRole %q: annotation %s: %w", role.Name, annotationSelector, err)
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("ClusterRole %q: annotation %s: %w", role.Name, annotationSelector, err)
	}
	return s, nil
}

// desired returns the binding of a ClusterRole to those of the ServiceAccounts that are in namespaces of seeds.
func desired(role *rbacv1.ClusterRole, accounts []metav1.PartialObjectMetadata) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:            role.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(role, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for i := range accounts {
		if inSeedNamespace(accounts[i].Namespace) {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: accounts[i].Namespace, Name: accounts[i].Name,
			})
		}
	}
	slices.SortFunc(binding.Subjects, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return binding
}

func marked(obj client.Object) bool { return obj.GetLabels()[labelCustomPermissions] == "true" }

func inSeedNamespace(namespace string) bool {
	return strings.HasPrefix(namespace, constants.SeedNamespaceNamePrefix)
}
