// Package registry stores the resources of the garden API.
//
// The packages beside it describe the kinds, one package per group and one file per kind; package kind makes strategies, tables and
// stores of the descriptions, which are the same for all.
package registry

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"gardener.cloud/gardener/internal/apiserver/registry/core"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/apiserver/registry/operations"
	"gardener.cloud/gardener/internal/apiserver/registry/security"
	"gardener.cloud/gardener/internal/apiserver/registry/seedmanagement"
	"gardener.cloud/gardener/internal/apiserver/registry/settings"
	"gardener.cloud/gardener/internal/apiserver/scheme"
)

// Settings are what resources depend on besides their types.
type Settings struct {
	Core     core.Settings
	Security security.Settings
}

// kinds are all kinds that are served.
func kinds(s Settings) []kind.Any {
	return slices.Concat(core.Kinds(s.Core), operations.Kinds(), security.Kinds(s.Security), seedmanagement.Kinds(s.Core.Validation), settings.Kinds())
}

// Groups returns all groups with the stores of their resources, ready to be installed.
func Groups(
	s *runtime.Scheme, codecs serializer.CodecFactory, getter generic.RESTOptionsGetter, settings Settings,
) ([]*genericapiserver.APIGroupInfo, error) {
	parameters := runtime.NewParameterCodec(s)
	groups := map[string]*genericapiserver.APIGroupInfo{}
	for _, k := range kinds(settings) {
		gvks := k.GroupVersionKinds()
		group := groups[gvks[0].Group]
		if group == nil {
			info := genericapiserver.NewDefaultAPIGroupInfo(gvks[0].Group, s, parameters, codecs)
			group = &info
			groups[gvks[0].Group] = group
		}
		resources, err := k.Storage(s, getter)
		if err != nil {
			return nil, fmt.Errorf("store of %s: %w", gvks[0].Kind, err)
		}
		for _, gvk := range gvks {
			if err := scheme.AddFieldSelectors(s, gvk, k.FieldSelectors()...); err != nil {
				return nil, fmt.Errorf("field selectors of %s: %w", gvk.Kind, err)
			}
			if group.VersionedResourcesStorageMap[gvk.Version] == nil {
				group.VersionedResourcesStorageMap[gvk.Version] = map[string]rest.Storage{}
			}
			maps.Copy(group.VersionedResourcesStorageMap[gvk.Version], resources)
		}
	}
	var sorted []*genericapiserver.APIGroupInfo
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		sorted = append(sorted, groups[name])
	}
	return sorted, nil
}

// Strategies returns the strategies of all kinds by the version of their Go types, for tests that replay requests without a server.
// They depend on the feature gates and the clock of the settings.
func Strategies(s *runtime.Scheme, settings Settings) map[schema.GroupVersionKind]kind.Strategies {
	out := map[schema.GroupVersionKind]kind.Strategies{}
	for _, k := range kinds(settings) {
		out[k.GroupVersionKinds()[0]] = k.Strategies(s)
	}
	return out
}
