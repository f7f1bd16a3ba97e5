package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

const plainConfig = `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","resources":{"capacity":{"shoots":"250"}}}`

// sameConfig compares configurations; what the type always writes, such as empty strings, does not matter.
func sameConfig(t *testing.T, raw *runtime.RawExtension, want string) {
	t.Helper()
	var got, expected map[string]any
	if err := json.Unmarshal(raw.Raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	for key, value := range got {
		if object, ok := value.(map[string]any); ok && len(object) == 0 || value == "" {
			delete(got, key)
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestDefaultManagedSeed(t *testing.T) {
	m := &v1alpha1.ManagedSeed{}
	v1alpha1.DefaultManagedSeed(m)
	gardenlet := m.Spec.Gardenlet
	sameConfig(t, gardenlet.Config, plainConfig)
	gardenlet.Config = nil
	want := v1alpha1.GardenletConfig{
		Deployment: &v1alpha1.GardenletDeployment{
			ReplicaCount: new(int32(2)), RevisionHistoryLimit: new(int32(2)), EnableHealthProbes: new(true),
			Image: &v1alpha1.Image{PullPolicy: new(corev1.PullIfNotPresent)},
		},
		Bootstrap:       new(v1alpha1.BootstrapToken),
		MergeWithParent: new(true),
	}
	if diff := cmp.Diff(want, gardenlet); diff != "" {
		t.Errorf("gardenlet (-want +got):\n%s", diff)
	}

	// Once more changes nothing, and neither does it change what is set.
	again := m.DeepCopy()
	again.Spec.Gardenlet.MergeWithParent = new(false)
	before := again.DeepCopy()
	v1alpha1.DefaultManagedSeed(again)
	if diff := cmp.Diff(before, again); diff != "" {
		t.Errorf("defaults replaced something (-before +after):\n%s", diff)
	}
}

func TestDefaultDeploymentImage(t *testing.T) {
	for tag, want := range map[string]corev1.PullPolicy{"latest": corev1.PullAlways, "v1.2.3": corev1.PullIfNotPresent} {
		m := &v1alpha1.ManagedSeed{}
		m.Spec.Gardenlet.Deployment = &v1alpha1.GardenletDeployment{Image: &v1alpha1.Image{Tag: &tag}}
		v1alpha1.DefaultManagedSeed(m)
		if got := *m.Spec.Gardenlet.Deployment.Image.PullPolicy; got != want {
			t.Errorf("image %s is pulled %s, want %s", tag, got, want)
		}
	}
}

func TestDefaultGardenletConfig(t *testing.T) {
	for name, tc := range map[string]struct{ given, want string }{
		"nothing is given": {given: ``, want: plainConfig},
		"a capacity is given": {
			given: `{"resources":{"capacity":{"shoots":"7"}}}`,
			want:  `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","resources":{"capacity":{"shoots":"7"}}}`,
		},
		"another capacity is given": {
			given: `{"resources":{"capacity":{"cpu":"7"}}}`,
			want:  `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","resources":{"capacity":{"cpu":"7","shoots":"250"}}}`,
		},
		"an unknown setting is dropped":  {given: `{"resource":{"a":"b"},"Resources":"many"}`, want: plainConfig},
		"another kind is left alone":     {given: `{"apiVersion":"v1","kind":"Secret"}`, want: `{"apiVersion":"v1","kind":"Secret"}`},
		"what is no configuration stays": {given: `{"resources":"many"}`, want: `{"resources":"many"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.Gardenlet{}
			g.Spec.Config = &runtime.RawExtension{Raw: []byte(tc.given)}
			v1alpha1.DefaultGardenlet(g)
			sameConfig(t, g.Spec.Config, tc.want)
		})
	}
}

func TestDefaultManagedSeedSet(t *testing.T) {
	s := &v1alpha1.ManagedSeedSet{}
	v1alpha1.DefaultManagedSeedSet(s)
	want := v1alpha1.ManagedSeedSetSpec{
		Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(10)),
		UpdateStrategy: &v1alpha1.UpdateStrategy{Type: new(v1alpha1.RollingUpdateStrategyType)},
	}
	if diff := cmp.Diff(want, s.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}

	s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdateStrategy{}
	v1alpha1.DefaultManagedSeedSet(s)
	if got := s.Spec.UpdateStrategy.RollingUpdate.Partition; got == nil || *got != 0 {
		t.Errorf("partition is %v, want 0", got)
	}
}
