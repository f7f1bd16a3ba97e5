package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBehind(t *testing.T) {
	node := func(name, secret, done string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": secret},
			Annotations: map[string]string{"checksum/cloud-config-data": done},
		}}
		if change != nil {
			change(n)
		}
		return n
	}
	told := map[string]string{"pool": "new"}
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		want  string
	}{
		"no nodes":       {},
		"done":           {nodes: []*corev1.Node{node("a", "pool", "new", nil)}},
		"behind":         {nodes: []*corev1.Node{node("b", "pool", "old", nil), node("a", "pool", "", nil)}, want: "2 nodes do not have their new configuration yet: a, b"},
		"nobody's":       {nodes: []*corev1.Node{node("a", "", "", nil)}},
		"of an old pool": {nodes: []*corev1.Node{node("a", "gone", "old", nil)}},
		"about to go":    {nodes: []*corev1.Node{node("a", "pool", "old", func(n *corev1.Node) { n.Spec.Unschedulable = true })}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := behind(tc.nodes, told); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("behind() is %q, want %q", got, tc.want)
			}
		})
	}
}
