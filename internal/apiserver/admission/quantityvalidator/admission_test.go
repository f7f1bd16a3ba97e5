package quantityvalidator_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/quantityvalidator"
)

func TestAdmit(t *testing.T) {
	for _, size := range []string{"1e29999999", "3"} {
		q := resource.MustParse(size)
		withKubelet := func(config corev1beta1.KubeletConfig) *corev1beta1.Shoot {
			return &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{
				{}, {Kubernetes: &corev1beta1.WorkerKubernetes{Kubelet: &config}},
			}}}}
		}
		for path, obj := range map[string]client.Object{
			"spec.kubernetes.kubeAPIServer.autoscaling.minAllowed[cpu]": &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{
				KubeAPIServer: &corev1beta1.KubeAPIServerConfig{Autoscaling: &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{"cpu": q}}},
			}}},
			"spec.provider.workers[1].kubernetes.kubelet.kubeReserved.pid": withKubelet(corev1beta1.KubeletConfig{KubeReserved: &corev1beta1.KubeletConfigReserved{PID: &q}}),
			"spec.provider.workers[0].volume.size": &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{
				{Volume: &corev1beta1.Volume{VolumeSize: size}},
			}}}},
			"spec.provider.workers[0].dataVolumes[1].size": &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{
				{DataVolumes: []corev1beta1.DataVolume{{}, {VolumeSize: size}}},
			}}}},
			"spec.machineTypes[0].storage.minSize": &corev1beta1.NamespacedCloudProfile{Spec: corev1beta1.NamespacedCloudProfileSpec{
				MachineTypes: []corev1beta1.MachineType{{Storage: &corev1beta1.MachineTypeStorage{MinSize: &q}}},
			}},
			"status.cloudProfileSpec.machineTypes[0].memory": &corev1beta1.NamespacedCloudProfile{Status: corev1beta1.NamespacedCloudProfileStatus{
				CloudProfileSpec: &corev1beta1.CloudProfileSpec{MachineTypes: []corev1beta1.MachineType{{Memory: q}}},
			}},
			"spec.metrics[memory]": &corev1beta1.Quota{Spec: corev1beta1.QuotaSpec{Metrics: corev1.ResourceList{"memory": q}}},
			"no quantities":        &corev1beta1.Project{},
			"nothing":              nil,
		} {
			t.Run(size+" in "+path, func(t *testing.T) {
				err := quantityvalidator.New().Admit(t.Context(), admissiontest.Request{Object: obj}.Attributes(), nil)
				var reason metav1.StatusReason
				if size != "3" && strings.Contains(path, ".") {
					reason = metav1.StatusReasonInvalid
				}
				if admissiontest.Reason(err) != reason || reason != "" && !strings.Contains(err.Error(), " "+path+": ") {
					t.Errorf("Admit() = %v, want reason %q", err, reason)
				}
			})
		}
	}
}
