package crds

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

// Deploy applies definitions for a field owner, and returns when the API server serves them all. The client has to know the kind
// CustomResourceDefinition.
func Deploy(ctx context.Context, c client.WithWatch, owner string, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	objects := make([]client.Object, 0, len(definitions))
	for _, definition := range definitions {
		objects = append(objects, definition)
	}
	if err := kube.Apply(ctx, c, owner, objects...); err != nil {
		return err
	}
	return kube.Await(ctx, c, &apiextensionsv1.CustomResourceDefinitionList{}, func(served []*apiextensionsv1.CustomResourceDefinition) error {
		byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
		for _, definition := range served {
			byName[definition.Name] = definition
		}
		for _, definition := range definitions {
			if byName[definition.Name] == nil {
				return fmt.Errorf("CustomResourceDefinition %q is not there", definition.Name)
			}
			if err := kube.Healthy(byName[definition.Name]); err != nil {
				return fmt.Errorf("CustomResourceDefinition %q: %w", definition.Name, err)
			}
		}
		return nil
	}, nil)
}
