// Package kubeconfigsecret refuses Secrets with a kubeconfig that runs programs, reads files or impersonates: components of Gardener could read it
// with their own rights.
//
// Source: concepts.txt, gardener-admission-controller, "Kubeconfig Secret Validator".
package kubeconfigsecret

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/rejections"
	"gardener.cloud/gardener/internal/validation/kubeconfig"
)

const key = "kubeconfig"

// Handler handles requests for Secrets.
type Handler struct {
	Decoder  admission.Decoder
	Rejected *rejections.Counter
}

// Handle implements admission.Handler.
func (h *Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	secret := &corev1.Secret{}
	if err := h.Decoder.Decode(request, secret); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Secret: %w", err))
	}
	data, ok := secret.Data[key]
	if !ok {
		return admission.Allowed("it has no kubeconfig")
	}
	errs := kubeconfig.SelfContained(data, field.NewPath("data", key))
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	h.Rejected.Count(request, rejections.RejectedKubeconfig)
	code := http.StatusUnprocessableEntity
	if errs[0].Type == field.ErrorTypeTypeInvalid {
		code = http.StatusBadRequest
	}
	return admission.Errored(int32(code), kubeconfig.Summary(errs))
}
