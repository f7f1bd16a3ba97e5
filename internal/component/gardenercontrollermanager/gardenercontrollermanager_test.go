package gardenercontrollermanager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	validation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

func TestVirtual(t *testing.T) {
	v := Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, Autoscaled: true,
		Virtual: &gardenerprocess.Virtual{GenericKubeconfig: "generic-token-kubeconfig"},
	}
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "virtual.yaml", objects)
	golden.Objects(t, "virtual-target.yaml", TargetObjects(v))
}

func TestConfiguration(t *testing.T) {
	hard := func(count string) corev1.ResourceQuota {
		return corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"count/shoots.core.gardener.cloud": resource.MustParse(count)},
		}}
	}
	for file, config := range map[string]*operatorv1alpha1.GardenerControllerManagerConfig{
		"configuration-default.yaml": nil,
		"configuration-full.yaml": {
			LogLevel: new("debug"), FeatureGates: map[string]bool{"Some": true}, PlantAllowCIDRs: []string{"10.9.0.0/16"},
			DefaultProjectQuotas: []operatorv1alpha1.ProjectQuotaConfiguration{
				{Config: hard("2"), ProjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"trial": "true"}}},
				{Config: hard("100")},
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			configuration := Configuration(config)
			got, err := yaml.Marshal(configuration)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, file, string(got))
			controllermanagerconfigv1alpha1.SetDefaults(&configuration)
			if errs := validation.ValidateControllerManager(&configuration); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
