package verticalpodautoscaler

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/everyfield"
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

// shootValues are those for a shoot, with the defaults of the API.
func shootValues() Values {
	v := values()
	v.Namespace, v.Replicas, v.Config = "shoot--dev--one", 1, &corev1beta1.VerticalPodAutoscaler{Enabled: true}
	corev1beta1.DefaultVerticalPodAutoscaler(v.Config)
	v.Shoot, v.TrafficDistribution = &Shoot{GenericKubeconfig: "generic-token-kubeconfig-1"}, new("PreferSameZone")
	return v
}

func TestShoot(t *testing.T) {
	objects, err := Objects(shootValues())
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "shoot.yaml", objects)
	target, err := TargetObjects(shootValues())
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "shoot-target.yaml", slices.DeleteFunc(target, func(o client.Object) bool {
		_, ok := o.(*apiextensionsv1.CustomResourceDefinition) // they have tests of their own
		return ok
	}))
	if len(target) != 15 { // 2 definitions, 4 permissions for each part, and the webhook
		t.Errorf("there are %d objects for the shoot", len(target))
	}
}

// Each setting of a Shoot has an effect.
func TestEveryFieldIsUsed(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[corev1beta1.VerticalPodAutoscaler]{
		Base: func() *corev1beta1.VerticalPodAutoscaler { return shootValues().Config },
		Render: func(t *testing.T, config *corev1beta1.VerticalPodAutoscaler) string {
			t.Helper()
			v := shootValues()
			v.Config = config
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.Marshal(objects)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		Values: map[string][2]any{"maxAllowed": {
			corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}},
		Exceptions: map[string]string{"enabled": "the flow deploys it, or not"},
	})
}

// TestFlags runs the real programs, which have to accept all flags.
func TestFlags(t *testing.T) {
	v := shootValues()
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
