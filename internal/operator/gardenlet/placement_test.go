package gardenlet

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/test/builder"
)

func TestPlaced(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded         string
		declared         string
		kubeconfig, seed bool
		runtime          release.Runs
		want             string
	}{
		"new":                                 {},
		"new, with a kubeconfig":              {kubeconfig: true, want: elsewhere},
		"a kubeconfig for one of the runtime": {recorded: inRuntime, kubeconfig: true, want: elsewhere},
		"deployed before":                     {recorded: inRuntime, seed: true, want: inRuntime},
		"deployed elsewhere, the Seed was deleted": {recorded: elsewhere, want: elsewhere},
		"not deployed by the operator":             {seed: true, want: elsewhere},
		"not deployed, another in the runtime":     {seed: true, runtime: release.Runs{Any: true, Seed: "b"}, want: elsewhere},
		"not deployed, an unknown in the runtime":  {seed: true, runtime: release.Runs{Any: true}, want: elsewhere},
		"declared, the runtime cluster was lost":   {declared: "a", seed: true, want: inRuntime},
		"another is declared":                      {declared: "b", seed: true, want: elsewhere},
		"declared, but recorded elsewhere":         {recorded: elsewhere, declared: "a", seed: true, want: elsewhere},
		"it runs in the runtime cluster":           {seed: true, runtime: release.Runs{Any: true, Seed: "a"}, want: inRuntime},
	} {
		t.Run(name, func(t *testing.T) {
			if got := placed("a", tc.recorded, tc.declared, tc.kubeconfig, tc.seed, tc.runtime); got != tc.want {
				t.Errorf("placed() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMayPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		declared string
		recorded map[string]string
		runtime  release.Runs
		want     string
	}{
		"the first":                         {},
		"the first, others elsewhere":       {recorded: map[string]string{"b": elsewhere}},
		"the same again":                    {recorded: map[string]string{"a": inRuntime}, runtime: release.Runs{Any: true, Seed: "a"}},
		"it runs, and was not recorded":     {runtime: release.Runs{Any: true, Seed: "a"}},
		"declared":                          {declared: "a"},
		"declared, instead of another":      {declared: "a", recorded: map[string]string{"b": inRuntime}},
		"declared, an unknown one runs":     {declared: "a", runtime: release.Runs{Any: true}},
		"declared, another one runs":        {declared: "a", runtime: release.Runs{Any: true, Seed: "b"}, want: `the gardenlet of seed "b" already runs`},
		"another is declared":               {declared: "b", recorded: map[string]string{"a": inRuntime}, want: `names gardenlet "b"`},
		"another was first":                 {recorded: map[string]string{"b": inRuntime}, want: `annotate the Garden with operator.gardener.cloud/runtime-cluster-gardenlet=a`},
		"another one runs":                  {runtime: release.Runs{Any: true, Seed: "b"}, want: `the gardenlet of seed "b" already runs`},
		"an unknown one runs":               {runtime: release.Runs{Any: true}, want: "does not say for which seed"},
		"an unknown one runs, recorded":     {recorded: map[string]string{"a": inRuntime}, runtime: release.Runs{Any: true}},
		"it had a kubeconfig":               {recorded: map[string]string{"a": elsewhere}, want: "ConfigMap garden/gardenlet-placements"},
		"it had a kubeconfig, but declared": {declared: "a", recorded: map[string]string{"a": elsewhere}, want: "belongs to another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			err := mayPlace("a", tc.declared, tc.recorded, tc.runtime)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("mayPlace() = %v, want %q", err, tc.want)
			}
		})
	}
}

// A Gardenlet whose reference was cleared and whose Seed was deleted is not deployed into the runtime cluster, also not after a restart.
func TestPlacementStays(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	runtimeCluster := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &reconciler{runtimeCache: runtimeCluster, runtimeAPI: runtimeCluster}
	garden := &operatorv1alpha1.Garden{}
	referring := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
	}
	named := func(name string) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) { g.Name = name }
	}
	if err := r.recordPlacement(t.Context(), builder.Gardenlet("a", referring), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.recordPlacement(t.Context(), builder.Gardenlet("a", named("manual")), &corev1beta1.Seed{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "manual"} {
		if err := r.recordPlacement(t.Context(), builder.Gardenlet("a", named(name)), nil); err != nil {
			t.Fatal(err)
		}
		if err := r.placeInRuntime(t.Context(), name, garden); err == nil {
			t.Errorf("gardenlet %q is deployed into the runtime cluster", name)
		}
	}
	if err := r.placeInRuntime(t.Context(), "first", garden); err != nil {
		t.Errorf("the first one is refused: %v", err)
	}
	if err := r.placeInRuntime(t.Context(), "second", garden); err == nil {
		t.Error("a second one is accepted")
	}
	garden.Annotations = map[string]string{"operator.gardener.cloud/runtime-cluster-gardenlet": "second"}
	if err := r.placeInRuntime(t.Context(), "second", garden); err != nil {
		t.Errorf("a second one that is declared is refused: %v", err)
	}
	got := &corev1.ConfigMap{}
	if err := runtimeCluster.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet-placements"}, got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "other-cluster", "manual": "other-cluster", "second": "runtime-cluster"}
	if diff := cmp.Diff(want, got.Data); diff != "" {
		t.Errorf("what is recorded (-want +got):\n%s", diff)
	}
}
