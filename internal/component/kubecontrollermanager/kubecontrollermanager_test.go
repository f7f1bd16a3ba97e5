package kubecontrollermanager

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/golden"
)

func workerless() Values {
	return Values{
		Namespace: "shoot--a--b", Image: "registry.example/kube-controller-manager:v1.36.3", Replicas: 1, Workerless: true, ClusterName: "shoot--a--b",
		ServiceNetworks: []string{"100.64.0.0/13"},
		Secrets: Secrets{
			GenericKubeconfig: "generic-token-kubeconfig-1", Server: "kube-controller-manager-server-1", CA: "ca-bundle-1", ClientCA: "ca-client-1",
			ServiceAccountKey: "service-account-key-1",
		},
	}
}

func full() Values {
	v := workerless()
	v.Workerless, v.Replicas, v.Spread = false, 2, []string{corev1.LabelHostname}
	v.PodNetworks, v.ServiceNetworks = []string{"100.96.0.0/11", "fd00:1::/48"}, []string{"100.64.0.0/13", "fd00:2::/112"}
	v.Secrets.KubeletCA = "ca-kubelet-1"
	v.SigningDuration = 48 * time.Hour
	minute := &metav1.Duration{Duration: time.Minute}
	v.Config = &corev1beta1.KubeControllerManagerConfig{
		KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"WatchListClient": true}},
		HorizontalPodAutoscaler: &corev1beta1.HorizontalPodAutoscalerConfig{
			CPUInitializationPeriod: minute, DownscaleStabilization: minute, InitialReadinessDelay: minute, SyncPeriod: minute, Tolerance: new(0.2),
		},
		NodeCIDRMaskSize: new(int32(25)), NodeCIDRMaskSizeIPv6: new(int32(80)), NodeMonitorGracePeriod: minute,
	}
	return v
}

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{"workerless": workerless(), "full": full()} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
		})
	}
}

// TestFlags runs the real program in each version, which has to accept all flags and controllers: then it only fails because its kubeconfig is missing.
func TestFlags(t *testing.T) {
	single := full()
	single.PodNetworks, single.ServiceNetworks = single.PodNetworks[:1], single.ServiceNetworks[:1]
	garden := workerless()
	garden.Of = instance.VirtualGarden
	env.EachKubernetes(t, func(t *testing.T, version string, program func(string) string) {
		for name, v := range map[string]Values{"workerless": workerless(), "full": full(), "one family": single, "garden": garden} {
			t.Run(name, func(t *testing.T) {
				v.Version = version
				objects, err := Objects(v)
				if err != nil {
					t.Fatal(err)
				}
				for _, object := range objects {
					if deployment, ok := object.(*appsv1.Deployment); ok {
						out, err := exec.CommandContext(t.Context(), program(Name), deployment.Spec.Template.Spec.Containers[0].Command[1:]...).CombinedOutput()
						if err == nil || !strings.Contains(string(out), "stat "+shootaccess.PathKubeconfig) {
							t.Errorf("%v: %s", err, out)
						}
					}
				}
			})
		}
	})
}
