// Package extension has the webhooks for Extensions of gardener-operator.
//
// Defaulter sets what is absent. Validator refuses Extensions that cannot work, and the deletion of those that are still required, or of their
// resources. It reads what requires them: the Garden, Extensions, and objects of class garden. Source: concepts.txt, gardener-operator, "Webhooks".
package extension

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension/requiredruntime"
	"gardener.cloud/gardener/internal/operator/webhook/defaulting"
	"gardener.cloud/gardener/internal/operator/webhook/refusal"
	operatorvalidation "gardener.cloud/gardener/internal/validation/operator"
)

// Defaulter handles requests for Extensions.
type Defaulter struct {
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Defaulter) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	extension := &operatorv1alpha1.Extension{}
	if err := h.Decoder.Decode(request, extension); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Extension: %w", err))
	}
	if extension.DeletionTimestamp != nil {
		return admission.Allowed("")
	}
	return defaulting.Patch(request.Object.Raw, extension, operatorv1alpha1.DefaultExtension)
}

// Validator handles requests for Extensions.
type Validator struct {
	// Reader reads the runtime cluster itself.
	Reader  client.Reader
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	extension, old := &operatorv1alpha1.Extension{}, &operatorv1alpha1.Extension{}
	var err error
	if request.Operation != admissionv1.Delete {
		err = h.Decoder.Decode(request, extension)
	}
	if request.Operation != admissionv1.Create {
		err = errors.Join(err, h.Decoder.DecodeRaw(request.OldObject, old))
	}
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Extension: %w", err))
	}
	var errs field.ErrorList
	switch request.Operation {
	case admissionv1.Create:
		errs = operatorvalidation.ValidateExtension(extension)
	case admissionv1.Update:
		if extension.DeletionTimestamp == nil { // nothing must keep its finalizers from being removed
			errs = operatorvalidation.ValidateExtensionUpdate(extension, old)
			removed, err := requiredruntime.RequiredOf(ctx, h.Reader, old, extension)
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read what requires the Extension: %w", err))
			}
			for _, resource := range removed {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "resources"),
					resource+" cannot be removed: the Garden requires it, or an object of class garden, and no other Extension has it"))
			}
		}
	case admissionv1.Delete:
		if err := required(old); err != nil && old.DeletionTimestamp == nil {
			return refusal.Forbidden(operatorv1alpha1.Resource("extensions"), old.Name, err)
		}
	case admissionv1.Connect:
	}
	return refusal.Invalid("Extension", extension.Name, errs)
}

// required returns what requires an Extension, or nil.
func required(extension *operatorv1alpha1.Extension) error {
	for _, by := range []struct {
		condition corev1beta1.ConditionType
		where     string
	}{
		{operatorv1alpha1.ExtensionRequiredRuntime, "the runtime cluster"},
		{operatorv1alpha1.ExtensionRequiredVirtual, "seeds of the virtual garden"},
	} {
		if c := kube.Condition(extension.Status.Conditions, by.condition); c != nil && c.Status == corev1beta1.ConditionTrue {
			return fmt.Errorf("it is required in %s: %s", by.where, c.Message)
		}
	}
	return nil
}
