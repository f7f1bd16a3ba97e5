// Package auditpolicy refuses Gardens with an audit policy that their kube-apiserver or gardener-apiserver would not take, and changes of the
// ConfigMap that has the policy.
//
// Reads ConfigMaps in the namespace "garden", and Gardens. Source: concepts.txt, gardener-operator, "Webhooks".
package auditpolicy

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
)

// key is the key of the policy in a ConfigMap.
const key = "policy"

// Handler handles requests for Gardens and ConfigMaps.
type Handler struct {
	// Reader reads the runtime cluster itself.
	Reader  client.Reader
	Decoder admission.Decoder
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	var errs field.ErrorList
	var err error
	switch schema.GroupVersionResource(request.Resource) {
	case operatorv1alpha1.SchemeGroupVersion.WithResource("gardens"):
		errs, err = h.garden(ctx, request)
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

// reference is a field of a Garden that names a ConfigMap.
type reference struct {
	path *field.Path
	name string
}

// references returns the ConfigMaps with audit policies that a Garden names.
func references(garden *operatorv1alpha1.Garden) []reference {
	var list []reference
	add := func(config *corev1beta1.AuditConfig, path *field.Path) {
		if config != nil && config.AuditPolicy != nil && config.AuditPolicy.ConfigMapRef != nil && config.AuditPolicy.ConfigMapRef.Name != "" {
			list = append(list, reference{path.Child("auditConfig", "auditPolicy", "configMapRef", "name"), config.AuditPolicy.ConfigMapRef.Name})
		}
	}
	virtual, path := &garden.Spec.VirtualCluster, field.NewPath("spec", "virtualCluster")
	if config := virtual.Kubernetes.KubeAPIServer; config != nil {
		add(config.AuditConfig, path.Child("kubernetes", "kubeAPIServer"))
	}
	if config := virtual.Gardener.GardenerAPIServer; config != nil {
		add(config.AuditConfig, path.Child("gardener", "gardenerAPIServer"))
	}
	return list
}

func (h *Handler) garden(ctx context.Context, request admission.Request) (field.ErrorList, error) {
	garden, old := &operatorv1alpha1.Garden{}, &operatorv1alpha1.Garden{}
	err := h.Decoder.Decode(request, garden)
	if request.Operation == admissionv1.Update {
		err = errors.Join(err, h.Decoder.DecodeRaw(request.OldObject, old))
	}
	if err != nil {
		return nil, fmt.Errorf("decode the Garden: %w", err)
	}
	if garden.DeletionTimestamp != nil {
		return nil, nil
	}
	before := map[string]string{}
	for _, r := range references(old) {
		before[r.path.String()] = r.name
	}
	var errs field.ErrorList
	for _, r := range references(garden) {
		if before[r.path.String()] == r.name {
			continue // it was checked, and is checked when the ConfigMap changes
		}
		configMap := &corev1.ConfigMap{}
		if err := h.Reader.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: r.name}, configMap); apierrors.IsNotFound(err) {
			errs = append(errs, field.Invalid(r.path, r.name, "ConfigMap not found"))
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read ConfigMap \"%s/%s\": %w", constants.GardenNamespace, r.name, err)
		}
		for _, err := range check(configMap) {
			errs = append(errs, field.Invalid(r.path, r.name, err.Error()))
		}
	}
	return errs, nil
}

func (h *Handler) configMap(ctx context.Context, request admission.Request) (field.ErrorList, error) {
	if request.Operation != admissionv1.Update || request.Namespace != constants.GardenNamespace {
		return nil, nil
	}
	configMap, old := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	if err := errors.Join(h.Decoder.Decode(request, configMap), h.Decoder.DecodeRaw(request.OldObject, old)); err != nil {
		return nil, fmt.Errorf("decode the ConfigMap: %w", err)
	}
	if configMap.Data[key] == old.Data[key] {
		return nil, nil
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := h.Reader.List(ctx, gardens); err != nil {
		return nil, fmt.Errorf("list Gardens: %w", err)
	}
	for i := range gardens.Items {
		for _, r := range references(&gardens.Items[i]) {
			if r.name == configMap.Name && gardens.Items[i].DeletionTimestamp == nil {
				return check(configMap), nil
			}
		}
	}
	return nil, nil
}

// check returns what is wrong with the policy in a ConfigMap. Paths begin with its key.
func check(configMap *corev1.ConfigMap) field.ErrorList {
	path := field.NewPath("data").Key(key)
	text := configMap.Data[key]
	if text == "" {
		return field.ErrorList{field.Required(path, "must have the audit policy of the Garden")}
	}
	errs := apiserverconfig.AuditPolicy(text)
	for _, err := range errs {
		err.Field = path.String() + "." + err.Field
	}
	return errs
}
