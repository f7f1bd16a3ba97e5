// Package configurationfile refuses Shoots with a configuration file that their kube-apiserver would not take, and changes of the ConfigMap that has
// the file. There is a webhook for each kind of file.
//
// Reads ConfigMaps, and Shoots from the cache. Source: concepts.txt, gardener-admission-controller, "Admission Webhook Handlers".
package configurationfile

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/apiserverfiles"
)

// Handler handles requests for Shoots and ConfigMaps.
type Handler struct {
	// File is the kind of file that is checked.
	File apiserverfiles.File
	// Cache has Shoots.
	Cache client.Reader
	// Reader reads the garden itself.
	Reader  client.Reader
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	var errs field.ErrorList
	var err error
	switch schema.GroupVersionResource(request.Resource) {
	case corev1beta1.SchemeGroupVersion.WithResource("shoots"):
		errs, err = h.shoot(ctx, request)
	case corev1.SchemeGroupVersion.WithResource("configmaps"):
		errs, err = h.configMap(ctx, request)
	}
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case len(errs) > 0:
		return admission.Errored(http.StatusUnprocessableEntity, errs.ToAggregate())
	}
	return admission.Allowed("")
}

func (h *Handler) shoot(ctx context.Context, request admission.Request) (field.ErrorList, error) {
	shoot, old := &corev1beta1.Shoot{}, (*corev1beta1.Shoot)(nil)
	err := h.Decoder.Decode(request, shoot)
	if request.Operation == admissionv1.Update {
		old = &corev1beta1.Shoot{}
		err = errors.Join(err, h.Decoder.DecodeRaw(request.OldObject, old))
	}
	if err != nil {
		return nil, fmt.Errorf("decode the Shoot: %w", err)
	}
	return h.File.CheckShoot(ctx, h.Reader, shoot, old)
}

func (h *Handler) configMap(ctx context.Context, request admission.Request) (field.ErrorList, error) {
	if request.Operation != admissionv1.Update {
		return nil, nil
	}
	configMap, old := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	if err := errors.Join(h.Decoder.Decode(request, configMap), h.Decoder.DecodeRaw(request.OldObject, old)); err != nil {
		return nil, fmt.Errorf("decode the ConfigMap: %w", err)
	}
	shoots := &corev1beta1.ShootList{}
	if err := h.Cache.List(ctx, shoots, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Shoots: %w", err)
	}
	return h.File.CheckConfigMap(ctx, h.Reader, configMap, old, shoots.Items)
}
