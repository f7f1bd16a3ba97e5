package garden

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
	"gardener.cloud/gardener/internal/operator/webhook/refusal"
	operatorvalidation "gardener.cloud/gardener/internal/validation/operator"
)

// ownFinalizers are those that only controllers add. A Garden that is created with them could not be deleted before it was ever reconciled.
var ownFinalizers = []string{operatorv1alpha1.FinalizerName, constants.FinalizerReferenceProtection}

// Validator handles requests for Gardens.
type Validator struct {
	// Reader reads the runtime cluster itself: a cache may not have another Garden yet that was just created.
	Reader  client.Reader
	Decoder admission.Decoder
	// Images are those of all components.
	Images imagevector.Vector
	// Remaining returns which Seeds and Shoots the virtual garden has. The error is virtualcluster.ErrNoSecret if there is no virtual garden.
	Remaining func(context.Context) ([]string, error)
}

// Handle implements admission.Handler.
func (h *Validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	switch request.Operation {
	case admissionv1.Create:
		garden := &operatorv1alpha1.Garden{}
		if err := h.Decoder.Decode(request, garden); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Garden: %w", err))
		}
		return h.create(ctx, garden)
	case admissionv1.Update:
		garden, old := &operatorv1alpha1.Garden{}, &operatorv1alpha1.Garden{}
		if err := errors.Join(h.Decoder.Decode(request, garden), h.Decoder.DecodeRaw(request.OldObject, old)); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Garden: %w", err))
		}
		return h.update(ctx, garden, old)
	case admissionv1.Delete:
		garden := &operatorv1alpha1.Garden{}
		if err := h.Decoder.DecodeRaw(request.OldObject, garden); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Garden: %w", err))
		}
		response := h.delete(ctx, garden)
		if response.Allowed && garden.DeletionTimestamp == nil {
			response = response.WithWarnings(operatorvalidation.GardenDeletionWarnings(garden)...)
		}
		return response
	case admissionv1.Connect:
	}
	return admission.Allowed("")
}

func (h *Validator) create(ctx context.Context, garden *operatorv1alpha1.Garden) admission.Response {
	gardens := &operatorv1alpha1.GardenList{}
	if err := h.Reader.List(ctx, gardens, client.Limit(1)); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Gardens: %w", err))
	}
	if len(gardens.Items) > 0 {
		return admission.Denied(fmt.Sprintf("there is already the Garden %q, and there can be only one", gardens.Items[0].Name))
	}
	errs := operatorvalidation.ValidateGarden(garden)
	for _, finalizer := range garden.Finalizers {
		if slices.Contains(ownFinalizers, finalizer) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf("%s must not be set on creation", finalizer)))
		}
	}
	more, err := h.extensions(ctx, garden)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return refusal.Invalid("Garden", garden.Name, append(errs, more...)).WithWarnings(append(operatorvalidation.GardenWarnings(garden), h.versionWarnings(garden)...)...)
}

func (h *Validator) update(ctx context.Context, garden, old *operatorv1alpha1.Garden) admission.Response {
	if garden.DeletionTimestamp != nil && apiequality.Semantic.DeepEqual(garden.Spec, old.Spec) &&
		garden.Annotations[constants.GardenerOperation] == old.Annotations[constants.GardenerOperation] {
		return admission.Allowed("") // nothing must keep its finalizers from being removed
	}
	version, err := h.formerVersion(ctx, garden, old)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	skipped, err := h.skipped(ctx, garden, old)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	errs := append(operatorvalidation.ValidateGardenUpdate(garden, old, version), skipped...)
	if !apiequality.Semantic.DeepEqual(garden.Spec.Extensions, old.Spec.Extensions) {
		more, err := h.extensions(ctx, garden)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		errs = append(errs, more...)
	}
	response := refusal.Invalid("Garden", garden.Name, errs)
	operation := garden.Annotations[constants.GardenerOperation]
	if operation != "" && operation != old.Annotations[constants.GardenerOperation] || !apiequality.Semantic.DeepEqual(garden.Spec, old.Spec) {
		// Not for other changes of metadata, which are those of controllers.
		response = response.WithWarnings(operatorvalidation.GardenUpdateWarnings(garden, old)...)
	}
	if garden.Spec.VirtualCluster.Kubernetes.Version != old.Spec.VirtualCluster.Kubernetes.Version {
		response = response.WithWarnings(h.versionWarnings(garden)...)
	}
	return response
}

// extensions checks that there is an extension for each type that a Garden names.
func (h *Validator) extensions(ctx context.Context, garden *operatorv1alpha1.Garden) (field.ErrorList, error) {
	if len(garden.Spec.Extensions) == 0 {
		return nil, nil
	}
	extensions := &operatorv1alpha1.ExtensionList{}
	if err := h.Reader.List(ctx, extensions); err != nil {
		return nil, fmt.Errorf("list Extensions: %w", err)
	}
	var types []string
	for i := range extensions.Items {
		for _, resource := range extensions.Items[i].Spec.Resources {
			if resource.Kind == "Extension" && slices.Contains(resource.ClusterCompatibility, corev1beta1.ClusterTypeGarden) {
				types = append(types, resource.Type)
			}
		}
	}
	slices.Sort(types)
	var errs field.ErrorList
	for i, extension := range garden.Spec.Extensions {
		if !slices.Contains(types, extension.Type) {
			errs = append(errs, field.NotSupported(field.NewPath("spec", "extensions").Index(i).Child("type"), extension.Type, slices.Compact(types)))
		}
	}
	return errs, nil
}

func (h *Validator) delete(ctx context.Context, garden *operatorv1alpha1.Garden) admission.Response {
	if garden.DeletionTimestamp != nil {
		return admission.Allowed("it is deleted already")
	}
	if garden.Annotations[constants.ConfirmationDeletion] != "true" {
		return refusal.Forbidden(operatorv1alpha1.Resource("gardens"), garden.Name, fmt.Errorf("it must have the annotation %s=true to be deleted", constants.ConfirmationDeletion))
	}
	remaining, err := h.Remaining(ctx)
	switch {
	case errors.Is(err, virtualcluster.ErrNoSecret):
		return admission.Allowed("there is no virtual garden")
	case err != nil && garden.Annotations[operatorv1alpha1.ForceDeletion] == "true":
		// A Garden whose virtual cluster is broken must not stay for ever.
		logf.FromContext(ctx).Info("Allowing the deletion of a Garden without a check for Seeds and Shoots", "garden", garden.Name, "reason", err.Error())
		return admission.Allowed("").WithWarnings("Seeds and Shoots are not checked, as the virtual garden cannot be reached: " + text(err))
	case err != nil:
		logf.FromContext(ctx).Info("Refusing the deletion of a Garden that cannot be checked for Seeds and Shoots", "garden", garden.Name, "reason", err.Error())
		return refusal.Forbidden(operatorv1alpha1.Resource("gardens"), garden.Name,
			fmt.Errorf("its virtual garden cannot be checked for Seeds and Shoots (%s); to delete it all the same, annotate it with %s=true", text(err), operatorv1alpha1.ForceDeletion))
	case len(remaining) > 0:
		return refusal.Forbidden(operatorv1alpha1.Resource("gardens"), garden.Name,
			fmt.Errorf("its virtual garden still has %s; delete Shoots and Seeds first", strings.Join(remaining, ", ")))
	}
	return admission.Allowed("")
}

// text is an error without the details of a request, which are long.
func text(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return err.Error()
}
