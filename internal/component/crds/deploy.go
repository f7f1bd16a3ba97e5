package crds

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

// mappedWithin is how long the discovery of a new kind may take.
const mappedWithin = time.Minute

// Deploy applies definitions for a field owner, and returns when the API server serves them all. The client's scheme has to have the kind
// CustomResourceDefinition.
func Deploy(ctx context.Context, c client.WithWatch, owner string, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	objects := make([]client.Object, 0, len(definitions))
	for _, definition := range definitions {
		objects = append(objects, definition)
	}
	if err := kube.Apply(ctx, c, owner, objects...); err != nil {
		return err
	}
	if err := kube.Await(ctx, c, &apiextensionsv1.CustomResourceDefinitionList{}, func(served []*apiextensionsv1.CustomResourceDefinition) error {
		byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
		for _, definition := range served {
			byName[definition.Name] = definition
		}
		for _, definition := range definitions {
			if byName[definition.Name] == nil {
				return fmt.Errorf("CustomResourceDefinition %q does not exist", definition.Name)
			}
			if err := kube.Healthy(byName[definition.Name]); err != nil {
				return fmt.Errorf("CustomResourceDefinition %q: %w", definition.Name, err)
			}
		}
		return nil
	}, nil); err != nil {
		return err
	}
	for _, definition := range definitions {
		if err := awaitMapping(ctx, c.RESTMapper(), definition); err != nil {
			return fmt.Errorf("CustomResourceDefinition %q is not served: %w", definition.Name, err)
		}
	}
	return nil
}

// awaitMapping waits until discovery has a kind, a moment after the API server serves it. Discovery cannot be watched.
func awaitMapping(ctx context.Context, mapper meta.RESTMapper, definition *apiextensionsv1.CustomResourceDefinition) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, mappedWithin, true, func(context.Context) (bool, error) {
		for _, version := range definition.Spec.Versions {
			if !version.Served {
				continue
			}
			if _, last = mapper.RESTMapping(schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}, version.Name); last != nil {
				return false, nil
			}
		}
		return true, nil
	})
	return errors.Join(err, last)
}
