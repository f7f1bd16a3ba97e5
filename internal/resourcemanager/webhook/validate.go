package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	component "gardener.cloud/gardener/internal/component/resourcemanager"
	druidvalidation "gardener.cloud/gardener/internal/validation/druid"
	extensionsvalidation "gardener.cloud/gardener/internal/validation/extensions"
)

// validators are the handlers that validate more than the CustomResourceDefinitions do, by path.
func validators() map[string]admission.HandlerFunc {
	return map[string]admission.HandlerFunc{
		component.PathValidateExtension("backupbucket"):            extension[extensionsv1alpha1.BackupBucket](),
		component.PathValidateExtension("backupentry"):             extension[extensionsv1alpha1.BackupEntry](),
		component.PathValidateExtension("bastion"):                 extension[extensionsv1alpha1.Bastion](),
		component.PathValidateExtension("containerruntime"):        extension[extensionsv1alpha1.ContainerRuntime](),
		component.PathValidateExtension("controlplane"):            extension[extensionsv1alpha1.ControlPlane](),
		component.PathValidateExtension("dnsrecord"):               extension[extensionsv1alpha1.DNSRecord](),
		component.PathValidateExtension("extension"):               extension[extensionsv1alpha1.Extension](),
		component.PathValidateExtension("infrastructure"):          extension[extensionsv1alpha1.Infrastructure](),
		component.PathValidateExtension("network"):                 extension[extensionsv1alpha1.Network](),
		component.PathValidateExtension("operatingsystemconfig"):   extension[extensionsv1alpha1.OperatingSystemConfig](),
		component.PathValidateExtension("selfhostedshootexposure"): extension[extensionsv1alpha1.SelfHostedShootExposure](),
		component.PathValidateExtension("worker"):                  extension[extensionsv1alpha1.Worker](),
		component.PathValidateEtcd:                                 validate(druidvalidation.ValidateEtcd, druidvalidation.ValidateEtcdUpdate),
	}
}

// extension returns a handler for a kind of extension.
func extension[T any, P interface {
	*T
	extensionsv1alpha1.Object
}]() admission.HandlerFunc {
	return validate(
		func(object P) field.ErrorList { return extensionsvalidation.Validate(object) },
		func(object, old P) field.ErrorList { return extensionsvalidation.ValidateUpdate(object, old) },
	)
}

// validate returns a handler that denies invalid objects, with all errors.
func validate[T any, P interface {
	*T
	client.Object
}](create func(P) field.ErrorList, update func(object, old P) field.ErrorList) admission.HandlerFunc {
	return func(_ context.Context, request admission.Request) admission.Response {
		if request.SubResource != "" {
			return admission.Allowed("")
		}
		object, old := P(new(T)), P(new(T))
		if err := json.Unmarshal(request.Object.Raw, object); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the object: %w", err))
		}
		var errs field.ErrorList
		switch request.Operation {
		case admissionv1.Create:
			errs = create(object)
		case admissionv1.Update:
			if err := json.Unmarshal(request.OldObject.Raw, old); err != nil {
				return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the old object: %w", err))
			}
			errs = update(object, old)
		}
		if len(errs) == 0 {
			return admission.Allowed("")
		}
		status := apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, object.GetName(), errs).ErrStatus
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
	}
}
