package resources_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/validation/resources"
)

func TestManagedResource(t *testing.T) {
	star := resourcesv1alpha1.AllResourceClass
	for name, tc := range map[string]struct {
		spec resourcesv1alpha1.ManagedResourceSpec
		want []string
	}{
		"nothing to apply is fine": {},
		"two Secrets":              {spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}}},
		"everything wrong": {
			spec: resourcesv1alpha1.ManagedResourceSpec{
				Class:        &star,
				SecretRefs:   []corev1.LocalObjectReference{{Name: "a"}, {Name: "a"}, {}},
				InjectLabels: map[string]string{"a b": "c"},
				Equivalences: [][]metav1.GroupKind{{{Group: "apps", Kind: "Deployment"}, {Group: "extensions"}}},
			},
			want: []string{"spec.class", "spec.secretRefs[1].name", "spec.secretRefs[2].name", "spec.injectLabels", "spec.equivalences[0][1].kind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "1"}, Spec: tc.spec}
			var got []string
			for _, err := range resources.ValidateManagedResourceUpdate(mr, mr) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
