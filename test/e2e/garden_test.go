//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/builder"
)

// testGarden uses the garden of a landscape, and its seed: a project becomes ready, a shoot is defaulted, scheduled and deleted, the seed
// keeps a ManagedResource, and runs etcd.
func testGarden(t *testing.T, l *landscape) {
	t.Run("a project gets a namespace", func(t *testing.T) {
		project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-dev")}}
		if err := l.garden.client.Create(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		await(t, l.garden.client, func(projects []*corev1beta1.Project) error {
			for _, p := range projects {
				if p.Name == project.Name && p.Status.Phase == corev1beta1.ProjectReady {
					return nil
				}
			}
			return fmt.Errorf("project is not ready: %+v", projects)
		}, client.InNamespace(""))
		namespace := &corev1.Namespace{}
		if err := l.garden.client.Get(t.Context(), client.ObjectKey{Name: "garden-dev"}, namespace); err != nil || namespace.Labels["project.gardener.cloud/name"] != "dev" {
			t.Errorf("labels of the namespace are %v, %v", namespace.Labels, err)
		}
	})
	t.Run("the seed is ready", func(t *testing.T) {
		await(t, l.garden.client, func(seeds []*corev1beta1.Seed) error {
			if len(seeds) != 1 {
				return fmt.Errorf("there are %d seeds", len(seeds))
			}
			for _, typ := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedExtensionsReady} {
				if condition := kube.Condition(seeds[0].Status.Conditions, typ); condition == nil || condition.Status != corev1beta1.ConditionTrue {
					return fmt.Errorf("condition %s is %+v", typ, condition)
				}
			}
			return nil
		}, client.InNamespace(""), client.MatchingFields{"metadata.name": "local"})
	})
	t.Run("a seed keeps the objects of a ManagedResource", func(t *testing.T) { testManagedResource(t, l) })
	t.Run("a seed runs etcd", func(t *testing.T) { testEtcd(t, l) })
	t.Run("a shoot is defaulted, and scheduled to the seed", func(t *testing.T) {
		local := &corev1beta1.CloudProfile{}
		if err := l.garden.client.Get(t.Context(), client.ObjectKey{Name: builder.Local}, local); err != nil {
			t.Fatal(err)
		}
		profile := builder.CloudProfile("versions", builder.Versions("1.36.1", "1.36.3"), func(p *corev1beta1.CloudProfile) {
			p.Spec.MachineImages, p.Spec.ProviderConfig = local.Spec.MachineImages, local.Spec.ProviderConfig // provider-local wants to know its images
		})
		shoot := builder.Shoot("first", func(s *corev1beta1.Shoot) { s.Spec.CloudProfile.Name, s.Spec.Kubernetes.Version = profile.Name, "1.36" })
		for _, object := range []client.Object{profile, shoot} {
			if err := l.garden.client.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if shoot.Spec.Kubernetes.Version != "1.36.3" {
			t.Errorf("the version was defaulted to %s", shoot.Spec.Kubernetes.Version)
		}
		await(t, l.garden.client, func(shoots []*corev1beta1.Shoot) error {
			if seed := shoots[0].Spec.SeedName; seed == nil || *seed != "local" {
				return fmt.Errorf("it has no seed, last operation is %+v", shoots[0].Status.LastOperation)
			}
			return nil
		}, client.InNamespace("garden-dev"))
		if err := l.garden.client.Delete(t.Context(), shoot); err == nil || !strings.Contains(err.Error(), "confirmation.gardener.cloud/deletion") {
			t.Errorf("deletion without confirmation: %v", err)
		}
		if err := l.garden.client.Patch(t.Context(), shoot, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))); err != nil {
			t.Fatal(err)
		}
		if err := l.garden.client.Delete(t.Context(), shoot); err != nil {
			t.Error(err)
		}
	})
}

// testManagedResource creates a ManagedResource with 200 objects, and changes one of them.
func testManagedResource(t *testing.T, l *landscape) {
	const count = 200
	label := map[string]string{"e2e": "ordered"}
	var yaml strings.Builder
	for i := range count {
		fmt.Fprintf(&yaml, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ordered-%d, namespace: default, labels: {e2e: ordered}}\ndata: {a: b}\n", i)
	}
	manifests := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "manifests"}, StringData: map[string]string{"objects.yaml": yaml.String()},
	}
	managed := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "e2e"},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: new("seed"), SecretRefs: []corev1.LocalObjectReference{{Name: manifests.Name}}},
	}
	asOrdered := func(want int) func([]*corev1.ConfigMap) error {
		return func(found []*corev1.ConfigMap) error {
			if len(found) != want {
				return fmt.Errorf("there are %d objects, want %d", len(found), want)
			}
			for _, object := range found {
				if !maps.Equal(object.Data, map[string]string{"a": "b"}) {
					return fmt.Errorf("%s has %v", object.Name, object.Data)
				}
			}
			return nil
		}
	}
	start := time.Now()
	for _, object := range []client.Object{manifests, managed} {
		if err := l.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	await(t, l.client, asOrdered(count), client.MatchingLabels(label))
	t.Logf("%d objects applied after %s", count, time.Since(start).Round(time.Millisecond))
	start = time.Now()
	changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ordered-7"}}
	if err := l.client.Patch(t.Context(), changed, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"x","c":"d"}}`))); err != nil {
		t.Fatal(err)
	}
	await(t, l.client, asOrdered(count), client.MatchingLabels(label))
	t.Logf("reverted after %s", time.Since(start).Round(time.Millisecond))
	start = time.Now()
	if err := l.client.Delete(t.Context(), managed); err != nil {
		t.Fatal(err)
	}
	await(t, l.client, asOrdered(0), client.MatchingLabels(label))
	t.Logf("deleted after %s", time.Since(start).Round(time.Millisecond))
}

func testEtcd(t *testing.T, l *landscape) {
	labels := map[string]string{"app": "etcd-e2e"}
	etcd := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "etcd-e2e"}, Spec: druidv1alpha1.EtcdSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Labels: labels, Replicas: 1, StorageCapacity: new(resource.MustParse("100Mi")),
	}}
	if err := l.client.Create(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	await(t, l.client, func(etcds []*druidv1alpha1.Etcd) error {
		if ready := etcds[0].Status.Ready; ready == nil || !*ready {
			return fmt.Errorf("conditions are %+v", etcds[0].Status.Conditions)
		}
		return nil
	})
	t.Logf("ready after %s", time.Since(start).Round(time.Millisecond))
	if err := l.client.Delete(t.Context(), etcd); !apierrors.IsForbidden(err) {
		t.Fatalf("deletion without confirmation: %v", err)
	}
	if err := l.client.Patch(t.Context(), etcd, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := l.client.Delete(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	await(t, l.client, func(etcds []*druidv1alpha1.Etcd) error {
		if len(etcds) > 0 {
			return fmt.Errorf("it still exists: %+v", etcds[0].Status)
		}
		return nil
	})
}
