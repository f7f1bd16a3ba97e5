package shootvalidator

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestKubeconfigs(t *testing.T) {
	const usual = "clusters: [{name: a, cluster: {server: 'https://a.example'}}]\nusers: [{name: a, user: {token: x}}]\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
	const plugin, authorizer = "spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName", "spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName"
	unchanged := func(in *input) { in.old = in.shoot.DeepCopy() }
	for name, tc := range map[string]struct {
		data   map[string]string
		change func(*input)
		want   []string
	}{
		"usual":               {data: map[string]string{kubeconfigKey: usual}},
		"with a program":      {map[string]string{kubeconfigKey: strings.Replace(usual, "token: x", "exec: {command: x}", 1)}, nil, []string{"FieldValueInvalid " + plugin, "FieldValueInvalid " + authorizer}},
		"with a file":         {map[string]string{kubeconfigKey: strings.Replace(usual, "token: x", "tokenFile: /x", 1)}, nil, []string{"FieldValueInvalid " + plugin, "FieldValueInvalid " + authorizer}},
		"no kubeconfig yet":   {map[string]string{kubeconfigKey: "later"}, nil, nil},
		"nothing of the kind": {map[string]string{"other": usual}, nil, []string{"FieldValueInvalid " + plugin}},
		"no change of what it has": {
			map[string]string{kubeconfigKey: strings.Replace(usual, "token: x", "exec: {command: x}", 1)}, unchanged, nil,
		},
		"on its way out": {
			map[string]string{kubeconfigKey: strings.Replace(usual, "token: x", "exec: {command: x}", 1)},
			func(in *input) { in.shoot.DeletionTimestamp = &metav1.Time{Time: now} }, nil,
		},
		"not in the resources": {
			map[string]string{kubeconfigKey: usual}, func(in *input) { in.shoot.Spec.Resources = nil }, []string{"FieldValueInvalid " + plugin},
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "webhook"}, Data: map[string][]byte{}}
			for key, text := range tc.data {
				secret.Data[key] = []byte(text)
			}
			p := &Plugin{}
			p.KubeAPI = admissiontest.Reader(t, secret)
			in := &input{old: &corev1beta1.Shoot{}, shoot: newShoot(func(s *corev1beta1.Shoot) {
				s.Spec.Resources = []corev1beta1.NamedResourceReference{{ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: "Secret", Name: "webhook"}}}
				s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
					AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("webhook")}},
					StructuredAuthorization: &corev1beta1.StructuredAuthorization{Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{
						{AuthorizerName: "a", SecretName: "webhook"},
					}},
				}
			})}
			if tc.change != nil {
				tc.change(in)
			}
			validationtest.Expect(t, append(p.admissionPlugins(t.Context(), in), p.authorizers(t.Context(), in)...), tc.want...)
		})
	}
}
