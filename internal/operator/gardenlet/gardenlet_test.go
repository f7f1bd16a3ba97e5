package gardenlet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/test/builder"
)

func TestDecide(t *testing.T) {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	annotate := func(operation string) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Annotations = map[string]string{"gardener.cloud/operation": operation}
		}
	}
	reference := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
	}
	status := func(status corev1beta1.ConditionStatus) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Status.Conditions = []corev1beta1.Condition{{Type: "SeedRegistered", Status: status}}
		}
	}
	created := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Annotations = map[string]string{"seedmanagement.gardener.cloud/created-by-gardenlet": "true"}
	}
	for name, tc := range map[string]struct {
		change []func(*seedmanagementv1alpha1.Gardenlet)
		seed   *corev1beta1.Seed
		want   verdict
	}{
		"no Seed":                                  {want: verdict{Deploy: true, Again: 30 * time.Minute}},
		"no Seed yet, deployed before":             {change: changes(status("Progressing")), want: verdict{Deploy: true, Again: 30 * time.Minute}},
		"the Seed that was waited for":             {change: changes(status("Progressing")), seed: seed, want: verdict{Finish: true}},
		"the Seed of a foreign cluster appears":    {change: changes(reference, status("Progressing")), seed: seed, want: verdict{Finish: true}},
		"a Seed, and the gardenlet updates itself": {change: changes(status("True")), seed: seed},
		"a Seed that another one deployed":         {seed: seed},
		"a Seed, deployed again by force":          {change: changes(annotate("force-redeploy"), status("True")), seed: seed, want: verdict{Deploy: true, Finish: true}},
		"a Seed, a new kubeconfig":                 {change: changes(reference, status("True")), seed: seed, want: verdict{Deploy: true, Finish: true}},
		"a Seed, an operation for the gardenlet":   {change: changes(annotate("renew-kubeconfig"), status("True")), seed: seed},
		"a self-hosted shoot": {change: changes(func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Name = "self-hosted-shoot-a"
		})},
		"created by the gardenlet itself": {change: changes(created), want: verdict{Refuse: true}},
		"its own, to be deployed by force": {change: changes(created, func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Annotations["gardener.cloud/operation"] = "force-redeploy"
		}, status("True")), seed: seed, want: verdict{Refuse: true}},
		"its own, with a Seed": {change: changes(created), seed: seed},
		"another namespace":    {change: changes(func(g *seedmanagementv1alpha1.Gardenlet) { g.Namespace = "garden-dev" })},
		"in deletion": {change: changes(func(g *seedmanagementv1alpha1.Gardenlet) {
			g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(builder.Gardenlet("a", tc.change...), tc.seed); got != tc.want {
				t.Errorf("decide() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func changes(c ...func(*seedmanagementv1alpha1.Gardenlet)) []func(*seedmanagementv1alpha1.Gardenlet) {
	return c
}

// The kubeconfig of a Gardenlet is used in the pod of the operator: it must neither run programs nor read files there.
func TestKubeconfigs(t *testing.T) {
	const begin = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	server := func(url string) string {
		return begin + "clusters: [{name: a, cluster: {server: '" + url + "'}}]\nusers: [{name: a, user: {token: secret}}]"
	}
	for name, tc := range map[string]struct{ kubeconfig, want string }{
		"a token":       {server("https://a.example"), ""},
		"empty":         {"", `no key "kubeconfig"`},
		"no kubeconfig": {"secret", "not of the shape"},
		"no context":    {"apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: secret}}]", "current-context"},
		"a program": {
			begin + "clusters: [{name: a, cluster: {server: https://a.example}}]\nusers: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: secret}}}]",
			"exec",
		},
		"a token file": {
			begin + "clusters: [{name: a, cluster: {server: https://a.example}}]\nusers: [{name: a, user: {tokenFile: /secret}}]", "tokenFile",
		},
		"a CA file": {
			begin + "clusters: [{name: a, cluster: {server: https://a.example, certificate-authority: /secret}}]\nusers: []", "certificate-authority",
		},
		"a proxy": {
			begin + "clusters: [{name: a, cluster: {server: https://a.example, proxy-url: http://secret}}]\nusers: [{name: a, user: {token: secret}}]", "proxy-url",
		},
		"the pod of the operator": {server("https://127.0.0.1:8443"), "the host must not be an address of"},
		"a metadata service":      {server("https://169.254.169.254"), "link-local"},
		"a Service":               {server("https://secret.garden.svc"), "Service"},
		"without TLS":             {server("http://a.example"), "scheme https"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Values{Blocked: destination.Host}.restConfig([]byte(tc.kubeconfig))
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v, want %q, and no content", err, tc.want)
			}
		})
	}
}
