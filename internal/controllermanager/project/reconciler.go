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
	client   client.Client
	reader   client.Reader // reads what the cache may not have heard of yet
	recorder events.EventRecorder
	quotas   []quota
}

// Reconcile brings a Project to where its spec says, or takes it away.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	project := &corev1beta1.Project{}
	if err := r.client.Get(ctx, req.NamespacedName, project); err != nil {
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
		log.FromContext(ctx).V(1).Info("Trying again", "reason", err.Error())
		return kube.Result(err)
	}
	// What only an edit can mend is said once.
	if !errors.Is(err, errNotAdoptable) || project.Status.Phase != corev1beta1.ProjectFailed {
		r.recorder.Eventf(project, nil, corev1.EventTypeWarning, reason, action, "%v", err)
	}
	if reportErr := r.report(ctx, project, corev1beta1.ProjectFailed); reportErr != nil {
		return kube.Result(reportErr)
	}
	return reconcile.Result{}, err
}

// prepare makes everything that a Project consists of.
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
	// They do not depend on each other, and there are a dozen: together they take as long as one.
	roles, bindings, roleBindings := rbac(project)
	var tasks []func() error
	for _, want := range roles {
		tasks = append(tasks, func() error { return r.ensureClusterRole(ctx, project, want) })
	}
	for _, want := range bindings {
		tasks = append(tasks, func() error { return r.ensureClusterRoleBinding(ctx, project, want) })
	}
	for _, want := range roleBindings {
		tasks = append(tasks, func() error { return r.ensureRoleBinding(ctx, project, want) })
	}
	tasks = append(tasks,
		func() error { return r.deleteStaleExtensionRoles(ctx, project, roles) },
		func() error { return r.ensureQuota(ctx, project) },
	)
	return corev1beta1.ProjectReady, utilerrors.AggregateGoroutines(tasks...)
}

// claim puts the finalizer on a Project and chooses its namespace, before there is anything to guard. The choice follows from the
// Project, so that a pass that ended here is continued by the next one.
func (r *reconciler) claim(ctx context.Context, project *corev1beta1.Project) error {
	if controllerutil.ContainsFinalizer(project, constants.FinalizerGardenerName) && project.Spec.Namespace != nil {
		return nil
	}
	before := project.DeepCopy()
	controllerutil.AddFinalizer(project, constants.FinalizerGardenerName)
	if project.Spec.Namespace == nil {
		project.Spec.Namespace = new(namespaceName(project))
	}
	if err := r.client.Patch(ctx, project, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
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
			if project.Status.Phase != corev1beta1.ProjectTerminating { // said once; the end of each Shoot brings us here again
				r.recorder.Eventf(project, nil, corev1.EventTypeWarning, constants.EventProjectNamespaceNotEmpty, constants.EventActionDelete,
					"Namespace %q is kept until its last Shoot is deleted", *project.Spec.Namespace)
			}
			return corev1beta1.ProjectTerminating, nil
		}
		released, err := r.releaseNamespace(ctx, project)
		if err != nil || !released {
			return corev1beta1.ProjectTerminating, err // the end of the namespace brings us here again
		}
	}
	err := kube.PatchMetadata(ctx, r.client, project, func(o *metav1.PartialObjectMetadata) {
		controllerutil.RemoveFinalizer(o, constants.FinalizerGardenerName)
	})
	return corev1beta1.ProjectTerminating, err
}

// hasShoots says whether there are Shoots in a namespace. If the cache has none, the API server has the last word: what a namespace
// holds goes with it.
func (r *reconciler) hasShoots(ctx context.Context, namespace string) (bool, error) {
	cached := &corev1beta1.ShootList{}
	if err := r.client.List(ctx, cached, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list Shoots: %w", err)
	}
	if len(cached.Items) > 0 {
		return true, nil
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	if err := r.reader.List(ctx, live, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, fmt.Errorf("list Shoots: %w", err)
	}
	return len(live.Items) > 0, nil
}

// releaseNamespace deletes the namespace of a Project, or separates the two if it is to be kept. It says whether it is done.
func (r *reconciler) releaseNamespace(ctx context.Context, project *corev1beta1.Project) (bool, error) {
	namespace := kube.Metadata(namespaceKind)
	if err := r.client.Get(ctx, types.NamespacedName{Name: *project.Spec.Namespace}, namespace); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	switch {
	case !belongs(namespace, project):
		return true, nil // it never was this Project's
	case keep(namespace):
		err := kube.PatchMetadata(ctx, r.client, namespace, func(o *metav1.PartialObjectMetadata) { separate(o, project) })
		return err == nil, err
	case namespace.DeletionTimestamp != nil:
		return false, nil
	}
	log.FromContext(ctx).Info("Deleting namespace of Project", "namespace", namespace.Name)
	// Somebody else may have made a new one of this name.
	err := r.client.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})
	if err != nil {
		return false, fmt.Errorf("delete namespace %q: %w", namespace.Name, err)
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeNormal, constants.EventProjectNamespaceMarkedForDeletion, constants.EventActionDelete,
		"Namespace %q is being deleted", namespace.Name)
	return false, nil
}
