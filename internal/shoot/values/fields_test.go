package values

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryFieldOfAPoolReachesExtensionsOrNodes(t *testing.T) {
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(credentials.Values{SeedAPI: fake.NewFakeClient(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)})
	stagetest.Generate(t, set)
	everyfield.Run(t, everyfield.Suite[corev1beta1.Worker]{
		Base: func() *corev1beta1.Worker {
			return &corev1beta1.Worker{
				Name: "a", Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{}}, DataVolumes: []corev1beta1.DataVolume{{Name: "data", VolumeSize: "1Gi"}},
				Volume: &corev1beta1.Volume{VolumeSize: "1Gi"}, CRI: &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD},
				Kubernetes: &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{
					ImagePullCredentialsVerificationPolicy: new(corev1beta1.NeverVerifyAllowlistedImages),
				}},
			}
		},
		Render: func(t *testing.T, worker *corev1beta1.Worker) string {
			o := observedtest.State()
			o.Shoot.Spec.Kubernetes.Version = "1.36.1"
			o.Shoot.Spec.Networking = &corev1beta1.Networking{Services: new("100.64.0.0/13")}
			o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{*worker}
			v, err := Source{State: o, Credentials: set, Images: images}.OperatingSystemConfigs()
			if err != nil {
				t.Fatal(err)
			}
			machines, err := operatingsystemconfig.Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			pool, err := workerPool(o, &nodes.Pool{Pool: v.Pools[0], Provision: &extensionsv1alpha1.OperatingSystemConfig{
				Status: extensionsv1alpha1.OperatingSystemConfigStatus{CloudConfig: &extensionsv1alpha1.CloudConfig{}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.Marshal([]any{machines, pool})
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		Values: map[string][2]any{
			"kubernetes.version": {"1.35.4", "1.36.1"}, "volume.size": {"7Gi", "8Gi"}, "dataVolumes[].size": {"7Gi", "8Gi"},
			"machine.architecture": {"amd64", "arm64"}, "updateStrategy": {corev1beta1.AutoRollingUpdate, corev1beta1.AutoInPlaceUpdate},
		},
		Exceptions: map[string]string{
			"cri.containerRuntimes[].providerConfig": "for the ContainerRuntime, which another stage writes",
			"controlPlane":                           "for self-hosted clusters, which gardenadm creates, and not this flow",
		},
	})
}
