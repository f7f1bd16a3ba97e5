package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

const whole = `apiVersion: v1
kind: Config
preferences: {}
extensions: [{name: x, extension: {a: b}}]
clusters:
- {name: a, cluster: {server: "https://a.example/authorize", tls-server-name: b.example, insecure-skip-tls-verify: true, disable-compression: true}}
- {name: other, cluster: {server: "https://[2001:db8::1]:8443", extensions: [{name: x, extension: {}}]}}
users:
- {name: a, user: {token: secret-token}}
- {name: "*.example.com", user: {username: me, password: secret-password}}
contexts:
- {name: a, context: {cluster: a, user: a, namespace: default, extensions: []}}
- {name: other, context: {cluster: other, user: "*.example.com"}}
current-context: a
`

func TestWhatIsHandedOn(t *testing.T) {
	const server = `apiVersion: v1
clusters:
- cluster:
    disable-compression: true
    insecure-skip-tls-verify: true
    server: https://a.example/authorize
    tls-server-name: b.example
  name: a
contexts:
- context:
    cluster: a
    user: a
  name: a
current-context: a
kind: Config
users:
- name: a
  user:
    token: secret-token
`
	const nameless = `apiVersion: v1
clusters: null
contexts: null
current-context: ""
kind: Config
users:
- name: '*'
  user:
    token: x
`
	for name, tc := range map[string]struct {
		read        func([]byte, *field.Path) ([]byte, field.ErrorList)
		given, want string
	}{
		"a client has the current context": {Client, whole, server},
		"clients of many servers have all users": {
			Credentials, whole, server + "- name: '*.example.com'\n  user:\n    password: secret-password\n    username: me\n",
		},
		"clients of many servers need no context": {Credentials, `{"users": [{"name": "*", "user": {"token": "x"}}]}`, nameless},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := tc.read([]byte(tc.given), nil)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("handed on (-want +got):\n%s", diff)
			}
		})
	}
}

// with has a field more in its first cluster, user or context, or at the top.
func with(kind, text string) string {
	clusters, users, contexts, top := "", "", "", ""
	switch kind {
	case "cluster":
		clusters = ", " + text
	case "user":
		users = text
	case "context":
		contexts = ", " + text
	default:
		top = text
	}
	server := `server: "https://a.example"`
	if strings.Contains(clusters, "server:") {
		server, clusters = strings.TrimPrefix(clusters, ", "), ""
	}
	return fmt.Sprintf("clusters: [{name: a, cluster: {%s%s}}]\nusers: [{name: a, user: {%s}}]\n"+
		"contexts: [{name: a, context: {cluster: a, user: a%s}}]\ncurrent-context: a\n%s\n", server, clusters, users, contexts, top)
}

func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	c, k, err := cert.GenerateSelfSignedCertKey("a.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(c), base64.StdEncoding.EncodeToString(k)
}

