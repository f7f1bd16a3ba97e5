package crds

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// maxSize is the most that a manifest may take as JSON, so that `kubectl apply` can keep a copy of it in an annotation, which may
// have 256 KiB together with all others.
const maxSize = 240 << 10

func TestDefinitionsAreValid(t *testing.T) {
	for group, get := range map[string]func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		"autoscaling.gardener.cloud": Autoscaling,
		"dashboard.gardener.cloud":   Dashboard,
		"druid.gardener.cloud":       Druid,
		"extensions.gardener.cloud":  Extensions,
		"gateway.networking.k8s.io":  Gateway,
		"autoscaling.k8s.io":         VerticalPodAutoscaler,
		"machine.sapcloud.io":        Machine,
		"operator.gardener.cloud":    Operator,
		"resources.gardener.cloud":   Resources,
	} {
		t.Run(group, func(t *testing.T) {
			crds, err := get()
			if err != nil {
				t.Fatal(err)
			}
			if len(crds) == 0 {
				t.Error("there are no definitions")
			}
			if !slices.IsSortedFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) }) {
				t.Error("they are not sorted by name")
			}
			for _, crd := range crds {
				if crd.Spec.Group != group {
					t.Errorf("%s is of group %s", crd.Name, crd.Spec.Group)
				}
				data, err := json.Marshal(crd)
				if err != nil {
					t.Fatal(err)
				}
				if len(data) > maxSize {
					t.Errorf("%s has %d bytes, more than %d", crd.Name, len(data), maxSize)
				}
				// The API server's own validation: structural schema, cost of rules, names.
				apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
				apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
				internal := &apiextensions.CustomResourceDefinition{}
				if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
					t.Fatal(err)
				}
				internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
				if errs := validation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
					t.Errorf("%s: %v", crd.Name, errs.ToAggregate())
				}
			}
		})
	}
}
