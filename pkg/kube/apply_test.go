package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestManifest(t *testing.T) {
	typed := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}, Status: corev1.NodeStatus{Phase: corev1.NodeRunning}}
	typed.Name = "a"
	untyped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec": map[string]any{"unschedulable": true}, "status": map[string]any{"phase": "Running"},
	}}
	want := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"unschedulable": true}}
	for _, object := range []client.Object{typed, untyped} {
		before := object.DeepCopyObject()
		manifest, err := Manifest(scheme.Scheme, object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, manifest.Object); diff != "" {
			t.Errorf("%T: %s", object, diff)
		}
		if diff := cmp.Diff(before, object); diff != "" {
			t.Errorf("%T was changed: %s", object, diff)
		}
	}
}
