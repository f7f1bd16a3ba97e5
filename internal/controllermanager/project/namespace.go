package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// suffixLength is how many characters of the hash of a Project's UID are in the name of its namespace.
const suffixLength = 5

// errNotAdoptable means that a namespace cannot become that of a Project unless a user changes it.
var errNotAdoptable = errors.New("namespace cannot be adopted")

// namespaceName returns the name of the namespace for a Project without spec.namespace.
func namespaceName(project *corev1beta1.Project) string {
	sum := sha256.Sum256([]byte(project.UID))
	return constants.ProjectNamespacePrefix + project.Name + "-" + hex.EncodeToString(sum[:])[:suffixLength]
}

// ensureNamespace creates the namespace of a Project, or adopts one that was created for it.
func (r *reconciler) ensureNamespace(ctx context.Context, project *corev1beta1.Project) error {
	name := *project.Spec.Namespace
	namespace := kube.Metadata(namespaceKind)
	switch err := r.gardenCache.Get(ctx, types.NamespacedName{Name: name}, namespace); {
	case apierrors.IsNotFound(err):
		created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		claimFor(&created.ObjectMeta, project)
		created.Annotations[constants.NamespaceCreatedByProjectController] = "true"
		log.FromContext(ctx).Info("Creating namespace of Project", "namespace", name)
		if err := r.gardenCache.Create(ctx, created); err != nil {
			return fmt.Errorf("create namespace %q: %w", name, err)
		}
		r.recordReconciled(project)
		return nil
	case err != nil:
		return err
	}
	if err := adoptable(namespace, project); err != nil {
		return reconcile.TerminalError(fmt.Errorf("%w: %w", errNotAdoptable, err))
	}
	claimed := namespace.Annotations[constants.NamespaceProject] == string(project.UID)
	err := kube.PatchMetadata(ctx, r.gardenCache, namespace, func(o *metav1.PartialObjectMetadata) {
		claimFor(&o.ObjectMeta, project)
		if !claimed && o.Annotations[constants.NamespaceCreatedByProjectController] == "" {
			// It is older than the Project, and stays when the Project is deleted.
			o.Annotations[constants.NamespaceKeepAfterProjectDeletion] = "true"
		}
	})
	if err != nil {
		return err
	}
	if !claimed {
		r.recordReconciled(project)
	}
	return nil
}

func (r *reconciler) recordReconciled(project *corev1beta1.Project) {
	r.recorder.Eventf(project, nil, corev1.EventTypeNormal, constants.EventProjectNamespaceReconcileSuccessful, constants.EventActionReconcile,
		"Namespace %q belongs to the Project", *project.Spec.Namespace)
}

// adoptable returns why a Project cannot adopt an existing namespace. The labels of the namespace must name the Project: otherwise any user
// who may create Projects could take over any namespace, such as kube-system.
func adoptable(namespace *metav1.PartialObjectMetadata, project *corev1beta1.Project) error {
	switch {
	case namespace.DeletionTimestamp != nil:
		return fmt.Errorf("%q is being deleted", namespace.Name)
	case !belongs(namespace, project):
		return fmt.Errorf("%q needs the labels %s=%s and %s=%s", namespace.Name,
			constants.GardenRole, constants.GardenRoleProject, constants.ProjectName, project.Name)
	}
	if owner := namespace.Annotations[constants.NamespaceProject]; owner != "" && owner != string(project.UID) {
		return fmt.Errorf("%q is the namespace of another project", namespace.Name)
	}
	return nil
}

// belongs reports whether the labels of a namespace name a Project.
func belongs(namespace *metav1.PartialObjectMetadata, project *corev1beta1.Project) bool {
	return namespace.Labels[constants.GardenRole] == constants.GardenRoleProject && namespace.Labels[constants.ProjectName] == project.Name
}

// keep reports whether a namespace stays when its Project is deleted.
func keep(namespace *metav1.PartialObjectMetadata) bool {
	keep, err := strconv.ParseBool(namespace.Annotations[constants.NamespaceKeepAfterProjectDeletion])
	return err == nil && keep
}

// claimFor sets the labels, the annotation and the owner that make a namespace that of a Project.
func claimFor(meta *metav1.ObjectMeta, project *corev1beta1.Project) {
	metav1.SetMetaDataLabel(meta, constants.GardenRole, constants.GardenRoleProject)
	metav1.SetMetaDataLabel(meta, constants.ProjectName, project.Name)
	metav1.SetMetaDataAnnotation(meta, constants.NamespaceProject, string(project.UID))
	meta.OwnerReferences = withOwner(meta.OwnerReferences, project)
}

// separate removes what claimFor has set.
func separate(namespace *metav1.PartialObjectMetadata, project *corev1beta1.Project) {
	for _, label := range []string{constants.GardenRole, constants.ProjectName} {
		delete(namespace.Labels, label)
	}
	for _, annotation := range []string{
		constants.NamespaceProject, constants.NamespaceKeepAfterProjectDeletion, constants.NamespaceCreatedByProjectController,
	} {
		delete(namespace.Annotations, annotation)
	}
	namespace.OwnerReferences = slices.DeleteFunc(namespace.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == project.UID })
}

// withOwner adds a Project to the owners of an object, in the place of a former Project of the same name.
func withOwner(refs []metav1.OwnerReference, project *corev1beta1.Project) []metav1.OwnerReference {
	owner := *metav1.NewControllerRef(project, corev1beta1.SchemeGroupVersion.WithKind("Project"))
	owner.BlockOwnerDeletion = new(false) // the Project has a finalizer of its own
	for i, ref := range refs {
		if ref.Kind == owner.Kind && ref.Name == owner.Name {
			refs[i] = owner
			return refs
		}
	}
	return append(refs, owner)
}
