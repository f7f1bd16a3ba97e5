// Package gardenadmission makes webhooks of functions that check or default what only an extension understands in objects of the garden: configurations of
// providers in Shoots, CloudProfiles, Seeds and BackupBuckets, and credentials.
//
//	webhook.Options{Webhooks: []webhook.Webhook{
//		gardenadmission.Validator("shoots", gardenadmission.Shoots("example"), func(ctx context.Context, shoot, old *corev1beta1.Shoot) error {
//			config := &InfrastructureConfig{}
//			path := field.NewPath("spec", "provider", "infrastructureConfig")
//			return gardenadmission.Decode(decoder, shoot.Spec.Provider.InfrastructureConfig, config, path).ToAggregate()
//		}),
//	}}
//
// The webhooks are called only for objects with the label of the provider, which gardener-apiserver sets. Requests for them fail while the process does not
// respond, so When leaves out those that cannot be wrong, such as changes of metadata.
package gardenadmission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/webhook"
)

// Conditions for When, in CEL.
const (
	// Created selects objects that are created, for kinds whose fields cannot be changed.
	Created = "oldObject == null"
	// ProviderSet selects SecretBindings that are created, and those that get their provider, which has none until then.
	ProviderSet = "oldObject == null || !has(oldObject.provider)"
	// SpecChanged selects objects that are created, and those whose spec is changed.
	SpecChanged = "oldObject == null || object.spec != oldObject.spec"
	// DataChanged does so for the data of Secrets.
	DataChanged = "oldObject == null || object.?data != oldObject.?data"
)

// notDeleted selects objects that are not being deleted: their finalizers can be removed while the process does not run.
const notDeleted = "!has(object.metadata.deletionTimestamp)"

// Objects are those of a kind that a webhook is called for, when they are created and updated.
type Objects[T client.Object] struct {
	groupVersion schema.GroupVersion
	resource     string
	selector     *metav1.LabelSelector
	conditions   []admissionregistrationv1.MatchCondition
}

func of[T client.Object](gv schema.GroupVersion, resource, label string) Objects[T] {
	return Objects[T]{groupVersion: gv, resource: resource, selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}}
}

// When selects requests by a CEL expression with object and oldObject, such as SpecChanged. The name is for errors.
func (o Objects[T]) When(name, expression string) Objects[T] {
	o.conditions = append(slices.Clone(o.conditions), admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	return o
}

// Shoots are those with an infrastructure of a type.
func Shoots(typ string) Objects[*corev1beta1.Shoot] {
	return of[*corev1beta1.Shoot](corev1beta1.SchemeGroupVersion, "shoots", constants.ExtensionProviderTypePrefix+typ)
}

// ShootsWithExtension are those with an extension of a type.
func ShootsWithExtension(typ string) Objects[*corev1beta1.Shoot] {
	return of[*corev1beta1.Shoot](corev1beta1.SchemeGroupVersion, "shoots", constants.ExtensionExtensionTypePrefix+typ)
}

// ShootsWithNetworking are those with networks of a type.
func ShootsWithNetworking(typ string) Objects[*corev1beta1.Shoot] {
	return of[*corev1beta1.Shoot](corev1beta1.SchemeGroupVersion, "shoots", constants.ExtensionNetworkingTypePrefix+typ)
}

// ShootsWithContainerRuntime are those with a container runtime of a type on some machines.
func ShootsWithContainerRuntime(typ string) Objects[*corev1beta1.Shoot] {
	return of[*corev1beta1.Shoot](corev1beta1.SchemeGroupVersion, "shoots", constants.ExtensionContainerRuntimeTypePrefix+typ)
}

// ShootsWithOperatingSystem are those with an operating system of a type, which is the name of a machine image, on some machines.
func ShootsWithOperatingSystem(typ string) Objects[*corev1beta1.Shoot] {
	return of[*corev1beta1.Shoot](corev1beta1.SchemeGroupVersion, "shoots", constants.ExtensionOperatingSystemConfigTypePrefix+typ)
}

// CloudProfiles are those of a type.
func CloudProfiles(typ string) Objects[*corev1beta1.CloudProfile] {
	return of[*corev1beta1.CloudProfile](corev1beta1.SchemeGroupVersion, "cloudprofiles", constants.ExtensionProviderTypePrefix+typ)
}

// NamespacedCloudProfiles are those whose parent has a type.
func NamespacedCloudProfiles(typ string) Objects[*corev1beta1.NamespacedCloudProfile] {
	return of[*corev1beta1.NamespacedCloudProfile](corev1beta1.SchemeGroupVersion, "namespacedcloudprofiles", constants.ExtensionProviderTypePrefix+typ)
}

// NamespacedCloudProfileStatuses are writes of their status, which has the merged profile: a mutator merges the configurations of the provider. It has to do so
// each time, as gardener-controller-manager writes that of the parent, and also while a profile is being deleted, as Shoots may still use it.
func NamespacedCloudProfileStatuses(typ string) Objects[*corev1beta1.NamespacedCloudProfile] {
	o := NamespacedCloudProfiles(typ)
	o.resource += "/status"
	return o
}

// Seeds are those with an infrastructure of a type.
func Seeds(typ string) Objects[*corev1beta1.Seed] {
	return of[*corev1beta1.Seed](corev1beta1.SchemeGroupVersion, "seeds", constants.ExtensionProviderTypePrefix+typ)
}

// BackupBuckets are those of a type.
func BackupBuckets(typ string) Objects[*corev1beta1.BackupBucket] {
	return of[*corev1beta1.BackupBucket](corev1beta1.SchemeGroupVersion, "backupbuckets", constants.ExtensionProviderTypePrefix+typ)
}

// Credentials are Secrets that are used for an infrastructure of a type.
func Credentials(typ string) Objects[*corev1.Secret] {
	return of[*corev1.Secret](corev1.SchemeGroupVersion, "secrets", constants.ShootProviderPrefix+typ)
}

// CredentialsBindings are those with credentials for an infrastructure of a type. A Secret gets its label only when there is one, so it has not been checked
// before.
func CredentialsBindings(typ string) Objects[*securityv1alpha1.CredentialsBinding] {
	return of[*securityv1alpha1.CredentialsBinding](securityv1alpha1.SchemeGroupVersion, "credentialsbindings", constants.ExtensionProviderTypePrefix+typ)
}

// SecretBindings are the same for Secrets only. One may get its provider after it was created.
func SecretBindings(typ string) Objects[*corev1beta1.SecretBinding] {
	return of[*corev1beta1.SecretBinding](corev1beta1.SchemeGroupVersion, "secretbindings", constants.ExtensionProviderTypePrefix+typ)
}

// Validator returns a webhook that refuses objects for which a function returns an error. The old object is nil when one is created. Errors of fields
// (package field) say what the user has to change. Objects that are being deleted are not checked, as they must not be held up.
func Validator[T client.Object](name string, objects Objects[T], validate func(ctx context.Context, object, old T) error) webhook.Webhook {
	return objects.When("not-deleted", notDeleted).webhook(name, true, func(ctx context.Context, request admission.Request) admission.Response {
		object := newObject[T]()
		if err := json.Unmarshal(request.Object.Raw, object); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode %s: %w", request.Kind.Kind, err))
		}
		old, err := oldObject[T](request)
		switch {
		case err != nil:
			return admission.Errored(http.StatusBadRequest, err)
		case object.GetDeletionTimestamp() != nil:
			return admission.Allowed("it is being deleted")
		}
		if err := validate(ctx, object, old); err != nil {
			return webhook.Refused(request, err)
		}
		return admission.Allowed("")
	})
}

