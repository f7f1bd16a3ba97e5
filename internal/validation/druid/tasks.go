package druid

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// ValidateEtcdCopyBackupsTask checks a new or changed EtcdCopyBackupsTask.
func ValidateEtcdCopyBackupsTask(task *druidv1alpha1.EtcdCopyBackupsTask) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&task.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, store(&task.Spec.SourceStore, specPath.Child("sourceStore"))...)
	errs = append(errs, store(&task.Spec.TargetStore, specPath.Child("targetStore"))...)
	for _, number := range []struct {
		name  string
		value *int32
	}{{"maxBackupAge", task.Spec.MaxBackupAge}, {"maxBackups", task.Spec.MaxBackups}} {
		if number.value != nil {
			errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*number.value), specPath.Child(number.name))...)
		}
	}
	if wait := task.Spec.WaitForFinalSnapshot; wait != nil && wait.Timeout != nil && wait.Timeout.Duration < 0 {
		errs = append(errs, field.Invalid(specPath.Child("waitForFinalSnapshot", "timeout"), wait.Timeout.Duration.String(), "must not be negative"))
	}
	return errs
}

// ValidateEtcdOpsTask checks a new EtcdOpsTask.
func ValidateEtcdOpsTask(task *druidv1alpha1.EtcdOpsTask) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&task.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	path := specPath.Child("config")
	snapshot := task.Spec.Config.OnDemandSnapshot
	if snapshot == nil {
		return append(errs, field.Required(path, "exactly one operation must be set"))
	}
	path = path.Child("onDemandSnapshot")
	switch snapshot.Type {
	case druidv1alpha1.OnDemandSnapshotTypeFull:
	case druidv1alpha1.OnDemandSnapshotTypeDelta:
		if snapshot.IsFinal != nil && *snapshot.IsFinal {
			errs = append(errs, field.Invalid(path.Child("isFinal"), true, "only a full snapshot can be final"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), snapshot.Type,
			[]druidv1alpha1.OnDemandSnapshotType{druidv1alpha1.OnDemandSnapshotTypeFull, druidv1alpha1.OnDemandSnapshotTypeDelta}))
	}
	if task.Spec.EtcdName == nil || *task.Spec.EtcdName == "" {
		errs = append(errs, field.Required(specPath.Child("etcdName"), "must be set for a snapshot"))
	}
	if ttl := task.Spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 1 {
		errs = append(errs, field.Invalid(specPath.Child("ttlSecondsAfterFinished"), *ttl, "must be at least 1"))
	}
	return errs
}

// ValidateEtcdOpsTaskUpdate checks a changed EtcdOpsTask, whose spec cannot change.
func ValidateEtcdOpsTaskUpdate(task, old *druidv1alpha1.EtcdOpsTask) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&task.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, apivalidation.ValidateImmutableField(task.Spec, old.Spec, specPath)...)
}
