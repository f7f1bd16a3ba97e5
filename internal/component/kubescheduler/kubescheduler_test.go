package kubescheduler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/golden"
)

func balanced() Values {
	return Values{
		Namespace: "shoot--a--b", Image: "registry.example/kube-scheduler:v1.36.3", Replicas: 1,
		Secrets: Secrets{GenericKubeconfig: "generic-token-kubeconfig-1", Server: "kube-scheduler-server-1", ClientCA: "ca-client-bundle-1"},
	}
}

func binPacking() Values {
	v := balanced()
	v.Replicas, v.Spread = 2, []string{corev1.LabelHostname}
	v.Config = &corev1beta1.KubeSchedulerConfig{
		KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"WatchListClient": true}},
		Profile:          new(corev1beta1.SchedulingProfileBinPacking),
	}
	return v
}

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{"balanced": balanced(), "bin-packing": binPacking()} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
		})
	}
}

// TestFlags runs the real program in each version, which has to accept all flags and its configuration: then it only fails because its kubeconfig is
// missing.
func TestFlags(t *testing.T) {
	env.EachKubernetes(t, func(t *testing.T, _ string, program func(string) string) {
		for name, v := range map[string]Values{"balanced": balanced(), "bin-packing": binPacking()} {
			t.Run(name, func(t *testing.T) { testFlags(t, program(Name), v) })
		}
	})
}

func testFlags(t *testing.T, program string, v Values) {
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), configFile)
	var args []string
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			if err := os.WriteFile(file, []byte(o.Data[configFile]), 0o600); err != nil {
				t.Fatal(err)
			}
		case *appsv1.Deployment:
			for _, arg := range o.Spec.Template.Spec.Containers[0].Command[1:] {
				if strings.HasPrefix(arg, "--config=") {
					arg = "--config=" + file
				}
				args = append(args, arg)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "stat "+shootaccess.PathKubeconfig) {
		t.Errorf("%v: %s", err, out)
	}
}
