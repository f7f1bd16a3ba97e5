package security_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/validation/security"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func binding() *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Name: "local", Namespace: "garden-dev", ResourceVersion: "1"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-dev", Name: "local"},
	}
}

func TestValidateCredentialsBinding(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*securityv1alpha1.CredentialsBinding)
		want   []string
	}{
		"a secret": {change: func(*securityv1alpha1.CredentialsBinding) {}},
		"a workload identity": {change: func(b *securityv1alpha1.CredentialsBinding) {
			b.CredentialsRef.APIVersion, b.CredentialsRef.Kind = "security.gardener.cloud/v1alpha1", "WorkloadIdentity"
		}},
		"another kind": {
			change: func(b *securityv1alpha1.CredentialsBinding) { b.CredentialsRef.Kind = "ConfigMap" },
			want:   []string{"FieldValueNotSupported credentialsRef"},
		},
		"several provider types": {
			change: func(b *securityv1alpha1.CredentialsBinding) { b.Provider.Type = "local,other" },
			want:   []string{"FieldValueInvalid provider.type"},
		},
		"a quota of nowhere": {
			change: func(b *securityv1alpha1.CredentialsBinding) { b.Quotas = []corev1.ObjectReference{{Name: "trial"}} },
			want:   []string{"FieldValueRequired quotas[0].namespace"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := binding()
			tc.change(b)
			validationtest.Expect(t, security.ValidateCredentialsBinding(b), tc.want...)
		})
	}

	changed := binding()
	changed.CredentialsRef.Name = "other"
	validationtest.Expect(t, security.ValidateCredentialsBindingUpdate(changed, binding()), "FieldValueInvalid credentialsRef")
}

func TestValidateWorkloadIdentity(t *testing.T) {
	identity := func() *securityv1alpha1.WorkloadIdentity {
		return &securityv1alpha1.WorkloadIdentity{
			ObjectMeta: metav1.ObjectMeta{Name: "local", Namespace: "garden-dev", ResourceVersion: "1"},
			Spec: securityv1alpha1.WorkloadIdentitySpec{
				Audiences: []string{"a"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
			},
			Status: securityv1alpha1.WorkloadIdentityStatus{Sub: "gardener.cloud:workloadidentity:garden-dev:local:1"},
		}
	}
	for name, tc := range map[string]struct {
		change func(*securityv1alpha1.WorkloadIdentity)
		want   []string
	}{
		"another audience": {change: func(w *securityv1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"b"} }},
		"no audience": {
			change: func(w *securityv1alpha1.WorkloadIdentity) { w.Spec.Audiences = nil },
			want:   []string{"FieldValueRequired spec.audiences"},
		},
		"an audience twice": {
			change: func(w *securityv1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a", "a"} },
			want:   []string{"FieldValueDuplicate spec.audiences[1]"},
		},
		"another system": {
			change: func(w *securityv1alpha1.WorkloadIdentity) { w.Spec.TargetSystem.Type = "other" },
			want:   []string{"FieldValueInvalid spec.targetSystem.type"},
		},
		"another subject": {
			change: func(w *securityv1alpha1.WorkloadIdentity) { w.Status.Sub = "somebody else" },
			want:   []string{"FieldValueInvalid status.sub"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := identity()
			tc.change(w)
			validationtest.Expect(t, security.ValidateWorkloadIdentityUpdate(w, identity()), tc.want...)
		})
	}
}

func TestValidateTokenRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		spec securityv1alpha1.TokenRequestSpec
		want []string
	}{
		"an hour for a shoot": {spec: securityv1alpha1.TokenRequestSpec{
			ExpirationSeconds: new(int64(3600)),
			ContextObject:     &securityv1alpha1.ContextObject{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: new("garden-dev"), Name: "crazy-botany", UID: "1"},
		}},
		"too short":  {spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(599))}, want: []string{"FieldValueInvalid spec.expirationSeconds"}},
		"too long":   {spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(1<<32 + 1))}, want: []string{"FieldValueInvalid spec.expirationSeconds"}},
		"no context": {spec: securityv1alpha1.TokenRequestSpec{}},
		"half a context": {
			spec: securityv1alpha1.TokenRequestSpec{ContextObject: &securityv1alpha1.ContextObject{APIVersion: "v1", Kind: "Shoot"}},
			want: []string{"FieldValueRequired spec.contextObject.name", "FieldValueRequired spec.contextObject.uid"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			validationtest.Expect(t, security.ValidateTokenRequest(&securityv1alpha1.TokenRequest{Spec: tc.spec}), tc.want...)
		})
	}
}
