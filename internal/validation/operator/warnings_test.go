package operator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/operator"
)

// A user learns of each field that nothing reads, but not of defaults and required fields, which nobody can avoid.
func TestGardenWarnings(t *testing.T) {
	defaults := func(g *garden) {
		g.Spec.VirtualCluster.Gardener.GardenerDashboard = nil
		operatorv1alpha1.DefaultGarden(g)
	}
	for name, tc := range map[string]struct {
		change func(*garden)
		want   []string
	}{
		"defaults": {change: func(*garden) {}},
		"runtime cluster": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Ingress.Controller.ProviderConfig = &runtime.RawExtension{}
			g.Spec.RuntimeCluster.Networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}
			g.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{PersistentVolumeClaimAutoscaler: &operatorv1alpha1.SettingPersistentVolumeClaimAutoscaler{Enabled: true}}
			g.Spec.RuntimeCluster.Volume = &operatorv1alpha1.Volume{MinimumSize: new(resource.MustParse("20Gi"))}
		}, want: []string{
			"spec.runtimeCluster.ingress.controller.providerConfig: has no effect: there is no ingress controller",
			"spec.runtimeCluster.networking.ipFamilies[1]: has no effect yet",
			"spec.runtimeCluster.settings.persistentVolumeClaimAutoscaler.enabled: has no effect yet",
			"spec.runtimeCluster.volume.minimumSize: has no effect yet",
		}},
		"what is disabled": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{PersistentVolumeClaimAutoscaler: &operatorv1alpha1.SettingPersistentVolumeClaimAutoscaler{}}
		}},
		"virtual cluster": {change: func(g *garden) {
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer.OIDCConfig = &corev1beta1.OIDCConfig{}
			g.Spec.VirtualCluster.Kubernetes.KubeControllerManager = &operatorv1alpha1.KubeControllerManagerConfig{KubeControllerManagerConfig: corev1beta1.KubeControllerManagerConfig{
				HorizontalPodAutoscaler: &corev1beta1.HorizontalPodAutoscalerConfig{}, NodeCIDRMaskSize: new(int32(24)), NodeCIDRMaskSizeIPv6: new(int32(64)),
				NodeMonitorGracePeriod: &metav1.Duration{Duration: time.Minute}, PodEvictionTimeout: &metav1.Duration{Duration: time.Minute},
			}}
			g.Spec.VirtualCluster.Gardener.GardenerDashboard = &operatorv1alpha1.GardenerDashboardConfig{}
		}, want: []string{
			"spec.virtualCluster.kubernetes.kubeAPIServer.oidcConfig: has no effect in a virtual garden: use structuredAuthentication",
			"spec.virtualCluster.kubernetes.kubeControllerManager.horizontalPodAutoscaler: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.nodeCIDRMaskSize: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.nodeCIDRMaskSizeIPv6: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.nodeMonitorGracePeriod: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.podEvictionTimeout: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.gardener.gardenerDashboard: has no effect yet",
		}},
		"an operation": {change: withOperation("reconcile;rotate-observability-credentials"), want: []string{
			"metadata.annotations[gardener.cloud/operation]: rotate-observability-credentials renews Secret observability-ingress, which no component uses yet",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, operator.GardenWarnings(validGarden(t, defaults, tc.change))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
