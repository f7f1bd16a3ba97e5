//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// testGarden uses the garden API of a landscape: a project gets ready, and an order is completed, judged and withdrawn.
func testGarden(t *testing.T, l *landscape) {
	t.Run("a project gets a namespace", func(t *testing.T) {
		project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To("garden-dev")}}
		if err := l.client.Create(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		await(t, l, &corev1beta1.ProjectList{}, func(projects []*corev1beta1.Project) error {
			if len(projects) != 1 || projects[0].Status.Phase != corev1beta1.ProjectReady {
				return fmt.Errorf("project is not ready: %+v", projects)
			}
			return nil
		}, client.InNamespace(""))
		namespace := &corev1.Namespace{}
		if err := l.client.Get(t.Context(), client.ObjectKey{Name: "garden-dev"}, namespace); err != nil || namespace.Labels["project.gardener.cloud/name"] != "dev" {
			t.Errorf("labels of the namespace are %v, %v", namespace.Labels, err)
		}
	})
	t.Run("an order is completed, and waits for a seed", func(t *testing.T) {
		profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: corev1beta1.CloudProfileSpec{
			Type: "local", Regions: []corev1beta1.Region{{Name: "local"}},
			Kubernetes:   corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: "1.36.1"}, {Version: "1.36.3"}}},
			MachineTypes: []corev1beta1.MachineType{{Name: "local", CPU: resource.MustParse("1"), GPU: resource.MustParse("0"), Memory: resource.MustParse("1Gi")}},
			MachineImages: []corev1beta1.MachineImage{{Name: "local", Versions: []corev1beta1.MachineImageVersion{{
				ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}, CRI: []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}},
			}}}},
		}}
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "first"}, Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local",
			Provider: corev1beta1.Provider{Type: "local"}, Kubernetes: corev1beta1.Kubernetes{Version: "1.36"},
		}}
		for _, object := range []client.Object{profile, shoot} {
			if err := l.client.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if shoot.Spec.Kubernetes.Version != "1.36.3" {
			t.Errorf("the version was completed to %s", shoot.Spec.Kubernetes.Version)
		}
		await(t, l, &corev1beta1.ShootList{}, func(shoots []*corev1beta1.Shoot) error {
			if op := shoots[0].Status.LastOperation; op == nil || !strings.Contains(op.Description, "Failed to schedule Shoot") {
				return fmt.Errorf("last operation is %+v", op)
			}
			return nil
		}, client.InNamespace("garden-dev"))
		if err := l.client.Delete(t.Context(), shoot); err == nil || !strings.Contains(err.Error(), "confirmation.gardener.cloud/deletion") {
			t.Errorf("deletion without confirmation: %v", err)
		}
		if err := l.client.Patch(t.Context(), shoot, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))); err != nil {
			t.Fatal(err)
		}
		if err := l.client.Delete(t.Context(), shoot); err != nil {
			t.Error(err)
		}
	})
}
