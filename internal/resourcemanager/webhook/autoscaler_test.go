package webhook

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestUpdateInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  map[string]any
		want    string
		mutated bool
	}{
		"without a policy":    {nil, "InPlaceOrRecreate", true},
		"without a mode":      {map[string]any{"minReplicas": int64(1)}, "InPlaceOrRecreate", true},
		"Auto":                {map[string]any{"updateMode": "Auto"}, "InPlaceOrRecreate", true},
		"Recreate":            {map[string]any{"updateMode": "Recreate", "minReplicas": int64(1)}, "InPlaceOrRecreate", true},
		"InPlaceOrRecreate":   {map[string]any{"updateMode": "InPlaceOrRecreate"}, "InPlaceOrRecreate", false},
		"only for new pods":   {map[string]any{"updateMode": "Initial"}, "Initial", false},
		"only recommendation": {map[string]any{"updateMode": "Off"}, "Off", false},
	} {
		t.Run(name, func(t *testing.T) {
			autoscaler := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": map[string]any{"name": "a", "labels": map[string]any{"own": "b"}},
				"spec": map[string]any{"targetRef": map[string]any{"kind": "Deployment", "name": "a"}},
			}}
			if tc.policy != nil {
				autoscaler.Object["spec"].(map[string]any)["updatePolicy"] = tc.policy
			}
			got := send(t, updateInPlace, "VerticalPodAutoscaler", autoscaler)
			mode, _, err := unstructured.NestedString(got.Object, "spec", "updatePolicy", "updateMode")
			if err != nil || mode != tc.want {
				t.Errorf("mode %q, want %q: %v", mode, tc.want, err)
			}
			if minimum, _, _ := unstructured.NestedInt64(got.Object, "spec", "updatePolicy", "minReplicas"); tc.policy["minReplicas"] != nil && minimum != 1 {
				t.Errorf("minReplicas %d, want 1", minimum)
			}
			labels := got.GetLabels()
			if mutated := labels["vpa-in-place-updates.resources.gardener.cloud/mutated"] == "true"; mutated != tc.mutated || labels["own"] != "b" {
				t.Errorf("labels %v, want mutated %t", labels, tc.mutated)
			}
		})
	}
}
