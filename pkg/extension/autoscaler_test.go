package extension

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestAutoscalerAnnotations(t *testing.T) {
	got := AutoscalerAnnotations(&extensionsv1alpha1.ClusterAutoscalerOptions{
		ScaleDownUtilizationThreshold: new("0.5"), ScaleDownGPUUtilizationThreshold: new("0.6"), ScaleDownUnneededTime: &metav1.Duration{Duration: time.Minute},
		ScaleDownUnreadyTime: &metav1.Duration{Duration: time.Hour}, MaxNodeProvisionTime: &metav1.Duration{Duration: 90 * time.Second},
	})
	want := map[string]string{
		"autoscaler.gardener.cloud/scale-down-utilization-threshold": "0.5", "autoscaler.gardener.cloud/scale-down-gpu-utilization-threshold": "0.6",
		"autoscaler.gardener.cloud/scale-down-unneeded-time": "1m0s", "autoscaler.gardener.cloud/scale-down-unready-time": "1h0m0s",
		"autoscaler.gardener.cloud/max-node-provision-time": "1m30s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got := AutoscalerAnnotations(nil); got != nil {
		t.Errorf("without settings: %v", got)
	}
}
