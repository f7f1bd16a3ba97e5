package webhook

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Refused is the response for an error. Errors of fields are those of the user, with status 422, and so is the status of an error of the API. All others are
// errors of the webhook, with status 500.
func Refused(request admission.Request, err error) admission.Response {
	status := apierrors.APIStatus(nil)
	if list := fieldErrors(err); len(list) > 0 {
		status = apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name, list)
	} else if !errors.As(err, &status) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	response := admission.Denied(err.Error())
	response.Result = new(status.Status())
	return response
}

// fieldErrors returns the errors of fields, if there are no others.
func fieldErrors(err error) field.ErrorList {
	var aggregate utilerrors.Aggregate
	all := []error{err}
	if errors.As(err, &aggregate) {
		all = aggregate.Errors()
	}
	var list field.ErrorList
	for _, one := range all {
		var of *field.Error
		if !errors.As(one, &of) {
			return nil
		}
		list = append(list, of)
	}
	return list
}
