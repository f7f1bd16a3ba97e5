// Package scheme knows the types of the garden API the way the API server needs them.
//
// There is one Go type per kind. It is registered under its version and under __internal, the hub of all versions, so that
// requests, storage and answers share it and nothing is converted. ControllerDeployment alone is served in two versions; the
// type of v1beta1 is its hub, as that is the version in storage.
//
// Only the API server may use this scheme: clients refuse a type that has two names.
package scheme

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
)

// StorageVersions are the versions that objects are stored in, one per group. Their types are the hubs.
var StorageVersions = []schema.GroupVersion{
	corev1beta1.SchemeGroupVersion,
	securityv1alpha1.SchemeGroupVersion,
	seedmanagementv1alpha1.SchemeGroupVersion,
	operationsv1alpha1.SchemeGroupVersion,
	settingsv1alpha1.SchemeGroupVersion,
}

// ownTypes begins the import paths of our types; all others in a group are those that every group has.
const ownTypes = "gardener.cloud/gardener/api/"

// New returns a scheme with all types of the garden API.
func New() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(
		authenticationv1alpha1.AddToScheme(s), corev1beta1.AddToScheme(s), gardencorev1.AddToScheme(s), securityv1alpha1.AddToScheme(s),
		seedmanagementv1alpha1.AddToScheme(s), operationsv1alpha1.AddToScheme(s), settingsv1alpha1.AddToScheme(s),
	)
	if err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	for _, version := range append([]schema.GroupVersion{authenticationv1alpha1.SchemeGroupVersion}, StorageVersions...) {
		hub := schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}
		for kind, goType := range s.KnownTypes(version) {
			if !strings.HasPrefix(goType.PkgPath(), ownTypes) {
				continue
			}
			obj, err := s.New(version.WithKind(kind))
			if err != nil {
				return nil, fmt.Errorf("register %s as hub: %w", kind, err)
			}
			s.AddKnownTypeWithName(hub.WithKind(kind), obj)
		}
	}
	// The subresource "scale" is a kind of Kubernetes, for all clients that scale.
	for _, version := range []string{autoscalingv1.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		s.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: version}, &autoscalingv1.Scale{})
	}
	if err := addConversions(s); err != nil {
		return nil, fmt.Errorf("register conversions: %w", err)
	}
	err = errors.Join(
		s.SetVersionPriority(corev1beta1.SchemeGroupVersion, gardencorev1.SchemeGroupVersion),
		s.SetVersionPriority(securityv1alpha1.SchemeGroupVersion),
		s.SetVersionPriority(seedmanagementv1alpha1.SchemeGroupVersion),
		s.SetVersionPriority(operationsv1alpha1.SchemeGroupVersion),
		s.SetVersionPriority(settingsv1alpha1.SchemeGroupVersion),
	)
	if err != nil {
		return nil, fmt.Errorf("set version priorities: %w", err)
	}
	// What every API server has: options of requests, in the version "v1", and objects of no group.
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, v1)
	s.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s, nil
}

// AddFieldSelectors lets requests for a kind select by fields, and by no others.
func AddFieldSelectors(s *runtime.Scheme, gvk schema.GroupVersionKind, paths ...string) error {
	return s.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) {
		if slices.Contains(paths, label) {
			return label, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector: use %s", label, strings.Join(paths, ", "))
	})
}

// StorageCodec encodes objects in their storage version, as JSON or in another media type that the API is served in. It decodes
// what was stored in any of them, so that the media type can be changed at any time.
func StorageCodec(codecs serializer.CodecFactory, mediaType string) (runtime.Codec, error) {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, fmt.Errorf("objects cannot be stored as %q", mediaType)
	}
	return storageCodec{codecs.CodecForVersions(
		info.Serializer, codecs.UniversalDeserializer(), schema.GroupVersions(StorageVersions), runtime.InternalGroupVersioner,
	)}, nil
}

// storageCodec clears the type of what it decodes. As the stored type is the hub, nothing else would: a list would carry
// apiVersion and kind in every item.
type storageCodec struct{ runtime.Codec }

// Decode implements runtime.Decoder.
func (c storageCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := c.Codec.Decode(data, defaults, into)
	if obj != nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, gvk, err
}

// addConversions registers the conversions of ControllerDeployments.
func addConversions(s *runtime.Scheme) error {
	type (
		old     = corev1beta1.ControllerDeployment
		oldList = corev1beta1.ControllerDeploymentList
		v1      = gardencorev1.ControllerDeployment
		v1List  = gardencorev1.ControllerDeploymentList
	)
	return errors.Join(
		s.AddConversionFunc((*old)(nil), (*v1)(nil), func(in, out any, _ conversion.Scope) error {
			return in.(*old).ToV1(out.(*v1))
		}),
		s.AddConversionFunc((*v1)(nil), (*old)(nil), func(in, out any, _ conversion.Scope) error {
			return out.(*old).FromV1(in.(*v1))
		}),
		s.AddConversionFunc((*oldList)(nil), (*v1List)(nil), func(in, out any, _ conversion.Scope) error {
			from, to := in.(*oldList), out.(*v1List)
			to.ListMeta, to.Items = from.ListMeta, make([]v1, len(from.Items))
			for i := range from.Items {
				if err := from.Items[i].ToV1(&to.Items[i]); err != nil {
					return err
				}
			}
			return nil
		}),
		s.AddConversionFunc((*v1List)(nil), (*oldList)(nil), func(in, out any, _ conversion.Scope) error {
			from, to := in.(*v1List), out.(*oldList)
			to.ListMeta, to.Items = from.ListMeta, make([]old, len(from.Items))
			for i := range from.Items {
				if err := to.Items[i].FromV1(&from.Items[i]); err != nil {
					return err
				}
			}
			return nil
		}),
	)
}
