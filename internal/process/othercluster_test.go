package process

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A kubeconfig that is for another cluster now is not used: all machines would be lost, and created again there.
func TestOtherClusterCheck(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "a"}}).Build()
	for cluster, fine := range map[string]bool{"": true, "a": true, "b": false} {
		if err := (&OtherCluster{UID: cluster}).Check(t.Context(), api); (err == nil) != fine {
			t.Errorf("%q: %v", cluster, err)
		}
	}
}
