package systemcomponents

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/internal/component/crds"
)

// deployForeignCRDs applies the CRDs of kinds without a controller of Gardener that extensions create objects of. A CRD that another party has installed, before or
// since, stays unchanged: its controller may need the versions and their schemas.
func (in *Inputs) deployForeignCRDs(ctx context.Context) error {
	definitions, err := crds.Foreign()
	if err != nil {
		return err
	}
	autoscaling, err := crds.Autoscaling()
	if err != nil {
		return err
	}
	definitions = append(definitions, autoscaling...)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := in.API.List(ctx, list); err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}
	foreign := map[string]bool{}
	for _, existing := range list.Items {
		foreign[existing.Name] = !slices.ContainsFunc(existing.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == in.FieldManager && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:versions"`))
		})
	}
	definitions = slices.DeleteFunc(definitions, func(definition *apiextensionsv1.CustomResourceDefinition) bool { return foreign[definition.Name] })
	return crds.Deploy(ctx, in.API, in.FieldManager, definitions...)
}
