package core

import (
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func backupEntry() *kind.Kind[corev1beta1.BackupEntry] {
	return &kind.Kind[corev1beta1.BackupEntry]{
		GroupVersionKind: gvk("BackupEntry"),
		Plural:           "backupentries",
		ShortNames:       []string{"bec"},
		Categories:       all,
		Namespaced:       true,
		HasStatus:        true,
		HasGeneration:    true,

		Canonicalize:   func(b *corev1beta1.BackupEntry) { labelSeeds(&b.ObjectMeta, b.Spec.SeedName, b.Status.SeedName) },
		Validate:       core.ValidateBackupEntry,
		ValidateUpdate: core.ValidateBackupEntryUpdate,
		Operation: kind.FixedEffects[corev1beta1.BackupEntry](map[string]kind.Effect{
			constants.GardenerOperationReconcile: kind.Taken,
			constants.GardenerOperationMigrate:   kind.Taken,
			constants.GardenerOperationRestore:   kind.Counted,
		}),
		Fields: map[string]func(*corev1beta1.BackupEntry) string{
			"spec.seedName":           func(b *corev1beta1.BackupEntry) string { return ptr.Deref(b.Spec.SeedName, "") },
			"spec.bucketName":         func(b *corev1beta1.BackupEntry) string { return b.Spec.BucketName },
			"spec.shootRef.name":      func(b *corev1beta1.BackupEntry) string { return nameOf(b.Spec.ShootRef) },
			"spec.shootRef.namespace": func(b *corev1beta1.BackupEntry) string { return namespaceOf(b.Spec.ShootRef) },
		},
		IndexedFields: []string{"spec.seedName", "spec.bucketName"},
		Columns: []kind.Column[corev1beta1.BackupEntry]{
			{
				Name: "Bucket", Description: "Bucket that has the backups.",
				Value: func(b *corev1beta1.BackupEntry) any { return b.Spec.BucketName },
			},
			{
				Name: "Seed", Description: "Seed that is responsible.",
				Value: func(b *corev1beta1.BackupEntry) any { return ptr.Deref(b.Spec.SeedName, "") },
			},
			{
				Name: "Operation", Description: "State of the last operation.",
				Value: func(b *corev1beta1.BackupEntry) any { return operationState(b.Status.LastOperation) },
			},
			{
				Name: "Progress", Description: "Progress of the last operation, in percent.",
				Value: func(b *corev1beta1.BackupEntry) any { return operationProgress(b.Status.LastOperation) },
			},
		},
	}
}

// operationState returns the state of the last operation for a cell.
func operationState(last *corev1beta1.LastOperation) string {
	if last == nil || last.State == "" {
		return kind.Pending
	}
	return string(last.State)
}

// operationProgress returns the progress of the last operation for a cell.
func operationProgress(last *corev1beta1.LastOperation) int32 {
	if last == nil {
		return 0
	}
	return last.Progress
}