func TestClient(t *testing.T) {
	certificate, key := pair(t)
	_, otherKey := pair(t)
	const users, clusters = "kubeconfig.users[0].user.", "kubeconfig.clusters[0].cluster."
	for name, tc := range map[string]struct {
		kind, text string
		want       []string // fields of the errors; none: it is fine
	}{
		"anonymous":                {},
		"token":                    {kind: "user", text: "token: x"},
		"password":                 {kind: "user", text: "username: x, password: p"},
		"certificate":              {kind: "user", text: "client-certificate-data: " + certificate + ", client-key-data: " + key},
		"CA":                       {kind: "cluster", text: "certificate-authority-data: " + certificate},
		"extension":                {kind: "user", text: "extensions: [{name: a, extension: {exec: {command: x}}}]"},
		"empty fields":             {kind: "user", text: `tokenFile: "", exec: null`},
		"exec":                     {"user", "exec: {command: /usr/local/bin/kube-apiserver, apiVersion: client.authentication.k8s.io/v1}", []string{users + "exec"}},
		"exec of nothing":          {"user", "exec: {}", []string{users + "exec"}},
		"auth provider":            {"user", "auth-provider: {name: oidc}", []string{users + "auth-provider"}},
		"token file":               {"user", "tokenFile: /srv/x", []string{users + "tokenFile"}},
		"token and token file":     {"user", "token: x, tokenFile: /srv/x", []string{users + "tokenFile"}},
		"certificate file":         {"user", "client-certificate: /srv/x", []string{users + "client-certificate"}},
		"key file":                 {"user", "client-key: /srv/x", []string{users + "client-key"}},
		"all files":                {"user", "tokenFile: a, client-certificate: b, client-key: c", []string{users + "client-certificate", users + "client-key", users + "tokenFile"}},
		"impersonation":            {"user", "as: root", []string{users + "as"}},
		"impersonation of a UID":   {"user", "as-uid: '1'", []string{users + "as-uid"}},
		"impersonation of groups":  {"user", "as-groups: [system:masters]", []string{users + "as-groups"}},
		"impersonation with extra": {"user", "as-user-extra: {a: [b]}", []string{users + "as-user-extra"}},
		"CA file":                  {"cluster", "certificate-authority: /srv/x", []string{clusters + "certificate-authority"}},
		"proxy":                    {"cluster", "proxy-url: 'socks5://proxy.example'", []string{clusters + "proxy-url"}},
		"no server":                {"cluster", "server: ''", []string{clusters + "server"}},
		"HTTP":                     {"cluster", "server: 'http://a.example'", []string{clusters + "server"}},
		"file":                     {"cluster", "server: 'file:///srv/x'", []string{clusters + "server"}},
		"unix socket":              {"cluster", "server: 'unix:///run/x.sock'", []string{clusters + "server"}},
		"no scheme":                {"cluster", "server: 'a.example:443'", []string{clusters + "server"}},
		"no host":                  {"cluster", "server: 'https:///x'", []string{clusters + "server"}},
		"only a port":              {"cluster", "server: 'https://:443'", []string{clusters + "server"}},
		"opaque":                   {"cluster", "server: 'https:a.example'", []string{clusters + "server"}},
		"password in the URL":      {"cluster", "server: 'https://me:password@a.example'", []string{clusters + "server"}},
		"query":                    {"cluster", "server: 'https://a.example?'", []string{clusters + "server"}},
		"no URL":                   {"cluster", `server: "https://a.example/%zz"`, []string{clusters + "server"}},
		"CA that is none":          {"cluster", "certificate-authority-data: eA==", []string{clusters + "certificate-authority-data"}},
		"CA, but not verified": {
			"cluster", "certificate-authority-data: " + certificate + ", insecure-skip-tls-verify: true", []string{clusters + "certificate-authority-data"},
		},
		"token and password":      {"user", "token: x, password: p", []string{users + "token"}},
		"certificate without key": {"user", "client-certificate-data: " + certificate, []string{users + "client-key-data"}},
		"key without certificate": {"user", "client-key-data: " + key, []string{users + "client-certificate-data"}},
		"another key":             {"user", "client-certificate-data: " + certificate + ", client-key-data: " + otherKey, []string{users + "client-certificate-data"}},
		"unknown field":           {"user", "command: x", []string{"kubeconfig"}},
		"other case":              {"user", "EXEC: {command: x}", []string{"kubeconfig"}},
		"key twice":               {"user", "token: x, token: y", []string{"kubeconfig"}},
		"no base64":               {"user", "client-key-data: '***'", []string{"kubeconfig"}},
		"no YAML":                 {"top", "secret-token: [", []string{"kubeconfig"}},
		"of another kind":         {"top", "kind: Secret", []string{"kubeconfig.kind"}},
		"of another version":      {"top", "apiVersion: v2", []string{"kubeconfig.apiVersion"}},
		"unknown cluster":         {"context", "cluster: b", []string{"kubeconfig"}}, // twice in one object
	} {
		t.Run(name, func(t *testing.T) {
			data, errs := Client([]byte(with(tc.kind, tc.text)), field.NewPath("kubeconfig"))
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Fatalf("errors (-want +got):\n%s\n%v", diff, errs.ToAggregate())
			}
			if tc.want == nil {
				usable(t, data)
			}
		})
	}
}