// Mutator returns a webhook that changes objects by a function. The old object is nil when one is created. Objects that are being deleted stay as they are, but
// their status is changed.
func Mutator[T client.Object](name string, objects Objects[T], mutate func(ctx context.Context, object, old T) error) webhook.Webhook {
	return objects.webhook(name, false, func(ctx context.Context, request admission.Request) admission.Response {
		old, err := oldObject[T](request)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		change := func(object T) error { return mutate(ctx, object, old) }
		if request.SubResource == "status" {
			return webhook.MutateDeleted(request, newObject[T](), change)
		}
		return webhook.Mutate(request, newObject[T](), change)
	})
}

func (o Objects[T]) webhook(name string, validating bool, handle admission.HandlerFunc) webhook.Webhook {
	return webhook.Webhook{
		Name: name, Validating: validating, Handler: handle, ObjectSelector: o.selector, MatchConditions: o.conditions,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{o.groupVersion.Group}, APIVersions: []string{o.groupVersion.Version}, Resources: []string{o.resource}},
		}},
	}
}

func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:forcetypeassert // T is a pointer to a kind
}

// oldObject returns the object before an update, or nil.
func oldObject[T client.Object](request admission.Request) (T, error) {
	if request.Operation != admissionv1.Update || len(request.OldObject.Raw) == 0 {
		return *new(T), nil
	}
	old := newObject[T]()
	if err := json.Unmarshal(request.OldObject.Raw, old); err != nil {
		return old, fmt.Errorf("decode old %s: %w", request.Kind.Kind, err)
	}
	return old, nil
}

// NewDecoder returns a decoder of the configurations of a provider, for Decode. Defaults of the scheme are applied, and
// fields that a kind does not have are refused.
func NewDecoder(scheme *runtime.Scheme) runtime.Decoder {
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
}

// Decode decodes the configuration of a provider, which is required, into an object of its kind. The errors name the field.
func Decode(decoder runtime.Decoder, raw *runtime.RawExtension, into runtime.Object, path *field.Path) field.ErrorList {
	if raw == nil || len(raw.Raw) == 0 {
		return field.ErrorList{field.Required(path, "the provider needs a configuration")}
	}
	if _, _, err := decoder.Decode(raw.Raw, nil, into); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}
