// Package resourcesize refuses objects that are larger than a limit, and objects without a namespace of which there are as many as a limit says.
//
// Counts objects in the garden. Source: concepts.txt, gardener-admission-controller, "Resource Size Validator".
package resourcesize

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/rejections"
)

// countTimeout is how long it may take to count objects, which is as long as the API server waits for the webhook.
const countTimeout = 10 * time.Second

// Handler handles requests for any objects.
type Handler struct {
	// Config has the limits. Nil means none.
	Config *admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration
	// Reader reads the garden itself.
	Reader   client.Reader
	Rejected *rejections.Counter
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("operation %q is not create or update", request.Operation))
	}
	if h.Config == nil || slices.ContainsFunc(h.Config.UnrestrictedSubjects, func(s rbacv1.Subject) bool { return includes(s, request.UserInfo) }) {
		return admission.Allowed("there are no limits for the user")
	}
	limit := limitFor(h.Config.Limits, ptr.Deref(request.RequestResource, request.Resource))
	if limit == nil {
		return admission.Allowed("there is no limit for the resource")
	}
	if err := h.checkCount(ctx, request, limit.Count); err != nil {
		return h.exceeded(ctx, request, rejections.CountExceeded, err)
	}
	if limit.Size != nil {
		if err := checkSize(request.Object.Raw, limit.Size.Value()); err != nil {
			return h.exceeded(ctx, request, rejections.SizeExceeded, err)
		}
	}
	return admission.Allowed("")
}

// exceeded refuses a request, or only logs it.
func (h *Handler) exceeded(ctx context.Context, request admission.Request, reason string, err error) admission.Response {
	if ptr.Deref(h.Config.OperationMode, admissioncontrollerconfigv1alpha1.AdmissionModeBlock) == admissioncontrollerconfigv1alpha1.AdmissionModeLog {
		logf.FromContext(ctx).Info("Allowing a request beyond a limit", "reason", reason, "cause", err.Error(), "operation", request.Operation,
			"resource", request.Resource.Resource, "namespace", request.Namespace, "name", request.Name, "user", request.UserInfo.Username)
		return admission.Allowed("limits are only logged")
	}
	h.Rejected.Count(request, reason)
	return admission.Denied(err.Error())
}

// includes reports whether a subject of the configuration includes a user. Service accounts are only meant by subjects of their kind.
func includes(subject rbacv1.Subject, user authenticationv1.UserInfo) bool {
	all := subject.Name == admissioncontrollerconfigv1alpha1.WildcardAll
	namespace, name, err := serviceaccount.SplitUsername(user.Username)
	if err == nil {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && (all || subject.Name == name)
	}
	switch subject.Kind {
	case rbacv1.UserKind:
		return all || subject.Name == user.Username
	case rbacv1.GroupKind:
		return all || slices.Contains(user.Groups, subject.Name)
	}
	return false
}

// limitFor returns the first limit for a resource, or nil.
func limitFor(limits []admissioncontrollerconfigv1alpha1.ResourceLimit, resource metav1.GroupVersionResource) *admissioncontrollerconfigv1alpha1.ResourceLimit {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, admissioncontrollerconfigv1alpha1.WildcardAll)
	}
	at := slices.IndexFunc(limits, func(l admissioncontrollerconfigv1alpha1.ResourceLimit) bool {
		return has(l.APIGroups, resource.Group) && has(l.APIVersions, resource.Version) && has(l.Resources, resource.Resource)
	})
	if at < 0 {
		return nil
	}
	return &limits[at]
}

// checkCount returns an error if there are too many objects for another one.
func (h *Handler) checkCount(ctx context.Context, request admission.Request, count *int64) error {
	if count == nil || request.Operation != admissionv1.Create || !clusterScoped(request) {
		return nil
	}
	kind := ptr.Deref(request.RequestKind, request.Kind)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind(kind).GroupVersion().WithKind(kind.Kind + "List"))
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	if err := h.Reader.List(ctx, list, client.Limit(*count+1)); err != nil {
		return fmt.Errorf("count objects of kind %s: %w", kind.Kind, err)
	}
	if int64(len(list.Items)) >= *count {
		return fmt.Errorf("there must be no more than %d objects of kind %s", *count, kind.Kind)
	}
	return nil
}

// clusterScoped reports whether an object has no namespace. Requests for Namespaces say that they are in themselves.
func clusterScoped(request admission.Request) bool {
	return request.Namespace == "" || request.Resource.Group == "" && request.Resource.Resource == "namespaces"
}

// checkSize returns an error if an object without status and managed fields is too large. Only an object that is too large with them is decoded.
func checkSize(raw []byte, limit int64) error {
	if int64(len(raw)) <= limit {
		return nil
	}
	size, err := ownSize(raw)
	if err != nil {
		return fmt.Errorf("measure the size of the object: %w", err)
	}
	if size > limit {
		return fmt.Errorf("the object has %d bytes without status and managed fields, but must have no more than %d", size, limit)
	}
	return nil
}

// ownSize returns the size of an object as JSON, without status and managed fields.
func ownSize(raw []byte) (int64, error) {
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return 0, err
	}
	delete(object, "status")
	if err := json.Unmarshal(object["metadata"], &metadata); err == nil {
		delete(metadata, "managedFields")
		if object["metadata"], err = json.Marshal(metadata); err != nil {
			return 0, err
		}
	}
	data, err := json.Marshal(object)
	return int64(len(data)), err
}
