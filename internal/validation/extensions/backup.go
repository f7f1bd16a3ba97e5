package extensions

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateBackupBucket checks a new BackupBucket.
func ValidateBackupBucket(bucket *extensionsv1alpha1.BackupBucket) field.ErrorList {
	spec := &bucket.Spec
	errs := validate(&bucket.ObjectMeta, false, &spec.DefaultSpec)
	errs = append(errs, required(spec.Region, specPath.Child("region"))...)
	return append(errs, secretReference(spec.SecretRef, specPath.Child("secretRef"))...)
}

// ValidateBackupBucketUpdate checks a changed BackupBucket.
func ValidateBackupBucketUpdate(bucket, old *extensionsv1alpha1.BackupBucket) field.ErrorList {
	if errs, done := frozen(&bucket.ObjectMeta, bucket.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&bucket.ObjectMeta, &old.ObjectMeta, &bucket.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(bucket.Spec.Region, old.Spec.Region, specPath.Child("region"))...)
	return append(errs, ValidateBackupBucket(bucket)...)
}

// ValidateBackupEntry checks a new BackupEntry.
func ValidateBackupEntry(entry *extensionsv1alpha1.BackupEntry) field.ErrorList {
	spec := &entry.Spec
	errs := validate(&entry.ObjectMeta, false, &spec.DefaultSpec)
	errs = append(errs, required(spec.Region, specPath.Child("region"))...)
	errs = append(errs, required(spec.BucketName, specPath.Child("bucketName"))...)
	return append(errs, secretReference(spec.SecretRef, specPath.Child("secretRef"))...)
}

// ValidateBackupEntryUpdate checks a changed BackupEntry.
func ValidateBackupEntryUpdate(entry, old *extensionsv1alpha1.BackupEntry) field.ErrorList {
	if errs, done := frozen(&entry.ObjectMeta, entry.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&entry.ObjectMeta, &old.ObjectMeta, &entry.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(entry.Spec.Region, old.Spec.Region, specPath.Child("region"))...)
	return append(errs, ValidateBackupEntry(entry)...)
}
