package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// credentialKinds are the kinds of objects that hold credentials for a seed's infrastructure.
var credentialKinds = []string{"v1, Secret", "security.gardener.cloud/v1alpha1, WorkloadIdentity"}

// ValidateBackupBucket checks a new BackupBucket.
func ValidateBackupBucket(bucket *corev1beta1.BackupBucket) field.ErrorList {
	errs := validateLabelName(&bucket.ObjectMeta, false)
	spec, path := bucket.Spec, field.NewPath("spec")
	if spec.Provider.Type == "" {
		errs = append(errs, field.Invalid(path.Child("provider", "type"), spec.Provider.Type, "must be set"))
	}
	if spec.Provider.Region == "" {
		errs = append(errs, field.Invalid(path.Child("provider", "region"), spec.Provider.Region, "must be set"))
	}
	errs = append(errs, backupOwner(spec.SeedName, spec.ShootRef, path)...)
	if spec.CredentialsRef == nil {
		errs = append(errs, field.Required(path.Child("credentialsRef"), "must be set"))
	} else {
		errs = append(errs, credentialsReference(*spec.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
	}
	return errs
}

// ValidateBackupBucketUpdate checks a changed BackupBucket.
func ValidateBackupBucketUpdate(bucket, old *corev1beta1.BackupBucket) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&bucket.ObjectMeta, &old.ObjectMeta, metadataPath)
	path := field.NewPath("spec")
	errs = append(errs, immutable(bucket.Spec.Provider, old.Spec.Provider, path.Child("provider"))...)
	if old.Spec.SeedName != nil {
		errs = append(errs, immutable(bucket.Spec.SeedName, old.Spec.SeedName, path.Child("seedName"))...)
	}
	if old.Spec.ShootRef != nil && bucket.Spec.ShootRef != nil {
		errs = append(errs, immutable(bucket.Spec.ShootRef, old.Spec.ShootRef, path.Child("shootRef"))...)
	}
	return append(errs, ValidateBackupBucket(bucket)...)
}

// ValidateBackupEntry checks a new BackupEntry.
func ValidateBackupEntry(entry *corev1beta1.BackupEntry) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&entry.ObjectMeta, true, apipath.ValidatePathSegmentName, metadataPath) //nolint:staticcheck // its deprecation is for Kubernetes' own kinds
	path := field.NewPath("spec")
	if entry.Spec.BucketName == "" {
		errs = append(errs, field.Invalid(path.Child("bucketName"), entry.Spec.BucketName, "must be set"))
	}
	return append(errs, backupOwner(entry.Spec.SeedName, entry.Spec.ShootRef, path)...)
}

// ValidateBackupEntryUpdate checks a changed BackupEntry.
func ValidateBackupEntryUpdate(entry, old *corev1beta1.BackupEntry) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&entry.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, ValidateBackupEntry(entry)...)
}

// backupOwner checks the seed or shoot whose gardenlet is responsible for a bucket or an entry.
func backupOwner(seedName *string, shootRef *corev1.ObjectReference, path *field.Path) field.ErrorList {
	if (seedName == nil) == (shootRef == nil) {
		return field.ErrorList{field.Invalid(path.Child("seedName"), seedName, "exactly one of seedName and shootRef must be set")}
	}
	var errs field.ErrorList
	if seedName != nil {
		for _, msg := range apivalidation.NameIsDNSSubdomain(*seedName, false) {
			errs = append(errs, field.Invalid(path.Child("seedName"), *seedName, msg))
		}
		return errs
	}
	path = path.Child("shootRef")
	if shootRef.APIVersion != corev1beta1.SchemeGroupVersion.String() {
		errs = append(errs, field.Forbidden(path.Child("apiVersion"), "must be "+corev1beta1.SchemeGroupVersion.String()))
	}
	if shootRef.Kind != "Shoot" {
		errs = append(errs, field.Forbidden(path.Child("kind"), "must be Shoot"))
	}
	for _, msg := range apivalidation.NameIsDNSLabel(shootRef.Name, false) {
		errs = append(errs, field.Invalid(path.Child("name"), shootRef.Name, msg))
	}
	for _, msg := range validation.IsDNS1123Label(shootRef.Namespace) {
		errs = append(errs, field.Invalid(path.Child("namespace"), shootRef.Namespace, msg))
	}
	return errs
}

// credentialsReference checks a reference to credentials, whose namespace is part of it.
func credentialsReference(ref corev1.ObjectReference, kinds []string, path *field.Path) field.ErrorList {
	errs := reference(fromObjectReference(ref), true, kinds, path)
	for _, msg := range validation.IsDNS1123Label(ref.Namespace) {
		errs = append(errs, field.Invalid(path.Child("namespace"), ref.Namespace, msg))
	}
	return errs
}
