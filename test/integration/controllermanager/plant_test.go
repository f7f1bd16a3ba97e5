package controllermanager

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

const protection = "gardener.cloud/reference-protection"

func testPlant(t *testing.T, g *garden) {
	step := env.Story(t)
	config := g.AddCluster(t)
	foreign, err := client.NewWithWatch(config, client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}

	step("a Plant whose Secret does not exist yet")
	g.create(t, namespace("garden-plant", nil))
	plant := &corev1beta1.Plant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-plant", Name: "foreign"}, Spec: corev1beta1.PlantSpec{SecretRef: corev1.LocalObjectReference{Name: "kubeconfig"}},
	}
	g.create(t, plant)
	awaitHealth(t, g, plant, "Unknown KubeconfigUnusable", "Unknown KubeconfigUnusable")

	step("is checked as soon as there is a kubeconfig")
	credentials := secret("garden-plant", "kubeconfig")
	credentials.Data = map[string][]byte{"kubeconfig": env.Kubeconfig(t, config)}
	g.create(t, credentials)
	healthy := "True HealthzRequestSucceeded"
	p := awaitHealth(t, g, plant, healthy, "True EveryNodeReady")
	if p.Status.ClusterInfo == nil || !strings.HasPrefix(p.Status.ClusterInfo.Kubernetes.Version, "v1.") || p.Status.ObservedGeneration == nil || *p.Status.ObservedGeneration != p.Generation {
		t.Errorf("status is %v", p.Status)
	}

	step("a node that is not ready is reported, and where it runs")
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"topology.kubernetes.io/region": "eu-west-1"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-1"},
	}
	if err := foreign.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	p = awaitHealth(t, g, plant, healthy, "False NodesUnhealthy")
	if diff := cmp.Diff(corev1beta1.CloudInfo{Type: "aws", Region: "eu-west-1"}, p.Status.ClusterInfo.Cloud); diff != "" {
		t.Errorf("the infrastructure (-want +got):\n%s", diff)
	}
	awaitEvent(t, g, "foreign", "NodesUnhealthy")

	step("until it is")
	env.EditStatus(t, foreign, n, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	awaitHealth(t, g, plant, healthy, "True EveryNodeReady")

	step("credentials that are not valid do not look like a healthy cluster")
	setKubeconfig(t, g, credentials, env.Kubeconfig(t, env.WithToken(config, "none")))
	awaitHealth(t, g, plant, "False HealthzRequestFailed", "Unknown APIServerDown")

	step("a kubeconfig that runs a program, or leads to a metadata service, is not used")
	valid := string(env.Kubeconfig(t, config))
	setKubeconfig(t, g, credentials, []byte(strings.Replace(valid, "client-certificate-data:", "exec: {command: touch, args: [/tmp/plant], apiVersion: client.authentication.k8s.io/v1}\n    client-certificate-data:", 1)))
	awaitMessage(t, g, plant, "Unknown", "users[0].user.exec")
	setKubeconfig(t, g, credentials, []byte(strings.Replace(valid, config.Host, "https://169.254.169.254", 1)))
	awaitMessage(t, g, plant, "Unknown", "clusters[0].cluster.server")

	step("nor is a redirect followed")
	asked := &atomic.Int64{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, config.Host+r.URL.Path, http.StatusFound)
	}))
	defer server.Close()
	setKubeconfig(t, g, credentials, insecure(t, server.URL))
	awaitMessage(t, g, plant, "False", kube.ErrRedirected.Error())
	if asked.Load() == 0 {
		t.Error("the server was not asked")
	}

	step("one with a valid kubeconfig recovers, with what was known before")
	setKubeconfig(t, g, credentials, []byte(valid))
	p = awaitHealth(t, g, plant, healthy, "True EveryNodeReady")
	if p.Status.ClusterInfo.Cloud.Type != "aws" {
		t.Errorf("the infrastructure is %v", p.Status.ClusterInfo.Cloud)
	}

	step("the Secret stays as long as the Plant")
	env.Await(t, g.client, credentials, hasFinalizer[*corev1.Secret](protection, true))
	g.delete(t, credentials)
	g.settle(t)
	awaitHealth(t, g, plant, healthy, "True EveryNodeReady")
	g.delete(t, plant)
	env.AwaitGone(t, g.client, plant)
	env.AwaitGone(t, g.client, credentials)
}

// insecure returns a kubeconfig without a CA.
func insecure(t *testing.T, server string) []byte {
	t.Helper()
	kubeconfig := string(env.Kubeconfig(t, &rest.Config{Host: server, BearerToken: "t"}))
	return []byte(strings.Replace(kubeconfig, "server: ", "insecure-skip-tls-verify: true\n    server: ", 1))
}

func setKubeconfig(t *testing.T, g *garden, s *corev1.Secret, kubeconfig []byte) {
	t.Helper()
	edit(t, g, s, func(s *corev1.Secret) { s.Data = map[string][]byte{"kubeconfig": kubeconfig} })
}

// awaitHealth waits until the conditions of a Plant have a status and a reason.
func awaitHealth(t *testing.T, g *garden, plant *corev1beta1.Plant, available, nodes string) *corev1beta1.Plant {
	t.Helper()
	return env.Await(t, g.client, plant, func(p *corev1beta1.Plant) error {
		for typ, want := range map[corev1beta1.ConditionType]string{"APIServerAvailable": available, "EveryNodeReady": nodes} {
			c := kube.Condition(p.Status.Conditions, typ)
			if c == nil || string(c.Status)+" "+c.Reason != want {
				return fmt.Errorf("condition %s is %v, want %s", typ, c, want)
			}
		}
		return nil
	})
}

// awaitMessage waits until the condition APIServerAvailable of a Plant has a status, and a text in its message.
func awaitMessage(t *testing.T, g *garden, plant *corev1beta1.Plant, status corev1beta1.ConditionStatus, text string) {
	t.Helper()
	env.Await(t, g.client, plant, func(p *corev1beta1.Plant) error {
		c := kube.Condition(p.Status.Conditions, "APIServerAvailable")
		if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition is %v, want %s with %q", c, status, text)
		}
		return nil
	})
}
