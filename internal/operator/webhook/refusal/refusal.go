// Package refusal makes responses of webhooks that refuse requests with the status that the API server itself would respond with.
package refusal

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Invalid refuses an object of operator.gardener.cloud with errors, each with its path, or allows it if there are none.
func Invalid(kind, name string, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	return status(apierrors.NewInvalid(operatorv1alpha1.Kind(kind), name, errs))
}

// Forbidden refuses a request for an object with a reason.
func Forbidden(resource schema.GroupResource, name string, reason error) admission.Response {
	return status(apierrors.NewForbidden(resource, name, reason))
}

func status(err *apierrors.StatusError) admission.Response {
	result := err.Status()
	if result.Code == 0 {
		result.Code = http.StatusForbidden
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &result}}
}
