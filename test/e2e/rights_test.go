//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	product "gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/rights"
)

// rightsTimeout is for how long rights are waited for that are not used all the time.
const rightsTimeout = 4 * time.Minute

// auditPolicy logs who requested what in a shoot.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// audited creates a shoot whose kube-apiserver writes an audit log.
func (l *landscape) audited(t *testing.T, shoot *corev1beta1.Shoot) {
	t.Helper()
	policy := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: "audit-policy"}, Data: map[string]string{"policy": auditPolicy},
	}
	shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{AuditConfig: &corev1beta1.AuditConfig{
		AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: policy.Name}},
	}}
	for _, object := range []client.Object{policy, shoot} {
		if err := l.garden.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// testRights compares what may be done in the runtime cluster and in a shoot with what was done until now. A shoot that was created without an
// audit log is left out.
func testRights(t *testing.T, l *landscape, key client.ObjectKey) {
	l.awaitShoot(t, key, kube.ShootHealthy)
	opened, err := product.Open(l.dir, l.name)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := opened.Cluster(product.RuntimeCluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("runtime cluster", func(t *testing.T) {
		expectRights(t, l.client, "runtime.yaml", opened.AuditDir(runtime))
	})
	t.Run("shoot", func(t *testing.T) {
		shoot := &corev1beta1.Shoot{}
		if err := l.garden.client.Get(t.Context(), key, shoot); err != nil {
			t.Fatal(err)
		}
		expectRights(t, l.shoot(t, key).client, "shoot.yaml", l.auditDirs(t, shoot.Status.TechnicalID)...)
	})
}

// auditDirs returns the directories of the audit logs of the kube-apiservers in a namespace of the runtime cluster: a volume of each pod.
func (l *landscape) auditDirs(t *testing.T, namespace string) []string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := l.client.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app": "kubernetes", "role": "apiserver"}); err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, pod := range pods.Items {
		dirs = append(dirs, filepath.Join(l.dir, l.name, "machines", pod.Spec.NodeName, "kubelet", "pods", string(pod.UID),
			"volumes", "kubernetes.io~empty-dir", "audit-log"))
	}
	return dirs
}

// expectRights expects no finding without a reason in a file.
func expectRights(t *testing.T, c client.WithWatch, file string, logs ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "rights", file))
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := rights.ParseAccepted(data)
	if err != nil {
		t.Fatal(err)
	}
	// Some rights are used every few minutes only. Leases change every few seconds.
	ctx, cancel := context.WithTimeout(working(t), rightsTimeout)
	defer cancel()
	var left []rights.Finding
	var idle []string
	err = kube.Await(ctx, c, &coordinationv1.LeaseList{}, func([]*coordinationv1.Lease) error {
		findings, unused, err := rights.Check(ctx, c, accepted, logs...)
		if err != nil {
			return err
		}
		if left, idle = findings, unused; len(left) > 0 {
			return errors.New("there are findings")
		}
		return nil
	}, nil)
	for _, reason := range idle {
		t.Log("no finding has the reason for", reason)
	}
	if err != nil { // it may be that of a list that was not complete in time
		t.Errorf("%v; change the rules, or accept with a reason in test/rights/%s:\n%s", err, file, rights.Report(left))
	}
}
