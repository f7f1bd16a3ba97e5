package operatingsystemconfig

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/test/everyfield"
)

// render renders all that machines of the pools get.
func render(t *testing.T, v Values) string {
	t.Helper()
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	return out.String()
}

// kubeletFile is the kubelet's configuration on the machines of the first pool.
func kubeletFile(t *testing.T, v Values) string {
	t.Helper()
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range objects[1].(*extensionsv1alpha1.OperatingSystemConfig).Spec.Files {
		if file.Path == extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig {
			return file.Content.Inline.Data
		}
	}
	t.Fatal("there is no configuration of the kubelet")
	return ""
}

func TestEveryFieldOfTheKubeletReachesItsConfiguration(t *testing.T) {
	suite := everyfield.Suite[corev1beta1.KubeletConfig]{
		Base: func() *corev1beta1.KubeletConfig {
			// The list is for one policy.
			return &corev1beta1.KubeletConfig{ImagePullCredentialsVerificationPolicy: new(corev1beta1.NeverVerifyAllowlistedImages)}
		},
		Values: map[string][2]any{},
	}
	for _, limits := range []string{"evictionHard", "evictionSoft"} {
		for _, signal := range []string{"memoryAvailable", "imageFSAvailable", "imageFSInodesFree", "nodeFSAvailable", "nodeFSInodesFree"} {
			suite.Values[limits+"."+signal] = [2]any{"1%", "1Mi"} // any other text is replaced
		}
	}
	t.Run("of the Shoot", func(t *testing.T) {
		suite.Render = func(t *testing.T, config *corev1beta1.KubeletConfig) string {
			v := values(Pool{Worker: worker()})
			v.Kubelet = config
			return kubeletFile(t, v)
		}
		everyfield.Run(t, suite)
	})
	t.Run("of a pool", func(t *testing.T) {
		suite.Render = func(t *testing.T, config *corev1beta1.KubeletConfig) string {
			pool := Pool{Worker: worker()}
			pool.Worker.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: config}
			v := values(pool)
			v.Kubelet = &corev1beta1.KubeletConfig{MaxPods: new(int32(1))}
			return kubeletFile(t, v)
		}
		everyfield.Run(t, suite)
	})
}

func TestEveryFieldOfAMirrorReachesMachines(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[extensionsv1alpha1.RegistryConfig]{
		Render: func(t *testing.T, config *extensionsv1alpha1.RegistryConfig) string {
			return render(t, values(Pool{Worker: worker(), Registries: []extensionsv1alpha1.RegistryConfig{*config}}))
		},
	})
}
