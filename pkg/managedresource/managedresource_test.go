package managedresource

import (
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestObjects(t *testing.T) {
	v := Values{Namespace: "shoot--a--b", Name: "shoot-core-system", Class: "seed", InjectLabels: map[string]string{"a": "b"}, KeepObjects: true}
	// Keys like these have no order of their own in YAML.
	annotations := map[string]string{"configmap-60e2eecf": "1", "configmap-6c07c41e": "2", "configmap-2c15e025": "3", "configmap-8df94eec": "4"}
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "one", Annotations: annotations}}
	two := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "two"}}
	objects, err := Objects(clientgoscheme.Scheme, v, one, two)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := Objects(clientgoscheme.Scheme, v, two, one)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(objects, again); diff != "" {
			t.Fatalf("the same objects give something else (-first +again):\n%s", diff)
		}
	}
	secret, mr := objects[0].(*corev1.Secret), objects[1].(*resourcesv1alpha1.ManagedResource)
	want := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, Annotations: mr.Annotations},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: &v.Class, SecretRefs: []corev1.LocalObjectReference{{Name: secret.Name}}, InjectLabels: v.InjectLabels, KeepObjects: &v.KeepObjects,
		},
	}
	if diff := cmp.Diff(want, mr); diff != "" {
		t.Errorf("ManagedResource (-want +got):\n%s", diff)
	}
	if len(mr.Annotations) != 1 {
		t.Errorf("the garbage collector sees %d references", len(mr.Annotations))
	}
	text, err := io.ReadAll(brotli.NewReader(strings.NewReader(string(secret.Data[resourcesv1alpha1.CompressedDataKey]))))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "---\n"); n != 2 || strings.Contains(string(text), "creationTimestamp") {
		t.Errorf("manifests are:\n%s", text)
	}
}

func TestUnpack(t *testing.T) {
	objects, err := Objects(clientgoscheme.Scheme, Values{Name: "a"}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "---\n{"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unpack(objects[0].(*corev1.Secret))
	if err != nil || len(got) != 1 || got[0].GetKind() != "ConfigMap" || got[0].GetName() != "one" {
		t.Errorf("Unpack() = %v, %v", got, err)
	}
	if _, err := Unpack(&corev1.Secret{Data: map[string][]byte{resourcesv1alpha1.CompressedDataKey: []byte("x")}}); err == nil {
		t.Error("what is not compressed is unpacked")
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := Objects(clientgoscheme.Scheme, Values{Name: "a"}, client.Object(&resourcesv1alpha1.ManagedResource{})); err == nil {
		t.Error("an unknown kind is packed")
	}
}
