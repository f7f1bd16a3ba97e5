package gardenlet

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/etcddruid"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, BootstrapKubeconfig: []byte("bootstrap"), ImageVectorOverwrite: "images: []\n",
		Config: gardenletconfigv1alpha1.GardenletConfiguration{
			SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{ObjectMeta: metav1.ObjectMeta{Name: "local"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

// After the first start there is no bootstrap kubeconfig.
func TestNoBootstrapSecret(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Image: "i", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetName() == BootstrapSecret {
			t.Errorf("%T %s is deployed", object, object.GetName())
		}
	}
}

// RBAC does not allow to grant permissions that one does not have, so a gardenlet needs those of the components that it deploys with Roles. Of
// ClusterRoles it may grant more if it names them.
func TestMayGrant(t *testing.T) {
	control, err := resourcemanager.Objects(resourcemanager.Values{Namespace: "shoot--dev--crazy", Shoot: &resourcemanager.Shoot{}})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := resourcemanager.Objects(resourcemanager.Values{Namespace: "garden", Config: resourcemanager.ForSeed()})
	if err != nil {
		t.Fatal(err)
	}
	druid, err := etcddruid.Objects(etcddruid.Values{Namespace: "garden"})
	if err != nil {
		t.Fatal(err)
	}
	autoscaler, err := verticalpodautoscaler.Objects(verticalpodautoscaler.Values{Namespace: "garden"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range slices.Concat(control, seed, druid, autoscaler, gateway.Objects(gateway.Values{})) {
		switch role := object.(type) {
		case *rbacv1.Role:
			if covered, missing := validation.Covers(rules(), role.Rules); !covered {
				t.Errorf("it lacks permissions of Role %q: %v", role.Name, missing)
			}
		case *rbacv1.ClusterRole:
			if covered, missing := validation.Covers(rules(), role.Rules); !covered && !slices.Contains(deployedRoles(), role.Name) {
				t.Errorf("it lacks permissions of ClusterRole %q: %v", role.Name, missing)
			}
		}
	}
}
