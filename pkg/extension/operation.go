package extension

import (
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// repairable says whether an object is one that has been created on this seed, and has nothing to do.
func repairable(obj extensionsv1alpha1.Object) bool {
	last := obj.GetExtensionStatus().GetLastOperation()
	return obj.GetDeletionTimestamp() == nil && obj.GetAnnotations()[constants.GardenerOperation] == "" &&
		last != nil && last.State == corev1beta1.LastOperationStateSucceeded && last.Type != corev1beta1.LastOperationTypeMigrate
}

// decide returns the operation that is to be done on an object, or "" if there is nothing to do. The order matters: the infrastructure of an
// object that migrates to another seed must not be deleted, so Migrate comes first, and a migrated object is skipped until it is deleted or
// restored.
func decide(obj extensionsv1alpha1.Object, finalizer string, byGeneration bool) corev1beta1.LastOperationType {
	requested := obj.GetAnnotations()[constants.GardenerOperation]
	last := obj.GetExtensionStatus().GetLastOperation()
	unfinished := func(typ corev1beta1.LastOperationType) bool {
		return last != nil && last.Type == typ && last.State != corev1beta1.LastOperationStateSucceeded
	}
	deleting := obj.GetDeletionTimestamp() != nil
	switch {
	case deleting && !controllerutil.ContainsFinalizer(obj, finalizer):
		return ""
	case requested == constants.GardenerOperationMigrate, unfinished(corev1beta1.LastOperationTypeMigrate) && !deleting && requested == "":
		return corev1beta1.LastOperationTypeMigrate
	case deleting:
		return corev1beta1.LastOperationTypeDelete
	case requested == constants.GardenerOperationWaitForState:
		return ""
	case requested == constants.GardenerOperationRestore, unfinished(corev1beta1.LastOperationTypeRestore):
		return corev1beta1.LastOperationTypeRestore
	case last != nil && last.Type == corev1beta1.LastOperationTypeMigrate:
		return ""
	case last == nil, unfinished(corev1beta1.LastOperationTypeCreate):
		return corev1beta1.LastOperationTypeCreate
	case requested == constants.GardenerOperationReconcile,
		last.State != corev1beta1.LastOperationStateSucceeded,
		byGeneration && obj.GetGeneration() != obj.GetExtensionStatus().GetObservedGeneration():
		return corev1beta1.LastOperationTypeReconcile
	}
	return ""
}
