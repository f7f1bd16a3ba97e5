package kubeconfigsecret

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/rejections"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

func TestHandle(t *testing.T) {
	user := func(fields string) map[string][]byte {
		return map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: http://a, proxy-url: http://p, insecure-skip-tls-verify: true}}]\n" +
			"users: [{name: good, user: {token: secret-token}}, {name: other, user: {" + fields + "}}]")}
	}
	const allowed = "token, client-certificate-data, client-key-data, username, password"
	for name, tc := range map[string]struct {
		data    map[string][]byte
		code    int
		message []string
	}{
		"no kubeconfig":            {map[string][]byte{"other": []byte("users: [{user: {exec: {}}}]")}, webhooktest.Allowed, nil},
		"empty":                    {map[string][]byte{"kubeconfig": nil}, webhooktest.Allowed, nil},
		"no YAML":                  {map[string][]byte{"kubeconfig": []byte("secret-a: [")}, http.StatusBadRequest, []string{"data.kubeconfig"}},
		"of another shape":         {map[string][]byte{"kubeconfig": []byte("users: secret-a")}, http.StatusBadRequest, []string{"data.kubeconfig"}},
		"token":                    {user("token: secret-a"), webhooktest.Allowed, nil},
		"password":                 {user("username: a, password: secret-a"), webhooktest.Allowed, nil},
		"certificate":              {user("client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0"), webhooktest.Allowed, nil},
		"file of the token":        {user("tokenFile: secret-a"), http.StatusUnprocessableEntity, []string{"data.kubeconfig.users[1].user.tokenFile", allowed}},
		"file of the certificate":  {user("client-certificate: secret-a"), http.StatusUnprocessableEntity, []string{"data.kubeconfig.users[1].user.client-certificate:", allowed}},
		"file of the key":          {user("client-key: secret-a"), http.StatusUnprocessableEntity, []string{"users[1].user.client-key:", allowed}},
		"program":                  {user("exec: {command: secret-a, apiVersion: client.authentication.k8s.io/v1}"), http.StatusUnprocessableEntity, []string{"users[1].user.exec", allowed}},
		"plugin":                   {user("auth-provider: {name: gcp, config: {cmd-path: secret-a}}"), http.StatusUnprocessableEntity, []string{"users[1].user.auth-provider", allowed}},
		"impersonation":            {user("as: secret-a"), http.StatusUnprocessableEntity, []string{"users[1].user.as:", allowed}},
		"impersonation of groups":  {user("as-groups: [secret-a]"), http.StatusUnprocessableEntity, []string{"users[1].user.as-groups"}},
		"impersonation by UID":     {user("as-uid: secret-a"), http.StatusUnprocessableEntity, []string{"users[1].user.as-uid"}},
		"impersonation with extra": {user("as-user-extra: {a: [secret-a]}"), http.StatusUnprocessableEntity, []string{"users[1].user.as-user-extra"}},
		"name of another version":  {user("act-as: secret-a"), http.StatusUnprocessableEntity, []string{"users[1].user.act-as"}},
		"program in another case":  {user("Exec: {command: secret-a}"), http.StatusUnprocessableEntity, []string{"Exec"}},
		"program twice":            {user("exec: null, exec: {command: secret-a}"), http.StatusBadRequest, nil},
		"too large":                {map[string][]byte{"kubeconfig": []byte("#" + strings.Repeat("x", 256<<10))}, http.StatusUnprocessableEntity, []string{"data.kubeconfig: Too long"}},
		"aliases":                  {user("token: &a secret-a, password: *a"), http.StatusBadRequest, []string{"data.kubeconfig", "aliases"}},
		"too many users":           {map[string][]byte{"kubeconfig": []byte("users: [{}" + strings.Repeat(", {}", 100) + "]")}, http.StatusUnprocessableEntity, []string{"data.kubeconfig.users: Too many"}},
		"many errors": {
			map[string][]byte{"kubeconfig": []byte("users: [{}" + strings.Repeat(", {user: {as: a}}", 99) + "]")},
			http.StatusUnprocessableEntity,
			[]string{"users[5].user.as", "and 94 more errors"},
		},
		"file of the CA": {
			map[string][]byte{"kubeconfig": []byte("clusters: [{name: a, cluster: {server: https://a, certificate-authority: secret-a}}]")},
			http.StatusUnprocessableEntity,
			[]string{"data.kubeconfig.clusters[0].cluster.certificate-authority"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			rejected, err := rejections.New(registry)
			if err != nil {
				t.Fatal(err)
			}
			h := &Handler{Decoder: webhooktest.Decoder(t), Rejected: rejected}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "b"}, Data: tc.data}
			for _, request := range []admission.Request{webhooktest.Create(t, "secrets", secret), webhooktest.Update(t, "secrets", secret, secret)} {
				response := h.Handle(t.Context(), request)
				webhooktest.Expect(t, response, tc.code, tc.message...)
				if strings.Contains(response.Result.Message, "secret-") || strings.Contains(response.Result.Message, "c2VjcmV0") {
					t.Errorf("the message has a value: %q", response.Result.Message)
				}
			}
			want := ""
			if tc.code != webhooktest.Allowed {
				const series = `gardener_admission_controller_rejected_resources_total{kind="Secret",namespace="garden-a",operation=`
				want = "# HELP gardener_admission_controller_rejected_resources_total Number of resources that webhooks have refused.\n" +
					"# TYPE gardener_admission_controller_rejected_resources_total counter\n" +
					series + `"create",reason="Rejected Kubeconfig"} 1` + "\n" + series + `"update",reason="Rejected Kubeconfig"} 1` + "\n"
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("not decodable", func(t *testing.T) {
		webhooktest.Expect(t, (&Handler{Decoder: webhooktest.Decoder(t)}).Handle(t.Context(), webhooktest.Create(t, "secrets", nil)), http.StatusBadRequest)
	})
}