func TestContexts(t *testing.T) {
	const rest = "clusters: [{name: a, cluster: {server: 'https://a.example'}}]\nusers: [{name: a, user: {}}]\n"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"none":            {rest, []string{"current-context"}},
		"unknown":         {rest + "current-context: a", []string{"current-context"}},
		"unknown cluster": {rest + "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: a}}]", []string{"contexts[0].context.cluster"}},
		"unknown user":    {rest + "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: b}}]", []string{"contexts[0].context.user"}},
		"twice": {
			rest + "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}, {name: a, context: {}}]", []string{"contexts[1].name"},
		},
		"others are checked, too": {
			"users: [{name: b, user: {exec: {command: x}}}]\nclusters: [{name: a, cluster: {server: 'http://x'}}, {name: a, cluster: {server: 'https://x.example'}}]",
			[]string{"clusters[0].cluster.server", "clusters[1].name", "users[0].user.exec"},
		},
		"empty": {"", []string{"current-context"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := Client([]byte(tc.text), nil)
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	if _, errs := Credentials([]byte(rest+"current-context: a"), nil); !cmp.Equal(fields(errs), []string{"current-context"}) {
		t.Errorf("credentials for an unknown context: %v", errs)
	}
}

func TestErrorsQuoteNoValues(t *testing.T) {
	for _, text := range []string{
		with("user", "token: [hunter2]"), with("user", "token: hunter2, username: hunter2"), with("user", "exec: {command: hunter2}"),
		with("user", "client-key-data: hunter2"), with("user", "client-key-data: 2"), with("user", "token: 2hunter2: [}"),
		with("cluster", "server: 'https://me:hunter2@a.example'"), with("cluster", "server: 'https://a.example/%hunter2'"), with("top", "kind: hunter2"),
		"- hunter2", "hunter2", `"hunter2`, "a: *hunter2",
	} {
		_, errs := Client([]byte(text), nil)
		if len(errs) == 0 {
			t.Errorf("no error for %s", text)
		}
		if strings.Contains(fmt.Sprint(errs, errs.ToAggregate()), "hunter2") {
			t.Errorf("a secret is in %v", errs)
		}
	}
}

func TestLimits(t *testing.T) {
	const rest = "users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
	clusters := func(n int) string {
		var b strings.Builder
		b.WriteString(rest + "clusters: [{name: a, cluster: {server: 'https://a.example'}}")
		for i := range n - 1 {
			fmt.Fprintf(&b, ", {name: a%d, cluster: {server: 'https://a.example'}}", i)
		}
		return b.String() + "]\n"
	}
	padded := func(size int) string { return clusters(1) + "#" + strings.Repeat("x", size-len(clusters(1))-1) }
	for name, tc := range map[string]struct{ text, want string }{
		"as large as allowed":     {padded(maxSize), ""},
		"too large":               {padded(maxSize + 1), "kubeconfig: Too long: may not be more than 262144 bytes"},
		"too large, and no YAML":  {strings.Repeat("[", maxSize+1), "kubeconfig: Too long: may not be more than 262144 bytes"},
		"an alias":                {clusters(1) + "extensions: [{name: &a x, extension: *a}]", "kubeconfig: Invalid value: must not have YAML anchors or aliases"},
		"an anchor":               {"&a {" + "clusters: []}", "kubeconfig: Invalid value: must not have YAML anchors or aliases"},
		"a key with an anchor":    {clusters(1) + "&a kind: Config", "kubeconfig: Invalid value: must not have YAML anchors or aliases"},
		"as many as allowed":      {clusters(maxEntries), ""},
		"too many clusters":       {clusters(maxEntries + 1), "kubeconfig.clusters: Too many: 101: must have at most 100 items"},
		"too many, none is valid": {"users: [{}" + strings.Repeat(",{}", maxEntries) + "]", "kubeconfig.users: Too many: 101: must have at most 100 items"},
		"too many contexts":       {"contexts: [{}" + strings.Repeat(",{}", maxEntries) + "]", "kubeconfig.contexts: Too many: 101: must have at most 100 items"},
		"a long unknown field": {
			clusters(1) + strings.Repeat("ä", 1000) + ": x", `kubeconfig: Forbidden: unknown field "` + strings.Repeat("ä", (maxUnknown-len(`unknown field "`))/2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := field.NewPath("kubeconfig")
			_, errs := Client([]byte(tc.text), path)
			for _, errs := range []field.ErrorList{errs, Validate([]byte(tc.text), path), SelfContained([]byte(tc.text), path)} {
				if got := fmt.Sprint(errs.ToAggregate()); got != tc.want && (tc.want != "" || len(errs) > 0) {
					t.Errorf("error is %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func TestSummary(t *testing.T) {
	const text = "users: [{user: {as: a}}, {user: {as: a}}, {user: {as: a}}, {user: {as: a}}, {user: {as: a}}, {user: {as: a}}, {user: {as: a}}]"
	errs := SelfContained([]byte(text), nil)
	got := Summary(errs).Error()
	if strings.Count(got, "users[") != summarized || !strings.Contains(got, "users[4].user.as") || !strings.Contains(got, "and 2 more errors") {
		t.Errorf("summary of %d errors is %s", len(errs), got)
	}
	if got := Summary(errs[:summarized]).Error(); strings.Contains(got, "more") {
		t.Errorf("summary of %d errors is %s", summarized, got)
	}
	if err := Summary(nil); err != nil {
		t.Errorf("summary of none is %v", err)
	}
}

func fields(errs field.ErrorList) []string {
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	return fields
}

// usable fails unless clients take the kubeconfig.
func usable(t *testing.T, data []byte) {
	t.Helper()
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, data)
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil {
		t.Errorf("%v in:\n%s", err, data)
	}
}

// inline fails if a kubeconfig has more than addresses and data.
func inline(t *testing.T, data []byte) {
	t.Helper()
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, data)
	}
	want := clientcmdapi.NewConfig()
	want.CurrentContext = config.CurrentContext
	for name, c := range config.Clusters {
		if !strings.HasPrefix(strings.ToLower(c.Server), "https://") {
			t.Errorf("server is %q", c.Server)
		}
		want.Clusters[name] = &clientcmdapi.Cluster{
			Server: c.Server, TLSServerName: c.TLSServerName, InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
			CertificateAuthorityData: c.CertificateAuthorityData, DisableCompression: c.DisableCompression,
			Extensions: c.Extensions,
		}
		if len(c.Extensions) > 0 {
			t.Error("cluster with extensions")
		}
	}
	for name, u := range config.AuthInfos {
		want.AuthInfos[name] = &clientcmdapi.AuthInfo{
			ClientCertificateData: u.ClientCertificateData, ClientKeyData: u.ClientKeyData, Token: u.Token, Username: u.Username, Password: u.Password,
			Extensions: u.Extensions,
		}
		if len(u.Extensions) > 0 {
			t.Error("user with extensions")
		}
	}
	for name, c := range config.Contexts {
		want.Contexts[name] = &clientcmdapi.Context{Cluster: c.Cluster, AuthInfo: c.AuthInfo, Extensions: c.Extensions}
	}
	want.Extensions, want.Preferences = config.Extensions, config.Preferences
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("more than addresses and data (-allowed +got):\n%s", diff)
	}
}

// FuzzKubeconfig reads arbitrary text: what is handed on has only what is allowed, and a client takes it.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(with("user", "exec: {command: sh}, extensions: [{name: a}]")))
	f.Add([]byte(`{"clusters":[null],"users":[{"user":{"tokenFile":"a"}}],"contexts":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if config, errs := Client(data, nil); len(errs) == 0 {
			inline(t, config)
			usable(t, config)
		}
		if config, errs := Credentials(data, nil); len(errs) == 0 {
			inline(t, config)
		}
		Validate(data, nil)
	})
}
