// Package kubeconfigreference refuses to remove the kubeconfig from a Secret with which kube-apiservers of Shoots reach webhooks.
//
// Reads Shoots from the cache. Source: concepts.txt, gardener-admission-controller, "Admission Plugin Secret Validator".
package kubeconfigreference

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Handler handles requests for Secrets.
type Handler struct {
	// Cache has Shoots.
	Cache   client.Reader
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Update {
		return admission.Allowed("only updates are checked")
	}
	secret := &corev1.Secret{}
	if err := h.Decoder.Decode(request, secret); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the Secret: %w", err))
	}
	if len(secret.Data["kubeconfig"]) > 0 {
		return admission.Allowed("it has a kubeconfig")
	}
	shoots := &corev1beta1.ShootList{}
	if err := h.Cache.List(ctx, shoots, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Shoots: %w", err))
	}
	var names []string
	for i := range shoots.Items {
		if uses(&shoots.Items[i], request.Name) {
			names = append(names, shoots.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return admission.Allowed("no Shoot uses it")
	}
	slices.Sort(names)
	return admission.Denied(fmt.Sprintf("data.kubeconfig of Secret %q must not be empty: kube-apiservers of Shoots use it: %s", request.Name, strings.Join(names, ", ")))
}

// uses reports whether the kube-apiserver of a Shoot reaches a webhook with the kubeconfig in a Secret.
func uses(shoot *corev1beta1.Shoot, secret string) bool {
	c := shoot.Spec.Kubernetes.KubeAPIServer
	if c == nil {
		return false
	}
	return slices.ContainsFunc(c.AdmissionPlugins, func(p corev1beta1.AdmissionPlugin) bool { return ptr.Deref(p.KubeconfigSecretName, "") == secret }) ||
		c.StructuredAuthorization != nil && slices.ContainsFunc(c.StructuredAuthorization.Kubeconfigs, func(r corev1beta1.AuthorizerKubeconfigReference) bool {
			return r.SecretName == secret
		})
}
