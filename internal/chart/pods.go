package chart

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ChangePods changes the spec of the pods of a workload. Other objects are not changed.
func ChangePods(object *unstructured.Unstructured, change func(*corev1.PodSpec)) error {
	path := PodSpecPath(object.GetKind())
	if path == nil {
		return nil
	}
	raw, found, err := unstructured.NestedMap(object.Object, path...)
	if err != nil || !found {
		return err
	}
	spec := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, spec); err != nil {
		return fmt.Errorf("pods of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	change(spec)
	changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(object.Object, changed, path...)
}

// PodSpecPath is where a kind has the spec of its pods. Nil if it has none.
func PodSpecPath(kind string) []string {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
		return []string{"spec", "template", "spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "Pod":
		return []string{"spec"}
	}
	return nil
}
