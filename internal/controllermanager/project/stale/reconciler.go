package stale

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	Values
	gardenCache client.Client
	// gardenAPI is read once more before a deletion, which cannot be undone.
	gardenAPI client.Reader
	recorder  events.EventRecorder
}

// Reconcile writes since when a Project is stale and when it will be deleted, or deletes it.
func (r *reconciler) Reconcile(ctx context.Context, project *corev1beta1.Project) (reconcile.Result, error) {
	if project.DeletionTimestamp != nil || project.Spec.Namespace == nil {
		return reconcile.Result{}, nil // a namespace is a change of the spec
	}
	user, err := r.user(ctx, *project.Spec.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(project, user != "", r.Clock.Now(), r.Values)
	logf.FromContext(ctx).V(1).Info("Checked the use of a Project", "user", user, "staleSince", v.since, "autoDelete", v.autoDelete)
	if v.remove {
		if v.remove, err = r.unusedNow(ctx, project); err != nil {
			return reconcile.Result{}, err
		}
	}
	if v.remove {
		return kube.Result(r.delete(ctx, project))
	}
	if err := r.report(ctx, project, v); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: v.recheckIn}, nil
}

// user returns what keeps the Project of a namespace from being stale, or nothing.
func (r *reconciler) user(ctx context.Context, namespace string) (string, error) {
	ns := kube.Metadata(corev1.SchemeGroupVersion.WithKind(references.Namespace))
	err := r.gardenCache.Get(ctx, client.ObjectKey{Name: namespace}, ns)
	if apierrors.IsNotFound(err) { // the cache may be a moment behind the Project, whose phase says that the namespace exists
		err = r.gardenAPI.Get(ctx, client.ObjectKey{Name: namespace}, ns)
	}
	if apierrors.IsNotFound(err) {
		return "a namespace that is not created yet", nil
	}
	if err != nil {
		return "", fmt.Errorf("read namespace %q: %w", namespace, err)
	}
	if skip, err := strconv.ParseBool(ns.Annotations[constants.ProjectSkipStaleCheck]); err == nil && skip {
		return "the annotation " + constants.ProjectSkipStaleCheck, nil
	}
	if kind, err := contains(ctx, r.gardenCache, namespace, users()...); err != nil || kind != "" {
		return kind, err
	}
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind(references.Secret),
		corev1beta1.SchemeGroupVersion.WithKind(references.InternalSecret),
		securityv1alpha1.SchemeGroupVersion.WithKind(references.WorkloadIdentity),
		corev1beta1.SchemeGroupVersion.WithKind(references.Quota),
	} {
		if user, err := r.userOf(ctx, namespace, kind); err != nil || user != "" {
			return user, err
		}
	}
	return "", nil
}

// users are lists of the objects in a namespace of which each keeps the Project from being stale.
func users() []client.ObjectList {
	return []client.ObjectList{&corev1beta1.ShootList{}, &corev1beta1.BackupEntryList{}, &corev1beta1.PlantList{}}
}

// contains returns the type of a list of which a namespace has objects, or nothing.
func contains(ctx context.Context, reader client.Reader, namespace string, lists ...client.ObjectList) (string, error) {
	for _, list := range lists {
		if err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("list %T in %q: %w", list, namespace, err)
		}
		if meta.LenList(list) > 0 {
			return fmt.Sprintf("%T", list), nil
		}
	}
	return "", nil
}

// userOf returns an object of a kind in a namespace that a binding refers to which a Shoot uses, or nothing. The Shoot can be in any namespace.
func (r *reconciler) userOf(ctx context.Context, namespace string, kind schema.GroupVersionKind) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.gardenCache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list every %s in %q: %w", kind.Kind, namespace, err)
	}
	for i := range list.Items {
		ref := references.RefOf(kind.Kind, &list.Items[i])
		for _, binding := range []struct {
			name string
			kind client.Object
		}{{references.CredentialsBinding, &securityv1alpha1.CredentialsBinding{}}, {references.SecretBinding, &corev1beta1.SecretBinding{}}} {
			bindings, err := references.Referrers(ctx, r.gardenCache, binding.kind, ref, 0)
			if err != nil {
				return "", err
			}
			for _, key := range bindings {
				to := references.Ref{Kind: binding.name, Namespace: key.Namespace, Name: key.Name}
				if shoots, err := references.Referrers(ctx, r.gardenCache, &corev1beta1.Shoot{}, to, 1); err != nil || len(shoots) > 0 {
					return ref.String(), err
				}
			}
		}
	}
	return "", nil
}

// unusedNow reports whether the API server has no such objects in a Project: the cache may be a moment behind.
func (r *reconciler) unusedNow(ctx context.Context, project *corev1beta1.Project) (bool, error) {
	kind, err := contains(ctx, r.gardenAPI, *project.Spec.Namespace, users()...)
	return kind == "", err
}

func (r *reconciler) delete(ctx context.Context, project *corev1beta1.Project) error {
	logf.FromContext(ctx).Info("Deleting Project because nothing used it", "staleSince", project.Status.StaleSinceTimestamp)
	before := project.DeepCopy()
	metav1.SetMetaDataAnnotation(&project.ObjectMeta, constants.ConfirmationDeletion, "true")
	// If anything has changed meanwhile, it is checked again.
	if err := r.gardenCache.Patch(ctx, project, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("confirm deletion: %w", err)
	}
	same := client.Preconditions{UID: &project.UID, ResourceVersion: &project.ResourceVersion}
	if err := r.gardenCache.Delete(ctx, project, same); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.recorder.Eventf(project, nil, corev1.EventTypeWarning, eventDeleted, constants.EventActionDelete,
		"The Project is deleted, as nothing has used it since %s.", project.Status.StaleSinceTimestamp.UTC().Format("2006-01-02"))
	return nil
}
