//go:build e2e

package e2e

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// testRuntime gives the nodes of the shoot another container runtime, with which a pod runs. Pods that run already are not restarted.
func testRuntime(t *testing.T, l *landscape, key client.ObjectKey, c cluster) {
	shoot := &corev1beta1.Shoot{}
	if err := l.garden.client.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	before := c.pod(t, "app")
	shoot.Spec.Provider.Workers[0].CRI.ContainerRuntimes = []corev1beta1.ContainerRuntime{{Type: "crun"}}
	l.patchWorkers(t, key, shoot.Spec.Provider.Workers, shoot.Spec.Kubernetes.ClusterAutoscaler)
	l.awaitShoot(t, key, kube.ShootHealthy)

	server := serverDeployment("crun")
	server.Spec.Template.Spec.RuntimeClassName = new("crun")
	if err := c.client.Create(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	c.awaitDeployment(t, "crun")
	if got := c.exec(t, c.pod(t, "crun").Name, "/server", "say", "hello"); got != "[hello]\n" {
		t.Errorf("output = %q", got)
	}
	if err := c.client.Delete(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	after := c.pod(t, "app")
	if was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; after.UID != before.UID || is.RestartCount != was.RestartCount {
		t.Errorf("pod %s was restarted %d times, and then pod %s %d times", before.Name, was.RestartCount, after.Name, is.RestartCount)
	}
}
