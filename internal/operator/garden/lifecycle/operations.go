package lifecycle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/rotation"
)

// rotations refers to the rotations of a status with two steps, which it fills with empty ones as needed.
type rotations struct {
	ca, account, encryption, identity rotation.Phased
}

// all are all of them.
func (r rotations) all() []rotation.Phased {
	return []rotation.Phased{r.ca, r.account, r.encryption, r.identity}
}

func rotationsOf(c *operatorv1alpha1.Credentials) rotations {
	if c.Rotation == nil {
		c.Rotation = &operatorv1alpha1.CredentialsRotation{}
	}
	r := c.Rotation
	if r.CertificateAuthorities == nil {
		r.CertificateAuthorities = &corev1beta1.CARotation{}
	}
	if r.ServiceAccountKey == nil {
		r.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{}
	}
	if r.ETCDEncryptionKey == nil {
		r.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{}
	}
	if r.WorkloadIdentityKey == nil {
		r.WorkloadIdentityKey = &operatorv1alpha1.WorkloadIdentityKeyRotation{}
	}
	w := r.WorkloadIdentityKey
	return rotations{
		ca: rotation.OfCAs(r.CertificateAuthorities), account: rotation.OfServiceAccountKey(r.ServiceAccountKey),
		encryption: rotation.OfEncryptionKey(r.ETCDEncryptionKey),
		identity: rotation.Phased{
			Phase: &w.Phase, Initiated: &w.LastInitiationTime, Prepared: &w.LastInitiationFinishedTime,
			CompletionTriggered: &w.LastCompletionTriggeredTime, Completed: &w.LastCompletionTime,
		},
	}
}

// removeUnbegun removes the rotations that never began.
func removeUnbegun(status *operatorv1alpha1.GardenStatus) {
	c := status.Credentials
	r := c.Rotation
	if r.CertificateAuthorities.Phase == "" {
		r.CertificateAuthorities = nil
	}
	if r.ServiceAccountKey.Phase == "" {
		r.ServiceAccountKey = nil
	}
	if r.ETCDEncryptionKey.Phase == "" {
		r.ETCDEncryptionKey = nil
	}
	if r.WorkloadIdentityKey.Phase == "" {
		r.WorkloadIdentityKey = nil
	}
	if *r == (operatorv1alpha1.CredentialsRotation{}) {
		c.Rotation = nil
	}
	if c.Rotation == nil && c.EncryptionAtRest == nil {
		status.Credentials = nil
	}
}

// beginOperations writes into a status that the operations of the annotation begin. It returns those that do. Others are for other controllers.
func beginOperations(garden *operatorv1alpha1.Garden, now metav1.Time) (begun []string) {
	if garden.Status.Credentials == nil {
		garden.Status.Credentials = &operatorv1alpha1.Credentials{}
	}
	c := garden.Status.Credentials
	r := rotationsOf(c)
	begin := map[string][]rotation.Phased{
		constants.OperationRotateCredentialsStart: r.all(), constants.OperationRotateCAStart: {r.ca},
		constants.OperationRotateServiceAccountKeyStart: {r.account}, constants.OperationRotateETCDEncryptionKey: {r.encryption},
		constants.OperationRotateETCDEncryptionKeyStart: {r.encryption}, constants.OperationRotateWorkloadIdentityKeyStart: {r.identity},
	}
	complete := map[string][]rotation.Phased{
		constants.OperationRotateCredentialsComplete: r.all(), constants.OperationRotateCAComplete: {r.ca},
		constants.OperationRotateServiceAccountKeyComplete: {r.account}, constants.OperationRotateETCDEncryptionKeyComplete: {r.encryption},
		constants.OperationRotateWorkloadIdentityKeyComplete: {r.identity},
	}
	// These rotate the encryption key from the start to the end.
	whole := []string{constants.OperationRotateCredentialsStart, constants.OperationRotateETCDEncryptionKey}
	observability := []string{constants.OperationRotateCredentialsStart, constants.OperationRotateObservabilityCredentials}
	for _, operation := range kube.SplitAnnotation(garden.Annotations[constants.GardenerOperation], constants.OperationsSeparator) {
		for _, phased := range begin[operation] {
			phased.Start(now, corev1beta1.RotationPreparing)
		}
		for _, phased := range complete[operation] {
			phased.Complete(now)
		}
		if slices.Contains(whole, operation) && c.Rotation.ETCDEncryptionKey.Phase == corev1beta1.RotationPreparing {
			c.Rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared = new(true) //nolint:staticcheck // clients of before read it
		}
		if slices.Contains(observability, operation) {
			if c.Rotation.Observability == nil {
				c.Rotation.Observability = &corev1beta1.ObservabilityRotation{}
			}
			c.Rotation.Observability.LastInitiationTime = &now
		}
		if begin[operation] != nil || complete[operation] != nil || slices.Contains(observability, operation) || operation == constants.GardenerOperationReconcile {
			begun = append(begun, operation)
		}
	}
	removeUnbegun(&garden.Status)
	return begun
}

// finishRotations writes into a status that the steps of rotations which had begun are done.
func finishRotations(garden *operatorv1alpha1.Garden, now metav1.Time) {
	c := garden.Status.Credentials
	if c == nil || c.Rotation == nil {
		return
	}
	r := rotationsOf(c)
	completing, triggered := *r.ca.Phase == corev1beta1.RotationCompleting, *r.ca.CompletionTriggered
	for _, phased := range r.all() {
		phased.Advance(now)
	}
	if completing {
		// Until one more run, after which components of Gardener, and members of etcd if there are several, do not trust the old CAs any more.
		*r.ca.CompletionTriggered = triggered
	}
	e := c.Rotation.ETCDEncryptionKey
	if e.Phase == corev1beta1.RotationPrepared && ptr.Deref(e.AutoCompleteAfterPrepared, false) { //nolint:staticcheck // clients of before read it
		r.encryption.Complete(now)
	}
	if e.Phase == corev1beta1.RotationCompleted {
		e.AutoCompleteAfterPrepared = nil //nolint:staticcheck // clients of before read it
	}
	if o := c.Rotation.Observability; o != nil && o.LastInitiationTime != nil && (o.LastCompletionTime == nil || o.LastCompletionTime.Before(o.LastInitiationTime)) {
		o.LastCompletionTime = &now
	}
	removeUnbegun(&garden.Status)
}

// continues is whether a rotation continues without another operation.
func continues(garden *operatorv1alpha1.Garden) bool {
	c := garden.Status.Credentials
	if c == nil || c.Rotation == nil {
		return false
	}
	ca, key := c.Rotation.CertificateAuthorities, c.Rotation.ETCDEncryptionKey
	return key != nil && key.Phase == corev1beta1.RotationCompleting ||
		ca != nil && ca.Phase == corev1beta1.RotationCompleted && ca.LastCompletionTriggeredTime != nil
}
