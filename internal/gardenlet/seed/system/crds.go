package system

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
)

// crdTimeout is the end of DeployCRDs. An API server that gets a dozen CRDs at once takes some seconds to serve them.
const crdTimeout = 2 * time.Minute

// DeployCRDs creates the CRDs of what controllers of the gardenlet watch. They must be served before these controllers start. Where a garden runs
// in the seed, gardener-operator has created them, and keeps them at its own version.
func DeployCRDs(ctx context.Context, seedAPI client.WithWatch) error {
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	if hostsGarden, err := HostsGarden(ctx, seedAPI); err != nil || hostsGarden {
		return err
	}
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
	return systemcomponents.DeployMissingAutoscalerCRDs(ctx, seedAPI, fieldManager)
}
