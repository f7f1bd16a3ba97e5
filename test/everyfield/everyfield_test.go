package everyfield

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Every leaf has a path of its own, and can be set.
func TestRun(t *testing.T) {
	var paths []string
	walk(reflect.TypeFor[corev1beta1.Worker](), "", func(v reflect.Value) reflect.Value { return v }, func(path string, _ reflect.Type, _ place) {
		if slices.Contains(paths, path) {
			t.Errorf("%s twice", path)
		}
		paths = append(paths, path)
	})
	for _, want := range []string{"name", "labels", "maxSurge", "zones[]", "dataVolumes[].encrypted", "kubernetes.kubelet.featureGates", "kubernetes.kubelet.evictionHard.memoryAvailable"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is missing", want)
		}
	}
	Run(t, Suite[corev1beta1.KubeletConfig]{Render: func(t *testing.T, config *corev1beta1.KubeletConfig) string {
		config.MaxPods, config.EvictionHard = nil, nil
		data, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}, Exceptions: map[string]string{"maxPods": "left out", "evictionHard": "left out, with all below"}})
}
