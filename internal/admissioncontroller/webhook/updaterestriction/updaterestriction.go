// Package updaterestriction lets only gardenlets write what they publish for users, such as the CA certificates of Shoots. Administrators and
// extensions may not either.
//
// Source: concepts.txt, gardener-admission-controller, "Update Restriction".
package updaterestriction

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// users are components that write any object, and what each may do.
var users = map[string]admissionv1.Operation{
	"system:serviceaccount:kube-system:generic-garbage-collector": admissionv1.Delete,
	"system:serviceaccount:kube-system:gardener-internal":         admissionv1.Update, // labels what gets encrypted with another key
}

// Handler handles requests for objects with the label gardener.cloud/update-restriction.
type Handler struct{}

// Handle implements admission.Handler.
func (Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	if operation, ok := users[request.UserInfo.Username]; ok && operation == request.Operation {
		return admission.Allowed("the component may " + strings.ToLower(string(operation)))
	}
	for _, group := range []string{constants.SeedsGroup, constants.ShootsGroup} {
		if slices.Contains(request.UserInfo.Groups, group) {
			return admission.Allowed("gardenlets may")
		}
	}
	if request.Operation == admissionv1.Update && unchanged(request) {
		return admission.Allowed("it is only written again, with another key")
	}
	return admission.Denied(fmt.Sprintf("user %q may not %s %s with the label %s", request.UserInfo.Username, strings.ToLower(string(request.Operation)),
		request.Resource.Resource, constants.UpdateRestriction))
}

// unchanged reports whether an update changes nothing but what API servers maintain.
func unchanged(request admission.Request) bool {
	contents := make([]map[string]any, 2)
	for i, raw := range [][]byte{request.OldObject.Raw, request.Object.Raw} {
		if err := json.Unmarshal(raw, &contents[i]); err != nil {
			return false
		}
		if metadata, ok := contents[i]["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
			delete(metadata, "resourceVersion")
		}
	}
	return reflect.DeepEqual(contents[0], contents[1])
}
