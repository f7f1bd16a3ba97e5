package shootvalidator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
)

func TestCredentialsChange(t *testing.T) {
	binding := func(name, kind, namespace, object string) *securityv1alpha1.CredentialsBinding {
		apiVersion := map[string]string{
			"Secret": "v1", "InternalSecret": "core.gardener.cloud/v1beta1", "WorkloadIdentity": "security.gardener.cloud/v1alpha1",
		}[kind]
		return &securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-dev", Name: name},
			CredentialsRef: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: object},
		}
	}
	garden := admissiontest.Reader(t,
		&corev1beta1.SecretBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "old"}, SecretRef: corev1.SecretReference{Name: "account"}},
		binding("same", "Secret", "garden-dev", "account"), binding("another", "Secret", "garden-dev", "other"),
		binding("elsewhere", "Secret", "garden-prod", "account"), binding("internal", "InternalSecret", "garden-dev", "account"),
		binding("identity", "WorkloadIdentity", "garden-dev", "account"),
	)
	secretBinding := func(name string) func(*corev1beta1.ShootSpec) {
		return func(s *corev1beta1.ShootSpec) { s.SecretBindingName, s.CredentialsBindingName = &name, nil }
	}
	credentialsBinding := func(name string) func(*corev1beta1.ShootSpec) {
		return func(s *corev1beta1.ShootSpec) { s.SecretBindingName, s.CredentialsBindingName = nil, &name }
	}
	for name, tc := range map[string]struct {
		from, to func(*corev1beta1.ShootSpec)
		denied   []string
		refused  bool
	}{
		"the same Secret":                         {from: secretBinding("old"), to: credentialsBinding("same")},
		"another Secret":                          {from: secretBinding("old"), to: credentialsBinding("another"), refused: true},
		"a Secret of the name in another project": {from: secretBinding("old"), to: credentialsBinding("elsewhere"), refused: true},
		"an InternalSecret of the name":           {from: secretBinding("old"), to: credentialsBinding("internal"), refused: true},
		"a WorkloadIdentity of the name":          {from: secretBinding("old"), to: credentialsBinding("identity"), refused: true},
		"a SecretBinding that is gone":            {from: secretBinding("gone"), to: credentialsBinding("same"), refused: true},
		"another CredentialsBinding":              {from: credentialsBinding("same"), to: credentialsBinding("identity")},
		"the same Secret, which the user may not read": {
			from: secretBinding("old"), to: credentialsBinding("same"), denied: []string{"get secrets"}, refused: true,
		},
		"a WorkloadIdentity that the user may not read": {
			from: credentialsBinding("same"), to: credentialsBinding("identity"), denied: []string{"get workloadidentities"}, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plugin{}
			p.GardenCache, p.KubeAPI = garden, garden
			p.SetAuthorizer(admissiontest.Denying(tc.denied...))
			old, shoot := newShoot(func(s *corev1beta1.Shoot) { tc.from(&s.Spec) }), newShoot(func(s *corev1beta1.Shoot) { tc.to(&s.Spec) })
			request := admissiontest.Request{Object: shoot, Old: old, Resource: "shoots"}
			if err := p.checkCredentialsChange(t.Context(), request.Attributes(), &input{shoot: shoot, old: old}); (err != nil) != tc.refused {
				t.Errorf("checkCredentialsChange() = %v, want refused: %t", err, tc.refused)
			}
		})
	}
}
