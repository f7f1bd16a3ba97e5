package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// protect denies deletions that are not confirmed. For a deletion of a collection, the API server calls the webhook for each object.
func protect(_ context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Delete {
		return admission.Allowed("")
	}
	object := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.OldObject.Raw, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the object to be deleted: %w", err))
	}
	if request.Kind.Kind == "CustomResourceDefinition" && object.Labels[constants.DeletionProtected] != "true" {
		return admission.Allowed("the object is not protected")
	}
	if object.Annotations[constants.ConfirmationDeletion] != "true" {
		return admission.Denied(fmt.Sprintf("annotation %s must be true to delete %s %q", constants.ConfirmationDeletion, request.Kind.Kind, object.Name))
	}
	return admission.Allowed("the deletion is confirmed")
}
