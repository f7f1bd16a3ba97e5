package managedresource

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// TestIgnoredWhereTheyWereApplied is about objects with the mode Ignore whose manifests do not say in which namespace they are. If they were not found in
// the status, they would be deleted.
func TestIgnoredWhereTheyWereApplied(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, meta.RESTScopeRoot)
	for name, tc := range map[string]struct {
		kind, namespace string
		before          string
		want            string
	}{
		"without a namespace":             {kind: "ConfigMap", want: "default"},
		"with a namespace":                {kind: "ConfigMap", namespace: "n", want: "n"},
		"cluster-scoped, with one":        {kind: "PersistentVolume", namespace: "n"},
		"of a kind that is not there now": {kind: "Thing", before: "default", want: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "manifests"}, Data: map[string][]byte{"objects.yaml": []byte(
				"{apiVersion: v1, kind: " + tc.kind + ", metadata: {name: a, namespace: '" + tc.namespace + "', annotations: {resources.gardener.cloud/mode: Ignore}}}",
			)}}
			c := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(secret).Build()
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "mr"}}
			mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "manifests"}}
			mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: tc.kind, Namespace: tc.before, Name: "a"}}}
			found, err := (&reconciler{secrets: c, target: &target{live: c}}).manifests(t.Context(), mr)
			if err != nil {
				t.Fatal(err)
			}
			if want := (objectKey{schema.GroupKind{Kind: tc.kind}, types.NamespacedName{Namespace: tc.want, Name: "a"}}); !found.ignored[want] {
				t.Errorf("ignored are %v, want %v", found.ignored, want)
			}
		})
	}
}
