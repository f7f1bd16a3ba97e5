package upgrade

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

func TestCreateOwn(t *testing.T) {
	text := func(name string) string {
		return "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: Gardenlet\nmetadata: {namespace: garden, name: " + name + "}\n"
	}
	for name, tc := range map[string]struct {
		text    string // of the ConfigMap, which does not exist if it is empty
		created bool
		want    string
	}{
		"installed by gardener-operator": {},
		"installed by hand":              {text: text("a"), created: true},
		"of another seed":                {text: text("b"), want: `must have the name "a"`},
		"that cannot be read":            {text: "spec: {typo: 1}", want: "typo"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := seedmanagementv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			garden, seed := fake.NewClientBuilder().WithScheme(scheme).Build(), fake.NewClientBuilder().Build()
			if tc.text != "" {
				config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: ownConfigMap}, Data: map[string]string{ownConfigMapKey: tc.text}}
				if err := seed.Create(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // also after a restart
				if err := createOwn(t.Context(), garden, seed, "a"); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("createOwn() = %v, want %q", err, tc.want)
				}
			}
			err := garden.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "a"}, &seedmanagementv1alpha1.Gardenlet{})
			if created := err == nil; created != tc.created {
				t.Errorf("the Gardenlet: %v, want it %t", err, tc.created)
			}
		})
	}
}
