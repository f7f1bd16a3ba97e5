package kube

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"gardener.cloud/gardener/internal/validation/destination"
)

// What a kubeconfig must not have, internal/validation/kubeconfig tests.
func TestConfigOfUser(t *testing.T) {
	kubeconfig := func(user, cluster string) string {
		return `{kind: Config, apiVersion: v1, current-context: a, contexts: [{name: a, context: {user: a, cluster: a}}], users: [{name: a, user: ` + user +
			`}], clusters: [{name: a, cluster: ` + cluster + `}]}`
	}
	for name, tc := range map[string]struct{ content, want string }{
		"a token":            {kubeconfig("{token: t}", "{server: https://a.example}"), ""},
		"a command":          {kubeconfig("{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}", "{server: https://a.example}"), "users[0].user.exec"},
		"a plugin":           {kubeconfig("{auth-provider: {name: x}}", "{server: https://a.example}"), "users[0].user.auth-provider"},
		"a token file":       {kubeconfig("{tokenFile: /t}", "{server: https://a.example}"), "users[0].user.tokenFile"},
		"a CA file":          {kubeconfig("{token: t}", "{server: https://a.example, certificate-authority: /t}"), "clusters[0].cluster.certificate-authority"},
		"this pod":           {kubeconfig("{token: t}", "{server: https://127.0.0.1}"), "clusters[0].cluster.server"},
		"a metadata service": {kubeconfig("{token: t}", "{server: https://169.254.169.254}"), "clusters[0].cluster.server"},
		"nothing":            {"", "current-context"},
		"not a kubeconfig":   {"~secret~: [", "must be a YAML or JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ConfigOfUser([]byte(tc.content), destination.Host)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// A server cannot send the process to another one, and its name cannot resolve to an address in the pod.
func TestHTTPClientOfUser(t *testing.T) {
	server := httptest.NewTLSServer(http.RedirectHandler("https://attacker.example", http.StatusFound))
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	get := func(blocked func(string) string) (status int, err error) {
		c, err := HTTPClientOfUser(config, blocked)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Get(server.URL) //nolint:noctx // of a test
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if status, err := get(func(string) string { return "" }); err != nil || status != http.StatusFound {
		t.Errorf("it has followed a redirect: %d, %v", status, err)
	}
	if status, err := get(destination.Host); err == nil || !strings.Contains(err.Error(), "must not be an address of the control plane itself") {
		t.Errorf("it has connected to this pod: %d, %v", status, err)
	}
}
