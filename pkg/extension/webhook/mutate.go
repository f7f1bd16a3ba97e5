package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Mutate returns the response with what a function changes. Objects that are being deleted stay as they are. So do fields that this version of the kind does
// not have, but for those in lists, such as that of containers, which are replaced if they change.
func Mutate[T client.Object](request admission.Request, object T, change func(T) error) admission.Response {
	return mutate(request, object, change, false)
}

// MutateDeleted is Mutate that also changes objects that are being deleted.
func MutateDeleted[T client.Object](request admission.Request, object T, change func(T) error) admission.Response {
	return mutate(request, object, change, true)
}

func mutate[T client.Object](request admission.Request, object T, change func(T) error, deleted bool) admission.Response {
	if err := json.Unmarshal(request.Object.Raw, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode %s: %w", request.Kind.Kind, err))
	}
	if !deleted && object.GetDeletionTimestamp() != nil {
		return admission.Allowed("it is being deleted")
	}
	before, err := json.Marshal(object)
	if err == nil {
		err = change(object)
	}
	if err != nil {
		return Refused(request, err)
	}
	after, err := json.Marshal(object)
	var difference, changed []byte
	if err == nil {
		difference, err = jsonpatch.CreateMergePatch(before, after)
	}
	if err == nil {
		changed, err = jsonpatch.MergePatch(request.Object.Raw, difference)
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("compute the change of %s: %w", request.Kind.Kind, err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}
