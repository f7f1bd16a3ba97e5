// Package garden has the webhooks for Gardens of gardener-operator.
//
// Defaulter sets what is absent. Validator refuses Gardens that cannot work, a second one, operations that are not possible at the time, and
// deletions without a confirmation, or while there are Seeds or Shoots; it warns of what has no effect. Reads Gardens, Extensions, pods of
// kube-apiserver and the access to the virtual garden in the runtime cluster, and Seeds and Shoots in the virtual garden. Source: concepts.txt, gardener-operator, "Webhooks".
package garden

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/webhook/defaulting"
)

// Defaulter handles requests for Gardens.
type Defaulter struct {
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Defaulter) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	garden := &operatorv1alpha1.Garden{}
	if err := h.Decoder.Decode(request, garden); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Garden: %w", err))
	}
	if garden.DeletionTimestamp != nil {
		return admission.Allowed("") // only its finalizers matter
	}
	return defaulting.Patch(request.Object.Raw, garden, operatorv1alpha1.DefaultGarden)
}
