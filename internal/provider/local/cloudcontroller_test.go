package local

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
	"gardener.cloud/gardener/test/golden"
)

func TestCloudController(t *testing.T) {
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a"}}}}}
	in := generic.ControlPlaneInput{
		ControlPlane: &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crazy"}},
		Cluster:      &extension.Cluster{Annotations: map[string]string{extensionsv1alpha1.AnnotationGenericKubeconfigSecretName: "generic-token-kubeconfig-1234"}, Shoot: shoot},
	}
	render := func(t *testing.T, image string, in generic.ControlPlaneInput, access driverAccess) error {
		t.Helper()
		objects, err := renderCloudController(image, func(context.Context, string, corev1.SecretReference) (driverAccess, error) { return access, nil })(t.Context(), in)
		if err != nil {
			return err
		}
		golden.Objects(t, strings.ReplaceAll(strings.TrimPrefix(t.Name(), "TestCloudController/"), "_", "-")+".yaml", objects)
		return nil
	}
	t.Run("cloud controller", func(t *testing.T) {
		if err := render(t, "registry.example/gardener:v1", in, driverAccess{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("cloud controller elsewhere", func(t *testing.T) {
		in := in
		in.ScaledDown = true
		if err := render(t, "registry.example/gardener:v1", in, driverAccess{[]byte("kubeconfig"), "other"}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("cloud controller access", func(t *testing.T) {
		objects, err := renderCloudControllerAccess(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		golden.Objects(t, "cloud-controller-access.yaml", objects)
	})
	if err := render(t, "", in, driverAccess{}); err == nil || !strings.Contains(err.Error(), "without the image") {
		t.Errorf("without an image: %v", err)
	}
}
