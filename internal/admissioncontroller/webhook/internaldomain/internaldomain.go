// Package internaldomain keeps Secrets with the internal domain as the Shoots need that use it: one in a namespace, complete, and unchanged.
//
// Reads Secrets and Shoots. Source: concepts.txt, gardener-admission-controller, "Internal Domain Secret Validator".
package internaldomain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Handler handles requests for Secrets.
type Handler struct {
	// Reader reads the garden itself.
	Reader  client.Reader
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	seed, ofSeed := strings.CutPrefix(request.Namespace, constants.SeedNamespaceNamePrefix)
	switch {
	case ofSeed:
	case request.Namespace == constants.GardenNamespace:
		seed = "" // the domain is for all seeds
	default:
		return admission.Allowed("internal domains are in namespaces of the garden and of seeds")
	}
	switch request.Operation {
	case admissionv1.Create:
		return h.create(ctx, request)
	case admissionv1.Update:
		return h.update(ctx, request, seed)
	case admissionv1.Delete:
		return h.unused(ctx, seed, "must not be deleted")
	default:
		return admission.Allowed("")
	}
}

func (h *Handler) create(ctx context.Context, request admission.Request) admission.Response {
	secret := &corev1.Secret{}
	if err := h.Decoder.Decode(request, secret); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Secret: %w", err))
	}
	if response := h.only(ctx, request.Namespace); !response.Allowed {
		return response
	}
	if _, err := domain(secret); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return admission.Allowed("")
}

func (h *Handler) update(ctx context.Context, request admission.Request, seed string) admission.Response {
	secret, old := &corev1.Secret{}, &corev1.Secret{}
	if err := errors.Join(h.Decoder.Decode(request, secret), h.Decoder.DecodeRaw(request.OldObject, old)); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Secret: %w", err))
	}
	if secret.Labels[constants.GardenRole] == constants.GardenRoleInternalDomain && old.Labels[constants.GardenRole] != constants.GardenRoleInternalDomain {
		if response := h.only(ctx, request.Namespace); !response.Allowed {
			return response
		}
	}
	after, err := domain(secret)
	before, oldErr := domain(old)
	if err := errors.Join(err, oldErr); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if after == before {
		return admission.Allowed("the domain is the same")
	}
	return h.unused(ctx, seed, "must not get another domain")
}

// only allows the request if no Secret in the namespace has an internal domain.
func (h *Handler) only(ctx context.Context, namespace string) admission.Response {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := h.Reader.List(ctx, secrets, client.InNamespace(namespace), client.Limit(1), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleInternalDomain,
	}); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Secrets: %w", err))
	}
	if len(secrets.Items) > 0 {
		return admission.Errored(http.StatusConflict, fmt.Errorf("Secret %q has the internal domain already; there can be one in Namespace %q", secrets.Items[0].Name, namespace))
	}
	return admission.Allowed("")
}

// unused allows the request if there is no Shoot that could use the domain: any, or one of the seed.
func (h *Handler) unused(ctx context.Context, seed, rule string) admission.Response {
	options := []client.ListOption{client.Limit(1)}
	if seed != "" {
		options = append(options, client.MatchingFields{"spec.seedName": seed})
	}
	shoots := &corev1beta1.ShootList{}
	if err := h.Reader.List(ctx, shoots, options...); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Shoots: %w", err))
	}
	if len(shoots.Items) > 0 {
		return admission.Denied("a Secret with the internal domain " + rule + " as long as there are Shoots that use it")
	}
	return admission.Allowed("no Shoot uses the domain")
}

// domain returns the domain of a Secret, which must also name a provider.
func domain(secret *corev1.Secret) (string, error) {
	for _, annotation := range []string{constants.DNSDomain, constants.DNSProvider} {
		if secret.Annotations[annotation] == "" {
			return "", fmt.Errorf("metadata.annotations[%s] of Secret %q must be set", annotation, secret.Name)
		}
	}
	return secret.Annotations[constants.DNSDomain], nil
}
