// Package providerlabels labels Secrets and InternalSecrets with the providers of the bindings that refer to them, so that an extension finds the
// credentials for its infrastructure, and other labels do not claim that.
//
// Reads SecretBindings and CredentialsBindings from an index of the cache. Source: concepts.txt, gardener-admission-controller, "Sync Provider Secret
// Labels".
package providerlabels

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// index finds bindings by the credentials that they refer to.
const index = "credentials"

// AddIndexes adds the indexes of bindings to a cache that has not been started.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&corev1beta1.SecretBinding{}, &securityv1alpha1.CredentialsBinding{}} {
		if err := indexer.IndexField(ctx, kind, index, credentials); err != nil {
			return fmt.Errorf("index %T by its credentials: %w", kind, err)
		}
	}
	return nil
}

// credentials returns the key of the object that a binding refers to.
func credentials(binding client.Object) []string {
	switch b := binding.(type) {
	case *corev1beta1.SecretBinding:
		return []string{key(corev1.GroupName, "Secret", b.SecretRef.Namespace, b.SecretRef.Name)}
	case *securityv1alpha1.CredentialsBinding:
		return []string{key(b.CredentialsRef.GroupVersionKind().Group, b.CredentialsRef.Kind, b.CredentialsRef.Namespace, b.CredentialsRef.Name)}
	}
	return nil
}

func key(group, kind, namespace, name string) string {
	return schema.GroupKind{Group: group, Kind: kind}.String() + "/" + namespace + "/" + name
}

// Handler handles requests for Secrets and InternalSecrets.
type Handler struct {
	// Cache has SecretBindings and CredentialsBindings, with their indexes.
	Cache client.Reader
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	types, err := h.types(ctx, key(request.Kind.Group, request.Kind.Kind, request.Namespace, request.Name))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(types) == 0 {
		return admission.Allowed("no binding refers to it")
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the object: %w", err))
	}
	labels := object.GetLabels()
	object.SetLabels(desired(labels, types))
	if maps.Equal(labels, object.GetLabels()) {
		return admission.Allowed("it has the labels")
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, data)
}

// types returns the types of the providers of all bindings that refer to an object.
func (h *Handler) types(ctx context.Context, key string) ([]string, error) {
	secretBindings, credentialsBindings := &corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}
	for _, list := range []client.ObjectList{secretBindings, credentialsBindings} {
		if err := h.Cache.List(ctx, list, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list bindings: %w", err)
		}
	}
	var types []string
	for _, binding := range secretBindings.Items {
		if binding.Provider != nil {
			types = append(types, strings.Split(binding.Provider.Type, ",")...)
		}
	}
	for _, binding := range credentialsBindings.Items {
		types = append(types, binding.Provider.Type)
	}
	return types, nil
}

// desired returns the labels of an object that bindings of some types of providers refer to.
func desired(labels map[string]string, types []string) map[string]string {
	all := maps.Clone(labels)
	maps.DeleteFunc(all, func(label, _ string) bool { return strings.HasPrefix(label, constants.ShootProviderPrefix) })
	if all == nil {
		all = map[string]string{}
	}
	for _, provider := range types {
		// Types in SecretBindings are not validated.
		if label := constants.ShootProviderPrefix + provider; len(validation.IsQualifiedName(label)) == 0 {
			all[label] = "true"
		}
	}
	return all
}
