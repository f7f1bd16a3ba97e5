package extension

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestWorkerPoolHash(t *testing.T) {
	cluster := &Cluster{Shoot: &corev1beta1.Shoot{}}
	cluster.Shoot.Spec.Kubernetes.Version = "1.36.3"
	hash := func(change func(*extensionsv1alpha1.WorkerPool), additional ...string) string {
		pool := &extensionsv1alpha1.WorkerPool{Name: "a", MachineType: "small", Minimum: 1}
		if change != nil {
			change(pool)
		}
		hash, err := WorkerPoolHash(pool, cluster, additional...)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	agent := func(pool *extensionsv1alpha1.WorkerPool) { pool.NodeAgentSecretName = new("gardener-node-agent-a-1") }
	for name, tc := range map[string]struct {
		one, other string
		same       bool
	}{
		"numbers":                    {hash(nil), hash(func(p *extensionsv1alpha1.WorkerPool) { p.Minimum, p.Maximum = 2, 3 }), true},
		"the machine type":           {hash(nil), hash(func(p *extensionsv1alpha1.WorkerPool) { p.MachineType = "large" }), false},
		"the version":                {hash(nil), hash(func(p *extensionsv1alpha1.WorkerPool) { p.KubernetesVersion = new("1.35.4") }), false},
		"the version of the cluster": {hash(nil), hash(func(p *extensionsv1alpha1.WorkerPool) { p.KubernetesVersion = new("1.36.3") }), true},
		"what the extension adds":    {hash(nil, "image:1"), hash(nil, "image:2"), false},
		"the configuration": {hash(nil), hash(func(p *extensionsv1alpha1.WorkerPool) {
			p.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
		}), false},
		"a field in the Secret of the node agent": {hash(agent), hash(func(p *extensionsv1alpha1.WorkerPool) { agent(p); p.MachineType = "large" }), true},
		"another Secret of the node agent": {hash(agent), hash(func(p *extensionsv1alpha1.WorkerPool) {
			p.NodeAgentSecretName = new("gardener-node-agent-a-2")
		}), false},
	} {
		if (tc.one == tc.other) != tc.same || len(tc.one) != poolHashLength {
			t.Errorf("%s: %s and %s", name, tc.one, tc.other)
		}
	}
}

func TestShare(t *testing.T) {
	var got []int32
	for zone := range 3 {
		got = append(got, Share(5, zone, 3))
	}
	if diff := cmp.Diff([]int32{2, 2, 1}, got); diff != "" {
		t.Errorf("Share() (-want +got):\n%s", diff)
	}
	if got := ShareOf(intstr.FromInt32(1), 1, 2); got != intstr.FromInt32(0) {
		t.Errorf("ShareOf() = %v", got)
	}
	if got := ShareOf(intstr.FromString("20%"), 1, 2); got != intstr.FromString("20%") {
		t.Errorf("ShareOf() = %v", got)
	}
}
