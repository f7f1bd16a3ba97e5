package landscape

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestKubernetesVersions(t *testing.T) {
	got := kubernetesVersions([]string{"v1.35.4", "v1.36.10", "v1.36.3"})
	want := []corev1beta1.ExpirableVersion{{Version: "1.36.10"}, {Version: "1.36.3"}, {Version: "1.35.4"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
