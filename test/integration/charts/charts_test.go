// Package charts tests that an API server takes what the charts render: all fields are known, and all objects valid.
package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/schemas"
)

// TestServerDryRun creates the objects of each golden file of the charts, without storing them.
func TestServerDryRun(t *testing.T) {
	files, err := filepath.Glob("../../../charts/testdata/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("there are the files %v: %v", files, err)
	}
	// Services of provider-local have addresses in this network.
	e := env.Start(t, env.Lenient(), env.KubeAPIServerFlags("--service-cluster-ip-range=10.2.0.0/24"))
	if err := apiextensionsv1.AddToScheme(e.Scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	autoscaler, err := crds.VerticalPodAutoscaler()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", autoscaler...); err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents := schemas.Documents(content)
			if len(documents) < 4 {
				t.Errorf("there are only %d objects", len(documents))
			}
			for _, document := range documents {
				object := &unstructured.Unstructured{}
				if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
					t.Fatal(err)
				}
				if namespace := object.GetNamespace(); namespace != "" && !namespaces[namespace] {
					namespaces[namespace] = true
					err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
					if client.IgnoreAlreadyExists(err) != nil {
						t.Fatal(err)
					}
				}
				err := c.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
				if err != nil && !apierrors.IsAlreadyExists(err) { // the names in a chart may be those of another
					t.Errorf("%s %s/%s: %v", object.GetKind(), object.GetNamespace(), object.GetName(), err)
				}
			}
		})
	}
}
