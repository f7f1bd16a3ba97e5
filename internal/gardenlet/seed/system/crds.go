package system

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/kube"
)

// crdTimeout is the end of DeployCRDs. An API server that gets a dozen CRDs at once takes some seconds to serve them.
const crdTimeout = 2 * time.Minute

// DeployCRDs creates the CRDs of what controllers of the gardenlet watch. They must be served before these controllers start.
func DeployCRDs(ctx context.Context, seedAPI client.WithWatch) error {
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	extensions, err := crds.Extensions()
	if err != nil {
		return err
	}
	resources, err := crds.Resources()
	if err != nil {
		return err
	}
	druid, err := crds.Druid()
	if err != nil {
		return err
	}
	if err := crds.Deploy(ctx, seedAPI, fieldManager, slices.Concat(extensions, resources, druid)...); err != nil {
		return err
	}
	return createMissingVPACRDs(ctx, seedAPI)
}

// createMissingVPACRDs creates the CRDs of the Vertical Pod Autoscaler where they are missing. Those of a Vertical Pod Autoscaler that
// another party has installed stay unchanged.
func createMissingVPACRDs(ctx context.Context, seedAPI client.WithWatch) error {
	definitions, err := crds.VerticalPodAutoscaler()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		err := seedAPI.Get(ctx, client.ObjectKeyFromObject(definition), kube.Metadata(definition.GroupVersionKind()))
		if apierrors.IsNotFound(err) {
			err = crds.Deploy(ctx, seedAPI, fieldManager, definition)
		}
		if err != nil {
			return fmt.Errorf("create CRD %q: %w", definition.Name, err)
		}
	}
	return nil
}

// deployCRDs returns what a task runs to apply CRDs and to wait until they are served.
func (r *reconciler) deployCRDs(read func() ([]*apiextensionsv1.CustomResourceDefinition, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		definitions, err := read()
		if err != nil {
			return err
		}
		return crds.Deploy(ctx, r.SeedAPI, fieldManager, definitions...)
	}
}
