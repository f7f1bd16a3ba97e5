package kube

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gardener.cloud/gardener/pkg/destination"
)

func kubeconfigOf(user, cluster string) string {
	return `{kind: Config, apiVersion: v1, current-context: a, contexts: [{name: a, context: {user: a, cluster: a}}], users: [{name: a, user: ` + user +
		`}], clusters: [{name: a, cluster: ` + cluster + `}]}`
}

// What a kubeconfig must not have, internal/validation/kubeconfig tests.
func TestConfigOfUser(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"a token":            {kubeconfigOf("{token: t}", "{server: https://a.example}"), ""},
		"a command":          {kubeconfigOf("{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}", "{server: https://a.example}"), "users[0].user.exec"},
		"a plugin":           {kubeconfigOf("{auth-provider: {name: x}}", "{server: https://a.example}"), "users[0].user.auth-provider"},
		"a token file":       {kubeconfigOf("{tokenFile: /t}", "{server: https://a.example}"), "users[0].user.tokenFile"},
		"a CA file":          {kubeconfigOf("{token: t}", "{server: https://a.example, certificate-authority: /t}"), "clusters[0].cluster.certificate-authority"},
		"this pod":           {kubeconfigOf("{token: t}", "{server: https://127.0.0.1}"), "clusters[0].cluster.server"},
		"a metadata service": {kubeconfigOf("{token: t}", "{server: https://169.254.169.254}"), "clusters[0].cluster.server"},
		"nothing":            {"", "current-context"},
		"many errors":        {"users: [{}" + strings.Repeat(", {user: {as: a}}", 99) + "]", "and 193 more errors"},
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
	anywhere := func(string) string { return "" }
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	config, err := ConfigOfUser([]byte(kubeconfigOf("{token: t}", "{server: '"+server.URL+"', certificate-authority-data: "+ca+"}")), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		blocked func(string) string
		want    string
	}{
		{anywhere, "the server redirects to another one"},
		{destination.Host, "must not be an address of the control plane itself"},
	} {
		c, err := HTTPClientOfUser(config, tc.blocked)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Get(server.URL) //nolint:noctx // of a test
		if err == nil {
			t.Error(errors.Join(errors.New(response.Status), response.Body.Close()))
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error is %v, want %q", err, tc.want)
		}
	}
}

// A proxy is the operator's, who may have it in a network that servers of users must not be in.
func TestProxyOfUser(t *testing.T) {
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", ".internal.example")
	blocked := destination.Public()
	for server, want := range map[string]string{"https://a.example": "CONNECT a.example:443", "https://10.0.0.1": ""} {
		config, err := ConfigOfUser([]byte(kubeconfigOf("{token: t}", "{server: '"+server+"'}")), blocked)
		if want == "" {
			if err == nil {
				t.Errorf("%s may be requested from the proxy", server)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := HTTPClientOfUser(config, blocked)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Get(server) //nolint:noctx // of a test
		if err == nil {
			t.Fatal(errors.Join(errors.New(response.Status), response.Body.Close()))
		}
		select {
		case got := <-asked:
			if got != want {
				t.Errorf("the proxy was asked for %q, want %q", got, want)
			}
		default:
			t.Errorf("the proxy was not asked: %v", err)
		}
	}
	if proxy, err := proxyFor("https://b.internal.example"); proxy != nil || err != nil {
		t.Errorf("a server without a proxy has %v: %v", proxy, err)
	}
}

// A server cannot choose HTTP/2, nor compress what it sends, and its connections can be closed.
func TestProtocolOfUser(t *testing.T) {
	closed := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Header.Get("Accept-Encoding"))
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	server.StartTLS()
	defer server.Close()
	anywhere := func(string) string { return "" }
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	config, err := ConfigOfUser([]byte(kubeconfigOf("{token: t}", "{server: '"+server.URL+"', certificate-authority-data: "+ca+"}")), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	c, err := HTTPClientOfUser(config, anywhere)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Get(server.URL) //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || string(body) != "HTTP/1.1 " {
		t.Errorf("the request was %q, %v", body, err)
	}
	c.CloseIdleConnections()
	select {
	case <-closed:
	case <-t.Context().Done():
	case <-time.After(30 * time.Second):
		t.Error("the connection stays open")
	}
}
