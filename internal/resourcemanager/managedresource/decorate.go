package managedresource

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// description is the annotation of managed objects that warns users not to change them.
const description = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\nAny modifications are discarded and the resource is returned to the original state."

// decorate adds the metadata of managed objects: injected labels, in templates too, the label managed-by, in templates of pods too, and the annotations
// with origin and description.
func decorate(object *unstructured.Unstructured, inject map[string]string, managedBy, origin string) {
	// A manifest may have been read from another cluster.
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if len(inject) > 0 {
		addLabels(object.Object, inject)
		for _, path := range [][]string{
			{"spec", "template"}, {"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"},
		} {
			if template, ok, err := unstructured.NestedFieldNoCopy(object.Object, path...); ok && err == nil {
				if t, ok := template.(map[string]any); ok {
					addLabels(t, inject)
				}
			}
		}
		claims, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "volumeClaimTemplates")
		if list, ok := claims.([]any); ok {
			for _, claim := range list {
				if c, ok := claim.(map[string]any); ok {
					addLabels(c, inject)
				}
			}
		}
	}
	managed := map[string]string{resourcesv1alpha1.ManagedBy: managedBy}
	object.SetLabels(with(object.GetLabels(), managed))
	if path := podTemplate(object.GroupVersionKind().GroupKind()); path != nil {
		// Webhooks that place system components on nodes select pods by it, and so does the collection of logs.
		if template, ok, err := unstructured.NestedFieldNoCopy(object.Object, path...); ok && err == nil {
			if t, ok := template.(map[string]any); ok {
				addLabels(t, managed)
			}
		}
	}
	object.SetAnnotations(with(object.GetAnnotations(), map[string]string{
		resourcesv1alpha1.OriginAnnotation: origin, resourcesv1alpha1.DescriptionAnnotation: description,
	}))
}

// podTemplate is where objects of a kind have a template of pods, or nil. Templates of other kinds may be anything.
func podTemplate(kind schema.GroupKind) []string {
	switch {
	case isWorkload(kind), kind == schema.GroupKind{Group: "batch", Kind: "Job"}:
		return []string{"spec", "template"}
	case kind == schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return nil
}

// addLabels adds labels to something that has metadata.
func addLabels(object map[string]any, labels map[string]string) {
	u := unstructured.Unstructured{Object: object}
	u.SetLabels(with(u.GetLabels(), labels))
}

func with(have, more map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
