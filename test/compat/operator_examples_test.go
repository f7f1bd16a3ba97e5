package compat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/crds"
	operatorvalidation "gardener.cloud/gardener/internal/validation/operator"
	seedmanagementvalidation "gardener.cloud/gardener/internal/validation/seedmanagement"
	"gardener.cloud/gardener/pkg/helm"
)

// TestOperatorExamples decodes and validates example/operator, as API server and webhooks do, and renders the charts with its values.
func TestOperatorExamples(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, g := range groups {
		if err := g.addToScheme(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	strict := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Yaml: true, Strict: true})
	files, err := filepath.Glob("../../example/operator/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	found := map[string]int{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq("\n"+string(content), "\n---") {
			object, gvk, err := strict.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			found[gvk.Kind]++
			if gvk.Group == operatorv1alpha1.GroupName {
				validateSchema(t, file, gvk.Kind, toJSON(t, []byte(document)))
			}
			var errs field.ErrorList
			switch object := object.(type) {
			case *operatorv1alpha1.Garden:
				operatorv1alpha1.DefaultGarden(object)
				errs = operatorvalidation.ValidateGarden(object)
			case *operatorv1alpha1.Extension:
				errs = operatorvalidation.ValidateExtension(object)
				render(t, file, charts.ProviderLocal, object.Spec.Deployment.Extension.Values.Raw, "gardener", map[string]any{"seed": map[string]any{"name": "first"}})
				admission := object.Spec.Deployment.Admission.Values.Raw
				render(t, file, charts.ProviderLocalAdmissionRuntime, admission, "gardener", map[string]any{
					"runtimeCluster": map[string]any{"priorityClassName": "a"}, "virtualCluster": map[string]any{"namespace": "b"},
				})
				render(t, file, charts.ProviderLocalAdmissionApplication, admission, "gardener", map[string]any{
					"virtualCluster": map[string]any{"serviceAccount": map[string]any{"name": "a", "namespace": "b"}},
				})
			case *seedmanagementv1alpha1.Gardenlet:
				seedmanagementv1alpha1.DefaultGardenlet(object)
				errs = seedmanagementvalidation.ValidateGardenlet(object)
				render(t, file, charts.Gardenlet, []byte("{}"), "config", decoded(t, object.Spec.Config.Raw))
			}
			for _, err := range errs {
				t.Errorf("%s, %s: %v", file, gvk.Kind, err)
			}
		}
	}
	for _, kind := range []string{"Garden", "Extension", "Gardenlet", "Secret"} {
		if found[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
}

// validateSchema validates an object with the schema of its CustomResourceDefinition.
func validateSchema(t *testing.T, file, kind string, raw []byte) {
	t.Helper()
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Names.Kind == kind })
	schema := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(definitions[i].Spec.Versions[0].Schema, schema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range validation.ValidateCustomResource(nil, decoded(t, raw), validator) {
		t.Errorf("%s, schema of %s: %v", file, kind, err)
	}
}

// render renders a chart with values and one more.
func render(t *testing.T, file, name string, raw []byte, key string, value any) {
	t.Helper()
	archive, err := charts.Archive(name)
	if err != nil {
		t.Fatal(err)
	}
	values := decoded(t, raw)
	values[key] = value
	if _, err := helm.Render(archive, helm.Release{
		Name: name, Namespace: "garden", Kubernetes: version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"}, Values: values,
	}); err != nil {
		t.Errorf("%s: %v", file, err)
	}
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := json.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	return values
}
