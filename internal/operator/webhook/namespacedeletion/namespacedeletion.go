// Package namespacedeletion refuses to delete the namespace "garden" of the runtime cluster while a Garden exists.
//
// Reads Gardens. Source: concepts.txt, gardener-operator, "Webhooks".
package namespacedeletion

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/webhook/refusal"
)

// Handler handles requests for Namespaces.
type Handler struct {
	// Reader reads the runtime cluster itself: deletions are rare, and a cache may not have a new Garden yet.
	Reader client.Reader
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Delete || request.Name != constants.GardenNamespace {
		return admission.Allowed("it is not the deletion of the namespace of the garden")
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := h.Reader.List(ctx, gardens, client.Limit(1)); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Gardens: %w", err))
	}
	if len(gardens.Items) > 0 {
		return refusal.Forbidden(corev1.Resource("namespaces"), request.Name, fmt.Errorf("the Garden %q exists; delete it first", gardens.Items[0].Name))
	}
	return admission.Allowed("there is no Garden")
}
