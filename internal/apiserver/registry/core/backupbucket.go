package core

import (
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func backupBucket() *kind.Kind[corev1beta1.BackupBucket] {
	return &kind.Kind[corev1beta1.BackupBucket]{
		GroupVersionKind: gvk("BackupBucket"),
		Plural:           "backupbuckets",
		ShortNames:       []string{"bbc"},
		Categories:       all,
		HasStatus:        true,
		HasGeneration:    true,

		Validate:       core.ValidateBackupBucket,
		ValidateUpdate: core.ValidateBackupBucketUpdate,
		Fields: map[string]func(*corev1beta1.BackupBucket) string{
			// It has none, but clients may select by it.
			"metadata.namespace":      func(b *corev1beta1.BackupBucket) string { return b.Namespace },
			"spec.seedName":           func(b *corev1beta1.BackupBucket) string { return ptr.Deref(b.Spec.SeedName, "") },
			"spec.shootRef.name":      func(b *corev1beta1.BackupBucket) string { return nameOf(b.Spec.ShootRef) },
			"spec.shootRef.namespace": func(b *corev1beta1.BackupBucket) string { return namespaceOf(b.Spec.ShootRef) },
		},
		IndexedFields: []string{"spec.seedName"},
		WatchedField:  "spec.seedName",
		Columns: []kind.Column[corev1beta1.BackupBucket]{
			{
				Name: "Provider", Description: "Type of the provider.",
				Value: func(b *corev1beta1.BackupBucket) any { return b.Spec.Provider.Type },
			},
			{
				Name: "Seed", Description: "Seed that is responsible.",
				Value: func(b *corev1beta1.BackupBucket) any { return ptr.Deref(b.Spec.SeedName, "") },
			},
			{
				Name: "Operation", Description: "State of the last operation.",
				Value: func(b *corev1beta1.BackupBucket) any { return operationState(b.Status.LastOperation) },
			},
			{
				Name: "Progress", Description: "Progress of the last operation, in percent.",
				Value: func(b *corev1beta1.BackupBucket) any { return operationProgress(b.Status.LastOperation) },
			},
		},
	}
}
