// Package project maintains the namespace of each Project, the RBAC objects for its members, and its ResourceQuota.
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
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

const name = "project"

var namespaceKind = corev1.SchemeGroupVersion.WithKind(references.Namespace)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Projects are reconciled at the same time.
	ConcurrentSyncs int
	// Quotas are the ResourceQuotas for the namespaces of Projects. The first whose selector matches the labels of a Project is used.
	Quotas []controllermanagerconfigv1alpha1.QuotaConfiguration
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	selectable, err := selectableQuotas(v.Quotas)
	if err != nil {
		return err
	}
	r := &reconciler{gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(name), quotas: selectable}
	// Objects of the Project that a user changes or deletes are corrected. Their creation needs no reconciliation.
	changed := builder.WithPredicates(watch.NoCreates(), predicate.ResourceVersionChangedPredicate{})
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.Project{}, builder.WithPredicates(projectChanged())).
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
		// A Project that is being deleted waits until its last Shoot is deleted.
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return r.projectsOf(ctx, obj.GetNamespace(), true)
		}), builder.WithPredicates(watch.NoCreates(), watch.NoUpdates())).
		Owns(&rbacv1.ClusterRole{}, changed).
		Owns(&rbacv1.ClusterRoleBinding{}, changed).
		Owns(&rbacv1.RoleBinding{}, changed).
		Owns(&corev1.ResourceQuota{}, builder.WithPredicates(watch.NoCreates(), watch.Updated(func(before, after *corev1.ResourceQuota) bool {
			// The usage in the status changes all the time.
			return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations)
		}))).
		Complete(r)
}

// projectChanged passes changes of labels, which decide which quota a Project gets, and of what this controller writes to the status: a phase that was
// decided by an old cache is corrected. Other controllers write the status, too, which has no influence.
func projectChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, guard.MetadataChanged(),
		kube.StatusChanged(func(p *corev1beta1.Project) any { return []any{p.Status.Phase, p.Status.ObservedGeneration} }))
}

// projectsOf returns a request for the Project whose spec names a namespace, on request only if the Project is being deleted.
func (r *reconciler) projectsOf(ctx context.Context, namespace string, onlyDeleted bool) []reconcile.Request {
	projects := &corev1beta1.ProjectList{}
	ref := references.Ref{Kind: references.Namespace, Name: namespace}
	if err := r.gardenCache.List(ctx, projects, references.To(ref), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the Project of a namespace", "namespace", namespace)
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
