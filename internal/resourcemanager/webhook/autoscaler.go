package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

// updateInPlace lets a VerticalPodAutoscaler that evicts pods try first to change the requests of the running ones.
func updateInPlace(_ context.Context, request admission.Request) admission.Response {
	autoscaler := &unstructured.Unstructured{}
	return change(request, autoscaler, func() error {
		mode, _, err := unstructured.NestedString(autoscaler.Object, "spec", "updatePolicy", "updateMode")
		if err != nil {
			return &invalidError{err}
		}
		switch workload.UpdateMode(mode) {
		case "", workload.Auto, workload.Recreate:
		default:
			return nil
		}
		if err := unstructured.SetNestedField(autoscaler.Object, string(workload.InPlaceOrRecreate), "spec", "updatePolicy", "updateMode"); err != nil {
			return &invalidError{err}
		}
		labels := autoscaler.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[resourcesv1alpha1.VPAInPlaceUpdatesMutated] = "true"
		autoscaler.SetLabels(labels)
		return nil
	})
}
