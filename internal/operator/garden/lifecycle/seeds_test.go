package lifecycle

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestSeedOperations(t *testing.T) {
	for name, tc := range map[string]struct {
		before phases
		want   []string
	}{
		"no rotation":           {},
		"CAs":                   {before: phases{CA: preparing}, want: []string{"renew-kubeconfig"}},
		"service account key":   {before: phases{ServiceAccountKey: preparing}, want: []string{"renew-garden-access-secrets"}},
		"workload identity key": {before: phases{WorkloadIdentityKey: preparing}, want: []string{"renew-workload-identity-tokens"}},
		"encryption key":        {before: phases{EncryptionKey: preparing}},
		"all": {
			before: phases{CA: preparing, ServiceAccountKey: preparing, WorkloadIdentityKey: preparing},
			want:   []string{"renew-garden-access-secrets", "renew-workload-identity-tokens", "renew-kubeconfig"},
		},
		"prepared":   {before: phases{CA: prepared, ServiceAccountKey: prepared, WorkloadIdentityKey: prepared}},
		"completing": {before: phases{CA: completing, ServiceAccountKey: completing, WorkloadIdentityKey: completing}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := newLandscape(t).observe(t.Context(), tc.before.garden(""))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.seedOperations()); diff != "" {
				t.Errorf("seedOperations() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOperateSeeds(t *testing.T) {
	const operation, requested = "renew-kubeconfig", "operator.gardener.cloud/requested-renew-kubeconfig"
	const this, former = "2026-01-02T03:04:05Z", "2025-01-02T03:04:05Z"
	seed := func(name string, annotations map[string]string) *corev1beta1.Seed {
		return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	for name, tc := range map[string]struct {
		seeds []*corev1beta1.Seed
		want  map[string]string // operations at the end, of gardenlets that do nothing
		errs  []string
	}{
		"no Seeds":                      {want: map[string]string{}},
		"a Seed without operations":     {seeds: []*corev1beta1.Seed{seed("a", nil)}, want: map[string]string{"a": operation}, errs: []string{"gardenlets of 1 Seeds have not done operation renew-kubeconfig: a"}},
		"a Seed that has begun it":      {seeds: []*corev1beta1.Seed{seed("a", map[string]string{requested: this})}, want: map[string]string{"a": ""}},
		"a Seed of the rotation before": {seeds: []*corev1beta1.Seed{seed("a", map[string]string{requested: former})}, want: map[string]string{"a": operation}, errs: []string{"have not done"}},
		"a reconciliation is overwritten": {
			seeds: []*corev1beta1.Seed{seed("a", map[string]string{"gardener.cloud/operation": "reconcile"})},
			want:  map[string]string{"a": operation}, errs: []string{"have not done"},
		},
		"another operation is not lost, and holds up no other Seed": {
			seeds: []*corev1beta1.Seed{seed("a", map[string]string{"gardener.cloud/operation": "renew-garden-access-secrets"}), seed("b", nil)},
			want:  map[string]string{"a": "renew-garden-access-secrets", "b": operation},
			errs:  []string{"gardenlets of 1 Seeds have not begun another operation", "a (renew-garden-access-secrets)"},
		},
		"the same operation of a user": { // it may be for the former credentials
			seeds: []*corev1beta1.Seed{seed("a", map[string]string{"gardener.cloud/operation": operation})},
			want:  map[string]string{"a": operation}, errs: []string{"a (renew-kubeconfig)"},
		},
		"a Seed that is lost": {
			seeds: []*corev1beta1.Seed{seed("lost", nil), seed("b", map[string]string{requested: this})},
			want:  map[string]string{"lost": "", "b": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t)
			garden := rotating(plainGarden(), preparing)
			metav1.SetMetaDataAnnotation(&garden.ObjectMeta, "operator.gardener.cloud/ignored-seeds", "lost, other")
			s, err := l.observe(t.Context(), garden)
			if err != nil {
				t.Fatal(err)
			}
			s.run.Target = stage.NewConnectedTarget(l.virtual, stagetest.Discover)
			create(t, l.virtual, &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "self-hosted-shoot-a"}})
			for _, object := range tc.seeds {
				create(t, l.virtual, object)
			}
			err = stagetest.UntilIdle(t, func(ctx context.Context) error { return s.operateSeeds(ctx, operation) })
			if (err != nil) != (len(tc.errs) > 0) {
				t.Errorf("error %v, want %q", err, tc.errs)
			}
			for _, want := range tc.errs {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
			list := &corev1beta1.SeedList{}
			if err := l.virtual.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, seed := range list.Items {
				got[seed.Name] = seed.Annotations["gardener.cloud/operation"]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			gardenlet := &seedmanagementv1alpha1.Gardenlet{}
			if err := l.virtual.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "self-hosted-shoot-a"}, gardenlet); err != nil {
				t.Fatal(err)
			}
			if got := gardenlet.Annotations["gardener.cloud/operation"]; got != operation && len(tc.errs) == 0 {
				t.Errorf("the gardenlet of a self-hosted shoot has operation %q", got)
			}
		})
	}
}
