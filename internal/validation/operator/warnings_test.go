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
			sizes := &corev1beta1.WatchCacheSizes{Default: new(int32(100)), Resources: []corev1beta1.ResourceWatchCacheSize{{Resource: "secrets"}}}
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer.WatchCacheSizes, g.Spec.VirtualCluster.Gardener.GardenerAPIServer.WatchCacheSizes = sizes, sizes
			g.Spec.VirtualCluster.Gardener.GardenerDashboard = &operatorv1alpha1.GardenerDashboardConfig{}
		}, want: []string{
			"spec.virtualCluster.kubernetes.kubeAPIServer.watchCacheSizes.default: has no effect: the size of a watch cache adapts itself",
			"spec.virtualCluster.kubernetes.kubeAPIServer.oidcConfig: has no effect in a virtual garden: use structuredAuthentication",
			"spec.virtualCluster.kubernetes.kubeControllerManager.horizontalPodAutoscaler: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.nodeCIDRMaskSize: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.nodeCIDRMaskSizeIPv6: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.nodeMonitorGracePeriod: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.kubernetes.kubeControllerManager.podEvictionTimeout: has no effect in a virtual garden, which has no nodes and pods",
			"spec.virtualCluster.gardener.gardenerAPIServer.watchCacheSizes.default: has no effect: the size of a watch cache adapts itself",
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

// A user who wants more room for an etcd learns that a change does not give it any.
func TestGardenUpdateWarnings(t *testing.T) {
	size := func(main, events string) func(*garden) {
		storage := func(size string) *operatorv1alpha1.Storage {
			if size == "" {
				return nil
			}
			return &operatorv1alpha1.Storage{Capacity: new(resource.MustParse(size))}
		}
		return func(g *garden) {
			g.Spec.VirtualCluster.Gardener.GardenerDashboard = nil
			g.Spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Storage: storage(main)}, Events: &operatorv1alpha1.ETCDEvents{Storage: storage(events)}}
		}
	}
	text := func(etcd string) string {
		return "spec.virtualCluster.etcd." + etcd + ".storage: counts only when the Etcd is created: volumes that exist are enlarged by spec.storageCapacity of Etcd virtual-garden-etcd-" + etcd
	}
	for name, tc := range map[string]struct {
		old, new func(*garden)
		want     []string
	}{
		"as before":                 {old: size("25Gi", ""), new: size("25Gi", "")},
		"the same in other words":   {old: size("1Gi", ""), new: size("1024Mi", "")},
		"more for one":              {old: size("25Gi", "10Gi"), new: size("25Gi", "20Gi"), want: []string{text("events")}},
		"more than what is default": {old: size("", ""), new: size("50Gi", "20Gi"), want: []string{text("main"), text("events")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, operator.GardenUpdateWarnings(validGarden(t, tc.new), validGarden(t, tc.old))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
