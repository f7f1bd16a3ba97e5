//go:build e2e

package e2e

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// hint is what gardenctl says of the address of a computer without a public one.
var hint = regexp.MustCompile(`--cidr=[0-9.]+/32`)

// testSSH logs in to a node as a user does, through a bastion of which nothing is left. From another address, it cannot be reached.
func testSSH(t *testing.T, l *landscape, key client.ObjectKey, c cluster) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("the package openssh-client is not installed")
	}
	nodes := &corev1.NodeList{}
	if err := c.client.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	// This computer does not resolve the names of shoots, so the Node cannot be looked up by its name.
	node, address := nodes.Items[0].Name, ""
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
		}
	}
	run := func(args ...string) (string, error) {
		return l.gardenctl(working(t), key.Namespace, append([]string{"ssh", address, "--shoot", key.Name}, args...)...)
	}
	_, err := run("--", "hostname")
	if err == nil || !hint.MatchString(err.Error()) {
		t.Fatalf("it does not say how to connect from a private network: %v", err)
	}
	out, err := run(hint.FindString(err.Error()), "--", "hostname")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Split(out, "\n"), node) {
		t.Errorf("the node says %q, want %q", out, node)
	}
	if out, err := run("--cidr=203.0.113.7/32", "--", "hostname"); err == nil {
		t.Errorf("a bastion for another address is reached: %s", out)
	}
	shoot := &corev1beta1.Shoot{}
	if err := l.garden.client.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	await(t, l.client, env.None[*corev1.Pod], client.InNamespace(localv1alpha1.InfrastructureNamespace(shoot.Status.TechnicalID)),
		client.MatchingLabels(localv1alpha1.BastionLabels()))
}
