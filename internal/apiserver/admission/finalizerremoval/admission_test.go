package finalizerremoval_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/finalizerremoval"
)

func TestValidate(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "n", Name: "name"}
	shoot := func(change func(*corev1beta1.ShootStatus)) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: meta}
		change(&s.Status)
		return s
	}
	last := func(operation corev1beta1.LastOperationType, state corev1beta1.LastOperationState, progress int32) *corev1beta1.Shoot {
		return shoot(func(s *corev1beta1.ShootStatus) {
			s.TechnicalID, s.LastOperation = "shoot--n--name", &corev1beta1.LastOperation{Type: operation, State: state, Progress: progress}
		})
	}
	using := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "using"}}
	using.Spec.SecretBindingName, using.Spec.CredentialsBindingName = new("name"), new("name")
	elsewhere := using.DeepCopy()
	elsewhere.Namespace = "other"
	for name, tc := range map[string]struct {
		obj    client.Object
		stored client.Object
		want   metav1.StatusReason
	}{
		"an unused SecretBinding":          {obj: &corev1beta1.SecretBinding{ObjectMeta: meta}, stored: elsewhere},
		"a SecretBinding in use":           {obj: &corev1beta1.SecretBinding{ObjectMeta: meta}, stored: using, want: metav1.StatusReasonForbidden},
		"an unused CredentialsBinding":     {obj: &securityv1alpha1.CredentialsBinding{ObjectMeta: meta}, stored: elsewhere},
		"a CredentialsBinding in use":      {obj: &securityv1alpha1.CredentialsBinding{ObjectMeta: meta}, stored: using, want: metav1.StatusReasonForbidden},
		"a Shoot that was never begun":     {obj: shoot(func(*corev1beta1.ShootStatus) {})},
		"a Shoot that was begun":           {obj: shoot(func(s *corev1beta1.ShootStatus) { s.TechnicalID = "x" }), want: metav1.StatusReasonForbidden},
		"a Shoot that runs":                {obj: last(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, 100), want: metav1.StatusReasonForbidden},
		"a Shoot whose deletion failed":    {obj: last(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateFailed, 40), want: metav1.StatusReasonForbidden},
		"a Shoot whose deletion succeeded": {obj: last(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateSucceeded, 100)},
		"something else":                   {obj: &corev1beta1.Quota{ObjectMeta: meta}, stored: using},
	} {
		t.Run(name, func(t *testing.T) {
			p := finalizerremoval.New()
			p.GardenCache = admissiontest.Reader(t)
			if tc.stored != nil {
				p.GardenCache = admissiontest.Reader(t, tc.stored)
			}
			old := tc.obj.DeepCopyObject().(client.Object)
			old.SetFinalizers([]string{"gardener"})
			if err := p.Validate(t.Context(), admissiontest.Request{Object: tc.obj, Old: old}.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
			if err := p.Validate(t.Context(), admissiontest.Request{Object: old, Old: old}.Attributes(), nil); err != nil {
				t.Errorf("with the finalizer left on: %v", err)
			}
		})
	}
}
