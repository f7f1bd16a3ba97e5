package v1alpha1_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/security/v1alpha1"
)

func TestDefaultCredentialsBinding(t *testing.T) {
	b := &v1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-dev"},
		CredentialsRef: corev1.ObjectReference{Name: "c"},
		Quotas:         []corev1.ObjectReference{{Name: "here"}, {Name: "there", Namespace: "garden-trial"}},
	}
	v1alpha1.DefaultCredentialsBinding(b)
	for what, pair := range map[string][2]string{
		"credentials":     {b.CredentialsRef.Namespace, "garden-dev"},
		"quota":           {b.Quotas[0].Namespace, "garden-dev"},
		"quota elsewhere": {b.Quotas[1].Namespace, "garden-trial"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the namespace is %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestDefaultTokenRequest(t *testing.T) {
	r := &v1alpha1.TokenRequest{}
	v1alpha1.DefaultTokenRequest(r)
	if got := *r.Spec.ExpirationSeconds; got != 3600 {
		t.Errorf("a token lives %d seconds, want 3600", got)
	}
	*r.Spec.ExpirationSeconds = 600
	v1alpha1.DefaultTokenRequest(r)
	if got := *r.Spec.ExpirationSeconds; got != 600 {
		t.Errorf("a token lives %d seconds, want 600", got)
	}
}
