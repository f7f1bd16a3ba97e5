package seedmutator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/seedmutator"
	"gardener.cloud/gardener/test/builder"
)

func TestAdmit(t *testing.T) {
	const prefix = "name.seed.gardener.cloud/"
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed"}, Spec: seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "a"}},
	}
	elsewhere := managedSeed.DeepCopy()
	elsewhere.Namespace = "garden-dev"
	for name, tc := range map[string]struct {
		stored []client.Object
		want   map[string]string
	}{
		"a Seed": {want: map[string]string{"mine": "yes", prefix + "seed": "true"}},
		"one of a ManagedSeed": {
			[]client.Object{managedSeed, builder.Shoot("a", builder.In("garden"), builder.On("parent"))}, map[string]string{"mine": "yes", prefix + "seed": "true", prefix + "parent": "true"},
		},
		"its Shoot is not scheduled": {[]client.Object{managedSeed, builder.Shoot("a", builder.In("garden"))}, map[string]string{"mine": "yes", prefix + "seed": "true"}},
		"its Shoot does not exist":   {[]client.Object{managedSeed}, map[string]string{"mine": "yes", prefix + "seed": "true"}},
		"a ManagedSeed elsewhere":    {[]client.Object{elsewhere, builder.Shoot("a", builder.On("parent"))}, map[string]string{"mine": "yes", prefix + "seed": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed", Labels: map[string]string{"mine": "yes", prefix + "other": "true"}}}
			plugin := seedmutator.New()
			plugin.GardenCache = admissiontest.Reader(t, tc.stored...)
			if err := plugin.Admit(t.Context(), admissiontest.Request{Resource: "seeds", Object: seed}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, seed.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}
