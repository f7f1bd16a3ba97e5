package operator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// encryptionKey is the credential with which API servers encrypt data at rest.
const encryptionKey = "etcd-encryption-key"

// rotations are the operations that start or complete a rotation, with their credentials.
var rotations = map[string][]string{
	constants.OperationRotateCAStart:                     {"ca"},
	constants.OperationRotateCAComplete:                  {"ca"},
	constants.OperationRotateServiceAccountKeyStart:      {"serviceaccount-key"},
	constants.OperationRotateServiceAccountKeyComplete:   {"serviceaccount-key"},
	constants.OperationRotateETCDEncryptionKey:           {encryptionKey},
	constants.OperationRotateETCDEncryptionKeyStart:      {encryptionKey},
	constants.OperationRotateETCDEncryptionKeyComplete:   {encryptionKey},
	constants.OperationRotateWorkloadIdentityKeyStart:    {"workload-identity-key"},
	constants.OperationRotateWorkloadIdentityKeyComplete: {"workload-identity-key"},
	constants.OperationRotateCredentialsStart:            {"ca", "serviceaccount-key", encryptionKey, "workload-identity-key"},
	constants.OperationRotateCredentialsComplete:         {"ca", "serviceaccount-key", "workload-identity-key"},
	constants.OperationRotateObservabilityCredentials:    nil,
	constants.GardenerOperationReconcile:                 nil,
}

// operation checks that the operation in the annotation is possible: a rotation starts only when the last one is completed, and is
// completed only when it is prepared.
func operation(garden *operatorv1alpha1.Garden) field.ErrorList {
	value, ok := garden.Annotations[constants.GardenerOperation]
	if !ok || value == "" {
		return nil
	}
	var errs field.ErrorList
	path := metadataPath.Child("annotations").Key(constants.GardenerOperation)
	phase := phases(garden)
	asked := map[string]string{}
	for operation := range strings.SplitSeq(value, constants.OperationsSeparator) {
		credentials, known := rotations[operation]
		if !known {
			errs = append(errs, field.NotSupported(path, operation, slices.Sorted(maps.Keys(rotations))))
			continue
		}
		for _, name := range credentials {
			if other, twice := asked[name]; twice {
				errs = append(errs, field.Invalid(path, value, fmt.Sprintf("%s and %s cannot be combined", other, operation)))
			}
			asked[name] = operation
			switch {
			case strings.HasSuffix(operation, "-complete"):
				if phase[name] != corev1beta1.RotationPrepared {
					errs = append(errs, field.Forbidden(path, fmt.Sprintf("%s needs the phase Prepared of %s, which is %q", operation, name, phase[name])))
				}
			case garden.DeletionTimestamp != nil:
				errs = append(errs, field.Forbidden(path, operation+" is not possible while the Garden is being deleted"))
			case phase[name] != "" && phase[name] != corev1beta1.RotationCompleted:
				errs = append(errs, field.Forbidden(path, fmt.Sprintf("%s must wait until the rotation of %s is completed; it is %q", operation, name, phase[name])))
			case name == encryptionKey && encryptionChanges(garden):
				errs = append(errs, field.Forbidden(path, operation+" must wait until the encryption configuration is changed"))
			}
		}
	}
	return errs
}

// startsRotation reports whether an operation starts the rotation of a credential.
func startsRotation(operation, name string) bool {
	return slices.Contains(rotations[operation], name) && !strings.HasSuffix(operation, "-complete")
}

// phases returns the phase of each rotation. Credentials that are missing were never rotated.
func phases(garden *operatorv1alpha1.Garden) map[string]corev1beta1.CredentialsRotationPhase {
	out := map[string]corev1beta1.CredentialsRotationPhase{}
	if garden.Status.Credentials == nil || garden.Status.Credentials.Rotation == nil {
		return out
	}
	rotation := garden.Status.Credentials.Rotation
	if r := rotation.CertificateAuthorities; r != nil {
		out["ca"] = r.Phase
	}
	if r := rotation.ServiceAccountKey; r != nil {
		out["serviceaccount-key"] = r.Phase
	}
	if r := rotation.ETCDEncryptionKey; r != nil {
		out[encryptionKey] = r.Phase
	}
	if r := rotation.WorkloadIdentityKey; r != nil {
		out["workload-identity-key"] = r.Phase
	}
	return out
}
