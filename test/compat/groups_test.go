package compat

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
)

// group is an API group version whose Go types are compared with the facts.
type group struct {
	// schema is the name of the schema file. Without it, everything in the group is extra.
	schema string
	// addToScheme registers the types.
	addToScheme func(*runtime.Scheme) error
	// pkg is the directory of the types below the repository's root, and what schemas call it in other groups.
	pkg string
	// more are kinds of the schema that are not registered, because they only appear inside of others.
	more []any
	// protobuf is the key of the group in protobuf.yaml.
	protobuf string
}

var groups = []group{
	{
		schema: "core.gardener.cloud_v1beta1", addToScheme: corev1beta1.AddToScheme, pkg: "core/v1beta1",
		more: []any{corev1beta1.HelmControllerDeployment{}}, protobuf: "github.com.gardener.gardener.pkg.apis.core.v1beta1",
	},
	{
		schema: "core.gardener.cloud_v1", addToScheme: gardencorev1.AddToScheme, pkg: "core/v1",
		protobuf: "github.com.gardener.gardener.pkg.apis.core.v1",
	},
	{
		schema: "security.gardener.cloud_v1alpha1", addToScheme: securityv1alpha1.AddToScheme, pkg: "security/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.security.v1alpha1",
	},
	{
		schema: "seedmanagement.gardener.cloud_v1alpha1", addToScheme: seedmanagementv1alpha1.AddToScheme, pkg: "seedmanagement/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.seedmanagement.v1alpha1",
	},
	{
		schema: "operations.gardener.cloud_v1alpha1", addToScheme: operationsv1alpha1.AddToScheme, pkg: "operations/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.operations.v1alpha1",
	},
	{
		schema: "authentication.gardener.cloud_v1alpha1", addToScheme: authenticationv1alpha1.AddToScheme, pkg: "authentication/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.authentication.v1alpha1",
	},
	{addToScheme: settingsv1alpha1.AddToScheme, pkg: "settings/v1alpha1"},
	{schema: "gardenlet.config.gardener.cloud_v1alpha1", addToScheme: gardenletconfigv1alpha1.AddToScheme, pkg: "config/gardenlet/v1alpha1"},
}

const apiPath = "gardener.cloud/gardener/api/"

// kinds returns the kinds of the group: registered ones without lists, and those that the group names.
func (g group) kinds() map[string]reflect.Type {
	scheme := runtime.NewScheme()
	if err := g.addToScheme(scheme); err != nil {
		panic(err)
	}
	out := map[string]reflect.Type{}
	for gvk, typ := range scheme.AllKnownTypes() {
		if typ.PkgPath() != apiPath+g.pkg {
			continue // added by metav1.AddToGroupVersion
		}
		if items, ok := typ.FieldByName("Items"); ok && items.Type.Kind() == reflect.Slice && typ.Name() == items.Type.Elem().Name()+"List" {
			continue
		}
		out[gvk.Kind] = typ
	}
	for _, obj := range g.more {
		out[reflect.TypeOf(obj).Name()] = reflect.TypeOf(obj)
	}
	return out
}
