package verticalpodautoscaler

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/golden"
)

func values() Values {
	return Values{
		Namespace: "garden", Replicas: 2, ServerSecret: "vpa-server-1", CABundle: []byte("CA"),
		Images: Images{Recommender: "registry.example/r:v1", Updater: "registry.example/u:v1", AdmissionController: "registry.example/a:v1"},
		Config: &corev1beta1.VerticalPodAutoscaler{
			FeatureGates: map[string]bool{"InPlaceOrRecreate": true}, EvictionTolerance: new(1.0),
			MaxAllowed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("24Gi")},
		},
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

// TestFlags runs the real programs, which have to accept all flags.
func TestFlags(t *testing.T) {
	v := values()
	v.Config.FeatureGates = nil // feature gates depend on the version
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			program := env.Program(t, "vertical-pod-autoscaler", strings.TrimPrefix(deployment.Name, "vpa-"))
			// They print help if all flags before it are known.
			args := slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args, []string{"--help"})
			if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); !strings.Contains(string(out), "--kubeconfig") ||
				strings.Contains(string(out), "unknown flag") {
				t.Errorf("%s: %v: %s", deployment.Name, err, out)
			}
		}
	}
}
