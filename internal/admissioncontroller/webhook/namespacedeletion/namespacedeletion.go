// Package namespacedeletion refuses to delete the namespace of a Project otherwise than by deleting the Project, and as long as there are Shoots.
//
// Reads the Project and Shoots. Source: concepts.txt, gardener-admission-controller, "Namespace Validator".
package namespacedeletion

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Handler handles requests for Namespaces.
type Handler struct {
	// Reader reads the garden itself: deletions are rare, and a cache may not know yet that the Project is deleted.
	Reader  client.Reader
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Delete {
		return admission.Allowed("only deletions are checked")
	}
	namespace := &corev1.Namespace{}
	if err := h.Decoder.DecodeRaw(request.OldObject, namespace); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Namespace: %w", err))
	}
	name := namespace.Labels[constants.ProjectName]
	if name == "" || namespace.DeletionTimestamp != nil {
		return admission.Allowed("it belongs to no Project, or is deleted already")
	}
	project := &corev1beta1.Project{}
	if err := h.Reader.Get(ctx, client.ObjectKey{Name: name}, project); apierrors.IsNotFound(err) {
		return admission.Allowed("its Project does not exist")
	} else if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read Project %q: %w", name, err))
	}
	if project.DeletionTimestamp == nil {
		return admission.Denied(fmt.Sprintf("delete Project %q, which deletes its Namespace %q", name, namespace.Name))
	}
	shoots := &metav1.PartialObjectMetadataList{}
	shoots.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	if err := h.Reader.List(ctx, shoots, client.InNamespace(namespace.Name), client.Limit(1)); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Shoots: %w", err))
	}
	if len(shoots.Items) > 0 {
		return admission.Denied(fmt.Sprintf("Namespace %q still has Shoots, such as %q", namespace.Name, shoots.Items[0].Name))
	}
	return admission.Allowed("its Project is deleted")
}
