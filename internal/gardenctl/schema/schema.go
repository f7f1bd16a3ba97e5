// Package schema renders the schemas of Gardener's kinds, for editors and for checks of manifests without a cluster: a JSON schema for each kind and
// version, and an OpenAPI document for each group and version. They are made from the OpenAPI definitions of gardener-apiserver, and from the
// CustomResourceDefinitions that gardener-operator and gardenlets deploy.
package schema

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
)

const (
	// dialect is that of the JSON schemas, which editors and checkers know.
	dialect = "http://json-schema.org/draft-07/schema#"

	definitionsPrefix = "#/definitions/"
	componentsPrefix  = "#/components/schemas/"
)

// object is a JSON object.
type object = map[string]any

// Definitions returns the OpenAPI definitions of gardener-apiserver.
type Definitions = common.GetOpenAPIDefinitions

// kind is a kind in one version, and where its schema is.
type kind struct {
	schema.GroupVersionKind
	// name is that of its component.
	name string
}

// catalog has all schemas, in the form of OpenAPI.
type catalog struct {
	kinds      []kind
	components map[string]object
	// custom are the components that are made from CustomResourceDefinitions. What they require is required.
	custom map[string]bool
}

// Files returns the contents of files by their paths: <group>/<kind>_<version>.json in lower case are JSON schemas, and openapi/apis/<group>/<version>.json
// OpenAPI documents.
func Files(definitions Definitions, version string) (map[string][]byte, error) {
	c, err := newCatalog(definitions)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	add := func(file string, content any) error {
		data, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			return fmt.Errorf("encode %s: %w", file, err)
		}
		files[file] = append(data, '\n')
		return nil
	}
	documents := map[schema.GroupVersion][]kind{}
	for _, k := range c.kinds {
		documents[k.GroupVersion()] = append(documents[k.GroupVersion()], k)
		if err := add(path.Join(k.Group, strings.ToLower(k.Kind)+"_"+k.Version+".json"), c.jsonSchema(k)); err != nil {
			return nil, err
		}
	}
	for groupVersion, kinds := range documents {
		if err := add(path.Join("openapi", "apis", groupVersion.Group, groupVersion.Version+".json"), c.document(kinds, version)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func newCatalog(definitions Definitions) (*catalog, error) {
	c := &catalog{components: map[string]object{}, custom: map[string]bool{}}
	objectMeta, err := c.addAggregated(definitions)
	if err != nil {
		return nil, err
	}
	for _, get := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		crds.Autoscaling, crds.Dashboard, crds.Druid, crds.Extensions, crds.Gateway, crds.Machine, crds.Operator, crds.Resources, crds.VerticalPodAutoscaler,
	} {
		all, err := get()
		if err != nil {
			return nil, err
		}
		for _, definition := range all {
			if err := c.addCustom(definition, objectMeta); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(c.kinds, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	return c, nil
}

// addAggregated adds the kinds of gardener-apiserver. It returns the component of the metadata of all objects.
func (c *catalog) addAggregated(definitions Definitions) (objectMeta string, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1.AddToScheme, corev1beta1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme, settingsv1alpha1.AddToScheme, authenticationv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return "", err
		}
	}
	namer := openapinamer.NewDefinitionNamer(scheme)
	names := []string{openapiutil.GetCanonicalTypeName(metav1.ObjectMeta{})}
	for gvk, typ := range scheme.AllKnownTypes() {
		obj := reflect.New(typ).Interface()
		if _, ok := obj.(metav1.Object); !ok || gvk.Version == runtime.APIVersionInternal {
			continue // lists, and options of requests
		}
		name := openapiutil.GetCanonicalTypeName(obj)
		names = append(names, name)
		component, _ := namer.GetDefinitionName(name)
		c.kinds = append(c.kinds, kind{gvk, component})
	}
	built, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		Info: &spec.Info{}, GetDefinitions: definitions, GetDefinitionName: namer.GetDefinitionName,
	}, names...)
	if err != nil {
		return "", fmt.Errorf("build the OpenAPI definitions of gardener-apiserver: %w", err)
	}
	for name, schema := range built {
		if c.components[name], err = generic(schema); err != nil {
			return "", err
		}
	}
	for _, k := range c.kinds {
		identify(c.components[k.name], k.GroupVersionKind)
	}
	objectMeta, _ = namer.GetDefinitionName(names[0])
	return objectMeta, nil
}

