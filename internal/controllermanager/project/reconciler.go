package project

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	gardenCache client.Client
	gardenAPI   client.Reader
	recorder    events.EventRecorder
	quotas      []quota
}

// Reconcile creates and updates the objects of a Project, or deletes them.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	project := &corev1beta1.Project{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pass, reason, action := r.prepare, constants.EventProjectNamespaceReconcileFailed, constants.EventActionReconcile
	if project.DeletionTimestamp != nil {
		pass, reason, action = r.delete, constants.EventProjectNamespaceDeletionFailed, constants.EventActionDelete
	}
	phase, err := pass(ctx, project)
	switch {
	case err == nil:
		return kube.Result(r.report(ctx, project, phase))
	case kube.Routine(err):
		log.FromContext(ctx).V(1).Info("Retrying after a conflict", "reason", err.Error())
		return kube.Result(err)
	}
	// An error that only a user can fix is recorded once.
	if !errors.Is(err, errNotAdoptable) || project.Status.Phase != corev1beta1.ProjectFailed {
		r.recorder.Eventf(project, nil, corev1.EventTypeWarning, reason, action, "%v", err)
	}
	if reportErr := r.report(ctx, project, corev1beta1.ProjectFailed); reportErr != nil {
		return kube.Result(reportErr)
	}
	return reconcile.Result{}, err
}

// prepare creates and updates the objects of a Project.
func (r *reconciler) prepare(ctx context.Context, project *corev1beta1.Project) (corev1beta1.ProjectPhase, error) {
	if err := r.claim(ctx, project); err != nil {
		return "", err
	}
	if project.Status.Phase == "" {
		if err := r.report(ctx, project, corev1beta1.ProjectPending); err != nil {
			return "", err
		}
	}
	if err := r.ensureNamespace(ctx, project); err != nil {
		return "", err
	}
	// There are a dozen objects that do not depend on each other. Written in parallel, they take as long as one.
	roles, bindings, roleBindings := rbac(project)
	var tasks []func() error
	for _, desired := range roles {
		tasks = append(tasks, func() error { return r.ensureClusterRole(ctx, project, desired) })
	}
	for _, desired := range bindings {
		tasks = append(tasks, func() error { return r.ensureClusterRoleBinding(ctx, project, desired) })
	}
	for _, desired := range roleBindings {
		tasks = append(tasks, func() error { return r.ensureRoleBinding(ctx, project, desired) })
	}
	tasks = append(tasks,
		func() error { return r.deleteStaleExtensionRoles(ctx, project, roles) },
		func() error { return r.ensureQuota(ctx, project) },
	)
	return corev1beta1.ProjectReady, utilerrors.AggregateGoroutines(tasks...)
}

// claim adds the finalizer to a Project and chooses its namespace, before any object is created. The name follows from the UID of the
// Project, so that another pass chooses the same.
func (r *reconciler) claim(ctx context.Context, project *corev1beta1.Project) error {
	if controllerutil.ContainsFinalizer(project, constants.FinalizerGardenerName) && project.Spec.Namespace != nil {
		return nil
	}
	before := project.DeepCopy()
	controllerutil.AddFinalizer(project, constants.FinalizerGardenerName)
	if project.Spec.Namespace == nil {
		project.Spec.Namespace = new(namespaceName(project))
	}
	if err := r.gardenCache.Patch(ctx, project, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("choose namespace: %w", err)
	}
	return nil
}

// delete releases the namespace and then the Project.
func (r *reconciler) delete(ctx context.Context, project *corev1beta1.Project) (corev1beta1.ProjectPhase, error) {
	if !controllerutil.ContainsFinalizer(project, constants.FinalizerGardenerName) {
		return project.Status.Phase, nil
	}
	if project.Spec.Namespace != nil {
		inUse, err := r.hasShoots(ctx, *project.Spec.Namespace)
		if err != nil {
			return "", err
		}
		if inUse {
			if project.Status.Phase != corev1beta1.ProjectTerminating { // recorded once; the deletion of each Shoot is an event
				r.recorder.Eventf(project, nil, corev1.EventTypeWarning, constants.EventProjectNamespaceNotEmpty, constants.EventActionDelete,
					"Namespace %q is kept until its last Shoot is deleted", *project.Spec.Namespace)
			}
			return corev1beta1.ProjectTerminating, nil
		}
		released, err := r.releaseNamespace(ctx, project)
		if err != nil || !released {
			return corev1beta1.ProjectTerminating, err // the deletion of the namespace is an event
		}
	}
	err := kube.PatchMetadata(ctx, r.gardenCache, project, func(o *metav1.PartialObjectMetadata) {
		controllerutil.RemoveFinalizer(o, constants.FinalizerGardenerName)
	})
	return corev1beta1.ProjectTerminating, err
}

// hasShoots reports whether there are Shoots in a namespace. If the cache has none, it reads from the API server, as Shoots would be deleted
// with their namespace.
func (r *reconciler) hasShoots(ctx context.Context, namespace string) (bool, error) {
	cached := &corev1beta1.ShootList{}
	if err := r.gardenCache.List(ctx, cached, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list Shoots: %w", err)
	}
	if len(cached.Items) > 0 {
		return true, nil
	}
	current := &metav1.PartialObjectMetadataList{}
	current.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	if err := r.gardenAPI.List(ctx, current, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, fmt.Errorf("list Shoots: %w", err)
	}
	return len(current.Items) > 0, nil
}

// releaseNamespace deletes the namespace of a Project, or separates the two if the namespace is to be kept. It returns whether that is
// complete.
func (r *reconciler) releaseNamespace(ctx context.Context, project *corev1beta1.Project) (bool, error) {
	namespace := kube.Metadata(namespaceKind)
	if err := r.gardenCache.Get(ctx, types.NamespacedName{Name: *project.Spec.Namespace}, namespace); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	switch {
	case !belongs(namespace, project):
		return true, nil // it belongs to another Project or to none
	case keep(namespace):
		err := kube.PatchMetadata(ctx, r.gardenCache, namespace, func(o *metav1.PartialObjectMetadata) { separate(o, project) })
		return err == nil, err
	case namespace.DeletionTimestamp != nil:
		return false, nil
	}
	log.FromContext(ctx).Info("Deleting namespace of Project", "namespace", namespace.Name)
	// Another one of the same name may have been created since.
	err := r.gardenCache.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})
	if err != nil {
		return false, fmt.Errorf("delete namespace %q: %w", namespace.Name, err)
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeNormal, constants.EventProjectNamespaceMarkedForDeletion, constants.EventActionDelete,
		"Namespace %q is being deleted", namespace.Name)
	return false, nil
}
