package local

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
	"gardener.cloud/gardener/test/golden"
)

func TestStorage(t *testing.T) {
	workers := corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a"}}}
	for name, tt := range map[string]struct {
		image    string
		provider corev1beta1.Provider
		want     []string
	}{
		"with nodes":       {"registry.example/local-storage:v1", workers, []string{"StorageClass local"}},
		"without an image": {"", workers, nil},
		"without nodes":    {"registry.example/local-storage:v1", corev1beta1.Provider{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := generic.ControlPlaneInput{Cluster: &extension.Cluster{Shoot: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: tt.provider}}}}
			classes, err := renderStorage(tt.image)(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if len(classes) != len(tt.want) {
				t.Errorf("StorageClasses = %v, want %v", classes, tt.want)
			}
			objects, err := renderShootComponents(tt.image)(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			access, err := renderCloudControllerAccess(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(objects) > len(access); got != (tt.want != nil) {
				t.Errorf("what provisions volumes is there: %t, want %t", got, tt.want != nil)
			}
			if tt.want != nil {
				golden.Objects(t, "storage.yaml", append(objects[len(access):], classes...))
			}
		})
	}
}
