package kubeconfigreference

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

func TestHandle(t *testing.T) {
	shoot := func(namespace, name string, c *corev1beta1.KubeAPIServerConfig) *corev1beta1.Shoot {
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		shoot.Spec.Kubernetes.KubeAPIServer = c
		return shoot
	}
	plugin := func(secret string) *corev1beta1.KubeAPIServerConfig {
		return &corev1beta1.KubeAPIServerConfig{AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "none"}, {Name: "a", KubeconfigSecretName: &secret}}}
	}
	authorizer := func(secret string) *corev1beta1.KubeAPIServerConfig {
		return &corev1beta1.KubeAPIServerConfig{StructuredAuthorization: &corev1beta1.StructuredAuthorization{
			Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: secret}},
		}}
	}
	garden := webhooktest.Garden(
		t, shoot("garden-a", "none", nil), shoot("garden-a", "plugin", plugin("by-plugin")), shoot("garden-a", "authorizer", authorizer("by-authorizer")),
		shoot("garden-a", "two", plugin("by-two")), shoot("garden-a", "one", authorizer("by-two")), shoot("garden-b", "elsewhere", plugin("unused")),
	).Build()
	full, empty, other := map[string][]byte{"kubeconfig": []byte("a")}, map[string][]byte{"kubeconfig": nil}, map[string][]byte{"other": []byte("a")}
	for name, tc := range map[string]struct {
		secret   string
		old, new map[string][]byte
		shoots   string // names of those that keep the kubeconfig
	}{
		"plugin: removed":                 {"by-plugin", full, other, "plugin"},
		"plugin: emptied":                 {"by-plugin", full, empty, "plugin"},
		"plugin: kept":                    {"by-plugin", full, full, ""},
		"plugin: never had one":           {"by-plugin", other, other, "plugin"},
		"plugin: added":                   {"by-plugin", empty, full, ""},
		"authorizer: removed":             {"by-authorizer", full, nil, "authorizer"},
		"authorizer: emptied":             {"by-authorizer", full, empty, "authorizer"},
		"authorizer: kept":                {"by-authorizer", full, full, ""},
		"two Shoots":                      {"by-two", full, empty, "one, two"},
		"no Shoot: removed":               {"unused", full, other, ""},
		"Shoot in another namespace only": {"unused", full, empty, ""},
	} {
		t.Run(name, func(t *testing.T) {
			secret := func(data map[string][]byte) *corev1.Secret {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: tc.secret}, Data: data}
			}
			response := (&Handler{Cache: garden, Decoder: webhooktest.Decoder(t)}).Handle(t.Context(), webhooktest.Update(t, "secrets", secret(tc.new), secret(tc.old)))
			if tc.shoots == "" {
				webhooktest.Expect(t, response, webhooktest.Allowed)
			} else {
				webhooktest.Expect(t, response, http.StatusForbidden, tc.secret, "use it: "+tc.shoots)
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "by-plugin"}}
		h := &Handler{Cache: webhooktest.Unreachable(t), Decoder: webhooktest.Decoder(t)}
		webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Create(t, "secrets", secret)), webhooktest.Allowed)
		webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Update(t, "secrets", nil, secret)), http.StatusBadRequest)
		webhooktest.Expect(t, h.Handle(t.Context(), webhooktest.Update(t, "secrets", secret, secret)), http.StatusInternalServerError, "unreachable")
	})
}
