package controlplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

// deleteFormerAutoscalers deletes the VerticalPodAutoscalers that Deployments had under another name before. Two for one Deployment would both be
// ignored in part.
func (in Inputs) deleteFormerAutoscalers(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workload.AutoscalerKind)
	err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace), client.HasLabels{workload.AutoscalerLabel})
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list VerticalPodAutoscalers: %w", err)
	}
	for _, former := range workload.FormerAutoscalers(list.Items) {
		if err := in.Run.SeedAPI.Delete(ctx, &former); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete VerticalPodAutoscaler %q: %w", former.GetName(), err)
		}
	}
	return nil
}
