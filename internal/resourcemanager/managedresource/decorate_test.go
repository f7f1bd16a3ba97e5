package managedresource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPodsHaveTheLabelOfManagedObjects is about pods of extensions in a shoot: without the label, webhooks do not let them tolerate the taints of the nodes
// for system components.
func TestPodsHaveTheLabelOfManagedObjects(t *testing.T) {
	const managed = "resources.gardener.cloud/managed-by"
	for name, tc := range map[string]struct {
		manifest string
		path     []string
		want     map[string]string
	}{
		"a Deployment": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {labels: {own: a}}}}}`,
			[]string{"spec", "template"},
			map[string]string{"own": "a", "injected": "yes", managed: "gardener"},
		},
		"a DaemonSet whose pods have no labels": {
			`{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {}}}}`, []string{"spec", "template"}, map[string]string{"injected": "yes", managed: "gardener"},
		},
		"a CronJob": {
			`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {}}}}}`,
			[]string{"spec", "jobTemplate", "spec", "template"},
			map[string]string{"injected": "yes", managed: "gardener"},
		},
		// A claim with the label would not be deleted with the claims of users.
		"a claim of a StatefulSet": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {}, volumeClaimTemplates: [{metadata: {name: a}}]}}`, nil, map[string]string{"injected": "yes"},
		},
		"another kind with a template": {
			`{apiVersion: example.org/v1, kind: Deployment, spec: {template: {a: b}}}`, []string{"spec", "template"}, map[string]string{"injected": "yes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.manifest)
			decorate(object, map[string]string{"injected": "yes"}, "gardener", "s/mr")
			template, _, _ := unstructured.NestedMap(object.Object, tc.path...)
			if tc.path == nil {
				claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
				template, _ = claims[0].(map[string]any)
			}
			if diff := cmp.Diff(tc.want, (&unstructured.Unstructured{Object: template}).GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if object.GetLabels()[managed] != "gardener" {
				t.Errorf("the object has the labels %v", object.GetLabels())
			}
		})
	}
}
