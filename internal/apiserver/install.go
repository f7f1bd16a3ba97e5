package apiserver

import (
	"fmt"
	"reflect"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	openapibuilder "k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// install serves groups. GenericAPIServer.InstallAPIGroups does the same, but takes no type converter.
func install(server *genericapiserver.GenericAPIServer, config *genericapiserver.Config, groups []*genericapiserver.APIGroupInfo) error {
	for _, group := range groups {
		converter, err := newTypeConverter(config, group)
		if err != nil {
			return fmt.Errorf("type converter of %s: %w", group.PrioritizedVersions[0].Group, err)
		}
		if err := installGroup(server, config, group, converter); err != nil {
			return fmt.Errorf("install group %s: %w", group.PrioritizedVersions[0].Group, err)
		}
	}
	return nil
}

func installGroup(
	server *genericapiserver.GenericAPIServer, config *genericapiserver.Config, group *genericapiserver.APIGroupInfo, converter managedfields.TypeConverter,
) error {
	discovered := metav1.APIGroup{}
	versionsOf := map[string][]string{}
	for _, version := range group.PrioritizedVersions {
		for resource := range group.VersionedResourcesStorageMap[version.Version] {
			versionsOf[resource] = append(versionsOf[resource], version.String())
		}
	}
	for _, version := range group.PrioritizedVersions {
		stores := group.VersionedResourcesStorageMap[version.Version]
		if len(stores) == 0 {
			continue
		}
		served := &genericapi.APIGroupVersion{
			Storage: stores, Root: genericapiserver.APIGroupPrefix, GroupVersion: version, AllServedVersionsByResource: versionsOf,
			MetaGroupVersion: group.MetaGroupVersion, OptionsExternalVersion: group.OptionsExternalVersion,
			ParameterCodec: group.ParameterCodec, Serializer: group.NegotiatedSerializer,
			//nolint:misspell // the library calls it so
			Typer: group.Scheme, Creater: group.Scheme, Convertor: group.Scheme, ConvertabilityChecker: group.Scheme, Defaulter: group.Scheme,
			Namer: runtime.Namer(meta.NewAccessor()), UnsafeConvertor: convertor{group.Scheme}, TypeConverter: converter,
			EquivalentResourceRegistry: server.EquivalentResourceRegistry, Authorizer: server.Authorizer, Admit: config.AdmissionControl,
			MinRequestTimeout: time.Duration(config.MinRequestTimeout) * time.Second, MaxRequestBodyBytes: config.MaxRequestBodyBytes,
		}
		resources, _, err := served.InstallREST(server.Handler.GoRestfulContainer)
		if err != nil {
			return err
		}
		server.AggregatedDiscoveryGroupManager.AddGroupVersion(version.Group, apidiscoveryv2.APIVersionDiscovery{
			Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: version.Version, Resources: resources,
		})
		discovered.Versions = append(discovered.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
		for resource, store := range stores {
			server.RegisterDestroyFunc(store.Destroy)
			if store, ok := store.(rest.StorageWithReadiness); ok {
				server.StorageReadinessHook.RegisterStorage(metav1.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: resource}, store)
			}
		}
	}
	discovered.Name, discovered.PreferredVersion = group.PrioritizedVersions[0].Group, discovered.Versions[0]
	server.DiscoveryGroupManager.AddGroup(discovered)
	server.Handler.GoRestfulContainer.Add(discovery.NewAPIGroupHandler(server.Serializer, discovered).WebService())
	return nil
}

// newTypeConverter returns the type converter for the kinds of a group.
func newTypeConverter(config *genericapiserver.Config, group *genericapiserver.APIGroupInfo) (managedfields.TypeConverter, error) {
	var names []string
	for _, version := range group.PrioritizedVersions {
		for _, store := range group.VersionedResourcesStorageMap[version.Version] {
			kind, err := genericapi.GetResourceKind(version, store, group.Scheme)
			if err != nil {
				return nil, err
			}
			obj, err := group.Scheme.New(kind)
			if err != nil {
				return nil, err
			}
			names = append(names, openapiutil.GetCanonicalTypeName(obj))
		}
	}
	definitions, err := openapibuilder.BuildOpenAPIDefinitionsForResources(config.OpenAPIV3Config, names...)
	if err != nil {
		return nil, err
	}
	all, err := managedfields.NewTypeConverter(definitions, false)
	return typeConverter{all}, err
}

// typeConverter shows the machinery of managed fields objects without their managed fields, which it leaves out of its results anyway.
// Otherwise it reads them as JSON several times per request, a seventh of the memory that a patch allocates.
type typeConverter struct{ managedfields.TypeConverter }

// ObjectToTyped implements managedfields.TypeConverter.
func (c typeConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if object, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if objectMeta, ok := object.GetObjectMeta().(*metav1.ObjectMeta); ok && len(objectMeta.ManagedFields) > 0 {
			obj = shallowCopy(obj)
			obj.(metav1.Object).SetManagedFields(nil)
		}
	}
	return c.TypeConverter.ObjectToTyped(obj, options...)
}

// convertor converts for the machinery of managed fields. Where the stored type is the served one, the library's gives the very object
// of the store its kind. That then differs from what a request makes of it, so that applying the same again would write.
type convertor struct{ *runtime.Scheme }

// ConvertToVersion implements runtime.ObjectConvertor.
func (c convertor) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	return c.UnsafeConvertToVersion(shallowCopy(in), target)
}

// shallowCopy copies the outermost struct, for changes of type and metadata. What it points to is shared, and must only be read.
func shallowCopy(obj runtime.Object) runtime.Object {
	out := reflect.New(reflect.TypeOf(obj).Elem())
	out.Elem().Set(reflect.ValueOf(obj).Elem())
	return out.Interface().(runtime.Object)
}
