package attack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/errorcode"
)

// marker is in all that must not get to a kube-apiserver.
const marker = "attacker"

const authorization = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: theirs
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: NoOpinion}
`

// controlPlane is what a kube-apiserver is rendered from, in which tenants have a say by Config and Files.
func controlPlane(plugins ...corev1beta1.AdmissionPlugin) kubeapiserver.Values {
	return kubeapiserver.Values{
		Namespace: "shoot--a--b", Image: "registry.example/kube-apiserver:v1.36.3", Version: "1.36.3", Replicas: 1,
		ServiceNetworks: []string{"100.64.0.0/13"}, Issuer: "https://api.example",
		NodeAgents: &kubeapiserver.NodeAgents{Kubeconfig: []byte("of the resource manager")},
		Config:     &corev1beta1.KubeAPIServerConfig{AdmissionPlugins: plugins},
	}
}

// plugin is an admission plugin with a configuration in YAML.
func plugin(name, config string) corev1beta1.AdmissionPlugin {
	p := corev1beta1.AdmissionPlugin{Name: name}
	if config != "" {
		p.Config = &runtime.RawExtension{Raw: []byte(config)}
	}
	return p
}

// files are what a kube-apiserver is rendered to, with Secrets in plain text. An error must say that its owner has to act.
func files(t *testing.T, v kubeapiserver.Values) (text string, refused bool) {
	t.Helper()
	objects, err := kubeapiserver.Objects(v)
	if err != nil {
		if codes := errorcode.Of(err); !slices.Equal(codes, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
			t.Errorf("error %v has codes %v", err, codes)
		}
		return "", true
	}
	return plain(t, objects), false
}

func plain(t *testing.T, objects []client.Object) string {
	t.Helper()
	var text strings.Builder
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			for name, data := range secret.Data {
				fmt.Fprintf(&text, "%s: %s\n", name, data)
			}
		}
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}

// kubeconfig has something more in its cluster, and in its user.
func kubeconfig(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://webhook.example"%s}}]
users: [{name: a, user: {%s}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`, cluster, user)
}

// A kubeconfig that a tenant hands in is read by a kube-apiserver on a seed. It must not run programs there, nor read its files, nor send
// requests elsewhere than to its server.
func TestKubeconfigReachesIntoTheSeed(t *testing.T) {
	attacks := map[string]string{
		"runs a program": kubeconfig("", "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /usr/local/bin/kubernetes, args: [attacker]}"),
		"runs a program with a token beside it": kubeconfig("",
			"token: x, exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: attacker}"),
		"uses an auth provider":      kubeconfig("", "auth-provider: {name: attacker, config: {a: b}}"),
		"sends a file as token":      kubeconfig("", "tokenFile: /srv/kubernetes/attacker"),
		"reads a certificate":        kubeconfig("", "client-certificate: /srv/attacker, client-key: /srv/attacker"),
		"reads certificates":         kubeconfig(", certificate-authority: /srv/attacker", ""),
		"goes through a proxy":       kubeconfig(", proxy-url: 'socks5://attacker.example'", ""),
		"impersonates":               kubeconfig("", "as: attacker, as-groups: [system:masters]"),
		"runs a program elsewhere":   strings.Replace(kubeconfig("", ""), "users: [", "users: [{name: '*', user: {exec: {command: attacker}}}, ", 1),
		"hides it in an extension":   kubeconfig("", "extensions: [{name: attacker, extension: {exec: {command: attacker}}}]"),
		"hides it in a twin":         kubeconfig("", "token: x}}, {name: a, user: {exec: {command: attacker}"),
		"hides it in another case":   kubeconfig("", "Exec: {command: attacker}"),
		"hides it behind an anchor":  kubeconfig("", "extensions: [{name: x, extension: &x {command: attacker}}], exec: *x"),
		"hides it in a second text":  kubeconfig("", "") + "---\n" + kubeconfig("", "exec: {command: attacker}"),
		"talks to a file":            strings.Replace(kubeconfig("", ""), "https://webhook.example", "file:///attacker", 1),
		"talks to a socket":          strings.Replace(kubeconfig("", ""), "https://webhook.example", "unix:///run/attacker.sock", 1),
		"talks without TLS":          strings.Replace(kubeconfig("", ""), "https://webhook.example", "http://attacker", 1),
		"names a user for the seed":  strings.Replace(kubeconfig("", ""), "https://webhook.example", "https://attacker:x@webhook.example", 1),
		"is no kubeconfig":           "attacker",
		"is one of something else's": strings.Replace(kubeconfig("", "token: attacker"), "kind: Config", "kind: Attacker", 1),
	}
	t.Run("cluster with machines", func(t *testing.T) { testKubeconfigOfMachines(t, attacks) })
	for use, values := range map[string]func(data []byte) kubeapiserver.Values{
		"ValidatingAdmissionWebhook": ofPlugin("ValidatingAdmissionWebhook"), "MutatingAdmissionWebhook": ofPlugin("MutatingAdmissionWebhook"),
		"ImagePolicyWebhook": ofPlugin("ImagePolicyWebhook"),
		"authorizer": func(data []byte) kubeapiserver.Values {
			v := controlPlane()
			v.Files = kubeapiserver.Files{Authorization: authorization, AuthorizationKubeconfigs: map[string][]byte{"theirs": data}}
			return v
		},
	} {
		t.Run(use, func(t *testing.T) {
			for name, data := range attacks {
				t.Run(name, func(t *testing.T) {
					if text, _ := files(t, values([]byte(data))); strings.Contains(text, marker) {
						t.Errorf("it is in what the kube-apiserver reads:\n%s", text)
					}
				})
			}
			t.Run("a good one arrives", func(t *testing.T) {
				if text, refused := files(t, values([]byte(kubeconfig("", "token: of-the-webhook")))); refused || !strings.Contains(text, "of-the-webhook") {
					t.Errorf("refused %v, files:\n%s", refused, text)
				}
			})
		})
	}
}

// That of a cluster with the machines of a shoot is read by the process of an extension, and by the driver of the machines.
func testKubeconfigOfMachines(t *testing.T, attacks map[string]string) {
	for name, data := range attacks {
		config, err := kube.ConfigOfUser([]byte(data), destination.Host)
		if err != nil {
			if strings.Contains(err.Error(), marker) {
				t.Errorf("%s: it is in the error %v", name, err)
			}
			continue
		}
		config.WrapTransport = nil // it refuses redirects
		want := &rest.Config{Host: "https://webhook.example"}
		if diff := cmp.Diff(want, config, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(rest.Config{})); diff != "" {
			t.Errorf("%s: more than a server (-want +got):\n%s", name, diff)
		}
	}
	if config, err := kube.ConfigOfUser([]byte(kubeconfig("", "token: of-the-webhook")), destination.Host); err != nil || config.BearerToken != "of-the-webhook" {
		t.Errorf("a good one is refused: %v", err)
	}
}

func ofPlugin(name string) func([]byte) kubeapiserver.Values {
	return func(data []byte) kubeapiserver.Values {
		v := controlPlane(plugin(name, ""))
		v.Files.AdmissionKubeconfigs = map[string][]byte{name: data}
		return v
	}
}
