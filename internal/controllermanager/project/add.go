// Package project gives each Project its namespace, lets its members in, and limits what it may take.
//
// Reads Projects, Shoots and metadata of Namespaces. Writes finalizer, spec.namespace, phase and observed generation of Projects;
// Namespaces and, below the Project as their owner, ClusterRoles, ClusterRoleBindings, RoleBindings and the ResourceQuota "gardener".
// Source: concepts.txt, Project controller, "Main".
package project

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/kube"
)

const name = "project"

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// Add adds the controller. The quotas are from the configuration; the first that matches a Project counts.
func Add(mgr manager.Manager, concurrentSyncs int, quotas []controllermanagerconfigv1alpha1.QuotaConfiguration) error {
	selectable, err := selectableQuotas(quotas)
	if err != nil {
		return err
	}
	r := &reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(name), quotas: selectable}
	// What we made is put right when somebody changes or deletes it. That it was made is no news.
	changed := builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	})
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		// Labels decide which quota a Project gets. Status, which others write too, is nothing to us.
		For(&corev1beta1.Project{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, guard.MetadataChanged(),
		))).
		WatchesMetadata(kube.Metadata(namespaceKind), handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return r.projectsOf(ctx, obj.GetName(), false)
		}), builder.WithPredicates(predicate.Or[client.Object](
			predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, guard.MetadataChanged(),
			predicate.Funcs{
				CreateFunc: func(event.CreateEvent) bool { return true },
				UpdateFunc: func(e event.UpdateEvent) bool {
					return !apiequality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
				},
			},
		))).
		// A Project that is being deleted waits for the last Shoot.
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return r.projectsOf(ctx, obj.GetNamespace(), true)
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		Owns(&rbacv1.ClusterRole{}, changed).
		Owns(&rbacv1.ClusterRoleBinding{}, changed).
		Owns(&rbacv1.RoleBinding{}, changed).
		Owns(&corev1.ResourceQuota{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool { // how much of it is used changes all the time
				before, after := e.ObjectOld.(*corev1.ResourceQuota), e.ObjectNew.(*corev1.ResourceQuota) //nolint:forcetypeassert // the kind that is watched
				return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Labels, after.Labels) ||
					!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations)
			},
		})).
		Complete(r)
}

// projectsOf returns the Project that a namespace belongs to, or is to belong to.
func (r *reconciler) projectsOf(ctx context.Context, namespace string, onlyDeleted bool) []reconcile.Request {
	projects := &corev1beta1.ProjectList{}
	if err := r.client.List(ctx, projects, client.MatchingFields{uses.ProjectByNamespace: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Looking for the Project of a namespace", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for _, project := range projects.Items {
		if !onlyDeleted || project.DeletionTimestamp != nil {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: project.Name}})
		}
	}
	return requests
}
