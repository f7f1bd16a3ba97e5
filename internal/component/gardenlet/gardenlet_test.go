package gardenlet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
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