// addCustom adds the served versions of a CustomResourceDefinition.
func (c *catalog) addCustom(definition *apiextensionsv1.CustomResourceDefinition, objectMeta string) error {
	for _, version := range definition.Spec.Versions {
		if !version.Served || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		gvk := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
		labels := strings.Split(gvk.Group, ".")
		slices.Reverse(labels)
		name := strings.Join(append(labels, gvk.Version, gvk.Kind), ".")
		component, err := generic(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		properties, _ := component["properties"].(object)
		if properties == nil {
			properties = object{}
			component["properties"] = properties
		}
		// The API server checks metadata by itself, so that definitions do not describe it.
		properties["metadata"] = object{"allOf": []any{object{"$ref": componentsPrefix + objectMeta}}}
		identify(component, gvk)
		c.components[name], c.custom[name] = component, true
		c.kinds = append(c.kinds, kind{gvk, name})
	}
	return nil
}

// identify lets an object have no other kind than its own.
func identify(component object, gvk schema.GroupVersionKind) {
	component["x-kubernetes-group-version-kind"] = []any{object{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
	properties, _ := component["properties"].(object)
	for name, value := range map[string]string{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind} {
		property, ok := properties[name].(object)
		if !ok {
			property = object{"type": "string"}
			properties[name] = property
		}
		property["enum"] = []any{value}
		delete(property, "default")
	}
	required := []any{"apiVersion", "kind"}
	if more, ok := component["required"].([]any); ok {
		required = append(required, slices.DeleteFunc(more, func(name any) bool { return name == "apiVersion" || name == "kind" })...)
	}
	component["required"] = required
}

// document returns the OpenAPI document of kinds of one version. It has no paths: it is for those who look kinds up.
func (c *catalog) document(kinds []kind, version string) object {
	schemas := object{}
	for _, k := range kinds {
		c.collect(k.name, schemas)
	}
	return object{
		"openapi": "3.0.0", "info": object{"title": "Gardener", "version": version}, "paths": object{}, "components": object{"schemas": schemas},
	}
}

// jsonSchema returns the JSON schema of a kind, with all that it refers to.
func (c *catalog) jsonSchema(k kind) object {
	used := object{}
	c.collect(k.name, used)
	definitions := object{}
	for name, component := range used {
		definitions[name] = convert(component.(object), !c.custom[name])
	}
	out := definitions[k.name].(object)
	delete(definitions, k.name)
	out["required"] = c.components[k.name]["required"]
	if !c.custom[k.name] {
		out["required"] = []string{"apiVersion", "kind"}
	}
	out["$schema"], out["title"] = dialect, k.Kind+" "+k.GroupVersion().String()
	if len(definitions) > 0 {
		out["definitions"] = definitions
	}
	return out
}

// collect adds a component, and those that it refers to.
func (c *catalog) collect(name string, into object) {
	if _, known := into[name]; known {
		return
	}
	into[name] = c.components[name]
	walk(c.components[name], func(o object) {
		if ref, ok := o["$ref"].(string); ok {
			c.collect(strings.TrimPrefix(ref, componentsPrefix), into)
		}
	})
}

// walk visits all JSON objects in a value.
func walk(value any, visit func(object)) {
	switch value := value.(type) {
	case object:
		visit(value)
		for _, v := range value {
			walk(v, visit)
		}
	case []any:
		for _, v := range value {
			walk(v, visit)
		}
	}
}

// generic returns a value as JSON objects.
func generic(value any) (object, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	out := object{}
	return out, json.Unmarshal(data, &out)
}
