package extensions

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
)

// Validate checks a new object of any kind of the group.
func Validate(obj extensionsv1alpha1.Object) field.ErrorList {
	switch obj := obj.(type) {
	case *extensionsv1alpha1.BackupBucket:
		return ValidateBackupBucket(obj)
	case *extensionsv1alpha1.BackupEntry:
		return ValidateBackupEntry(obj)
	case *extensionsv1alpha1.Bastion:
		return ValidateBastion(obj)
	case *extensionsv1alpha1.ContainerRuntime:
		return ValidateContainerRuntime(obj)
	case *extensionsv1alpha1.ControlPlane:
		return ValidateControlPlane(obj)
	case *extensionsv1alpha1.DNSRecord:
		return ValidateDNSRecord(obj)
	case *extensionsv1alpha1.Extension:
		return ValidateExtension(obj)
	case *extensionsv1alpha1.Infrastructure:
		return ValidateInfrastructure(obj)
	case *extensionsv1alpha1.Network:
		return ValidateNetwork(obj)
	case *extensionsv1alpha1.OperatingSystemConfig:
		return ValidateOperatingSystemConfig(obj)
	case *extensionsv1alpha1.SelfHostedShootExposure:
		return ValidateSelfHostedShootExposure(obj)
	case *extensionsv1alpha1.Worker:
		return ValidateWorker(obj)
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("no validation for %T", obj))}
}

// ValidateUpdate checks a changed object of any kind of the group.
func ValidateUpdate(obj, old extensionsv1alpha1.Object) field.ErrorList {
	switch obj := obj.(type) {
	case *extensionsv1alpha1.BackupBucket:
		return ValidateBackupBucketUpdate(obj, old.(*extensionsv1alpha1.BackupBucket))
	case *extensionsv1alpha1.BackupEntry:
		return ValidateBackupEntryUpdate(obj, old.(*extensionsv1alpha1.BackupEntry))
	case *extensionsv1alpha1.Bastion:
		return ValidateBastionUpdate(obj, old.(*extensionsv1alpha1.Bastion))
	case *extensionsv1alpha1.ContainerRuntime:
		return ValidateContainerRuntimeUpdate(obj, old.(*extensionsv1alpha1.ContainerRuntime))
	case *extensionsv1alpha1.ControlPlane:
		return ValidateControlPlaneUpdate(obj, old.(*extensionsv1alpha1.ControlPlane))
	case *extensionsv1alpha1.DNSRecord:
		return ValidateDNSRecordUpdate(obj, old.(*extensionsv1alpha1.DNSRecord))
	case *extensionsv1alpha1.Extension:
		return ValidateExtensionUpdate(obj, old.(*extensionsv1alpha1.Extension))
	case *extensionsv1alpha1.Infrastructure:
		return ValidateInfrastructureUpdate(obj, old.(*extensionsv1alpha1.Infrastructure))
	case *extensionsv1alpha1.Network:
		return ValidateNetworkUpdate(obj, old.(*extensionsv1alpha1.Network))
	case *extensionsv1alpha1.OperatingSystemConfig:
		return ValidateOperatingSystemConfigUpdate(obj, old.(*extensionsv1alpha1.OperatingSystemConfig))
	case *extensionsv1alpha1.SelfHostedShootExposure:
		return ValidateSelfHostedShootExposureUpdate(obj, old.(*extensionsv1alpha1.SelfHostedShootExposure))
	case *extensionsv1alpha1.Worker:
		return ValidateWorkerUpdate(obj, old.(*extensionsv1alpha1.Worker))
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("no validation for %T", obj))}
}

// validate checks what every kind has: metadata, type and class.
func validate(meta *metav1.ObjectMeta, namespaced bool, spec *extensionsv1alpha1.DefaultSpec) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, namespaced, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, required(spec.Type, specPath.Child("type"))...)
	if spec.Class != nil {
		errs = append(errs, supported(*spec.Class, specPath.Child("class"), extensionsv1alpha1.ExtensionClassShoot,
			extensionsv1alpha1.ExtensionClassSeed, extensionsv1alpha1.ExtensionClassGarden)...)
	}
	return errs
}

// frozen refuses every change of the spec while an object is being deleted. Then nothing else needs to be checked.
func frozen(meta *metav1.ObjectMeta, spec, oldSpec any) (field.ErrorList, bool) {
	if meta.DeletionTimestamp == nil {
		return nil, false
	}
	if apiequality.Semantic.DeepEqual(spec, oldSpec) {
		return nil, true
	}
	return field.ErrorList{field.Forbidden(specPath, "cannot be changed while the object is being deleted")}, true
}

// unchanged checks what is immutable for every kind: metadata, type and class. The default class may be set if none was.
func unchanged(meta, old *metav1.ObjectMeta, spec, oldSpec *extensionsv1alpha1.DefaultSpec) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(meta, old, metadataPath)
	errs = append(errs, immutable(spec.Type, oldSpec.Type, specPath.Child("type"))...)
	return append(errs, immutable(spec.GetExtensionClass(), oldSpec.GetExtensionClass(), specPath.Child("class"))...)
}

func immutable(value, old any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

func required(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	return nil
}

// notEmpty refuses an optional text that is set and empty.
func notEmpty(value *string, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return required(*value, path)
}

func supported[T ~string](value T, path *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

func secretReference(ref corev1.SecretReference, path *field.Path) field.ErrorList {
	return append(required(ref.Name, path.Child("name")), required(ref.Namespace, path.Child("namespace"))...)
}
