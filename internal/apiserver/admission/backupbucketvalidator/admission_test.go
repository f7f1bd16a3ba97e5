package backupbucketvalidator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/backupbucketvalidator"
)

func TestValidate(t *testing.T) {
	identity := &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "identity"},
		Spec:       securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}},
	}
	for name, tc := range map[string]struct {
		kind, name, provider string
		want                 metav1.StatusReason
	}{
		"a secret":                        {kind: "Secret", name: "x", provider: "local"},
		"an identity for the provider":    {kind: "WorkloadIdentity", name: "identity", provider: "local"},
		"an identity for another":         {kind: "WorkloadIdentity", name: "identity", provider: "other", want: metav1.StatusReasonForbidden},
		"an identity that does not exist": {kind: "WorkloadIdentity", name: "x", provider: "local", want: metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := &corev1beta1.BackupBucket{Spec: corev1beta1.BackupBucketSpec{
				Provider: corev1beta1.BackupBucketProvider{Type: tc.provider}, CredentialsRef: &corev1.ObjectReference{Kind: tc.kind, Namespace: "garden", Name: tc.name},
			}}
			p := backupbucketvalidator.New()
			p.GardenCache = admissiontest.Reader(t, identity)
			if err := p.Validate(t.Context(), admissiontest.Request{Resource: "backupbuckets", Object: bucket}.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}
