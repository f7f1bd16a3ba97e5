// Package restricted is what the webhooks for clients of seeds and of self-hosted shoots have in common.
package restricted

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/restriction"
)

// Handler decides on requests of clients.
type Handler struct {
	// Reader reads from the garden; metadata is enough for it to know whether an object exists.
	Reader client.Reader
	// Cache knows Seeds, Shoots, ManagedSeeds, Gardenlets, BackupBuckets and BackupEntries. What it does not know is read from the garden.
	Cache   client.Reader
	Decoder admission.Decoder
	Clock   clock.PassiveClock
	// Client reports whether a user is one of the clients, and Decide decides on their requests.
	Client func(user.Info) bool
	Decide func(*restriction.Values, context.Context, *restriction.Request) error
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	r := &restriction.Request{
		User: userOf(request.UserInfo), Operation: request.Operation, Namespace: request.Namespace, Name: request.Name,
		Resource: restriction.WithSubresource(schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}, request.SubResource),
	}
	if !h.Client(r.User) {
		return admission.Allowed("not a client of a seed or self-hosted shoot")
	}
	if err := h.decode(request, r); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	decisions := &restriction.Values{Garden: fresh{h.Cache, h.Reader}, KubeAPI: h.Reader, Clock: h.Clock, Exists: func(ctx context.Context, r *restriction.Request) bool {
		return h.exists(ctx, request.Kind, r)
	}}
	err := h.Decide(decisions, ctx, r)
	var refused *restriction.Refusal
	switch {
	case err == nil:
		return admission.Allowed("")
	case !errors.As(err, &refused):
		return admission.Errored(http.StatusInternalServerError, err)
	case refused.Code == http.StatusForbidden:
		return admission.Denied(err.Error())
	case refused.Code == http.StatusConflict:
		response := admission.Errored(refused.Code, err)
		response.Result.Reason = metav1.StatusReasonAlreadyExists // by which clients recognize it
		return response
	}
	return admission.Errored(refused.Code, err)
}

// decode reads the objects of a request. It ignores resources that no rule is for.
func (h *Handler) decode(request admission.Request, r *restriction.Request) error {
	if restriction.New(r.Resource) == nil {
		return nil
	}
	if len(request.Object.Raw) > 0 {
		r.Object = restriction.New(r.Resource)
		if err := h.Decoder.DecodeRaw(request.Object, r.Object); err != nil {
			return fmt.Errorf("decode the object: %w", err)
		}
	}
	if len(request.OldObject.Raw) > 0 {
		r.Old = restriction.New(r.Resource)
		if err := h.Decoder.DecodeRaw(request.OldObject, r.Old); err != nil {
			return fmt.Errorf("decode the stored object: %w", err)
		}
	}
	return nil
}

func (h *Handler) exists(ctx context.Context, kind metav1.GroupVersionKind, r *restriction.Request) bool {
	if r.Name == "" {
		return false
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(schema.GroupVersionKind(kind))
	return h.Reader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, obj) == nil
}

// fresh reads from the garden what a cache does not know: an object is often referred to as soon as it exists.
type fresh struct{ cache, reader client.Reader }

// Get implements client.Reader.
func (f fresh) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := f.cache.Get(ctx, key, obj, opts...); !apierrors.IsNotFound(err) {
		return err
	}
	return f.reader.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (f fresh) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.cache.List(ctx, list, opts...)
}

func userOf(info authenticationv1.UserInfo) user.Info {
	extra := map[string][]string{}
	for key, values := range info.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: extra}
}
