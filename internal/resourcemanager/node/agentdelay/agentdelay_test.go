package agentdelay

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes             int
		shortest, longest time.Duration
		want              []string
	}{
		"one":              {nodes: 1, longest: 5 * time.Minute, want: []string{"0s"}},
		"some":             {nodes: 4, longest: 5 * time.Minute, want: []string{"0s", "1m15s", "2m30s", "3m45s"}},
		"with a shortest":  {nodes: 2, shortest: time.Minute, longest: 2 * time.Minute, want: []string{"1m0s", "1m30s"}},
		"whole seconds":    {nodes: 3, longest: 10 * time.Second, want: []string{"0s", "3s", "6s"}},
		"one and the same": {nodes: 2, shortest: time.Minute, longest: time.Minute, want: []string{"1m0s", "1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			for i := range tc.nodes {
				builder = builder.WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
			}
			c := builder.Build()
			r := &reconciler{client: c, shortest: tc.shortest, longest: tc.longest}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range tc.nodes {
				node := &corev1.Node{}
				if err := c.Get(t.Context(), client.ObjectKey{Name: fmt.Sprintf("n%d", i)}, node); err != nil {
					t.Fatal(err)
				}
				got = append(got, node.Annotations["node-agent.gardener.cloud/reconciliation-delay"])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}
}
