package operator

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/skew"
)

// checkVersion refuses to start if the version is not made to follow the one that reconciled the Garden last.
func checkVersion(ctx context.Context, runtimeAPI client.Reader, version string, log logr.Logger) error {
	gardens := &operatorv1alpha1.GardenList{}
	if err := runtimeAPI.List(ctx, gardens); meta.IsNoMatchError(err) {
		return nil // the CustomResourceDefinition is new, so that there is no Garden
	} else if err != nil {
		return fmt.Errorf("list Gardens: %w", err)
	}
	for i := range gardens.Items {
		garden := &gardens.Items[i]
		if garden.Status.Gardener == nil || garden.Status.Gardener.Version == "" {
			continue
		}
		last, err := skew.Parse(garden.Status.Gardener.Version)
		if err != nil {
			log.Info("Version of the Garden is not checked, as it cannot be read", "garden", garden.Name, "reason", err.Error())
			continue
		}
		own, err := skew.Parse(version)
		if err != nil {
			log.Info("Version of the Garden is not checked, as that of this process cannot be read", "reason", err.Error())
			return nil //nolint:nilerr // the version of a build may be none
		}
		if err := skew.Follow(last, own); err != nil {
			return fmt.Errorf("Garden %q: %w", garden.Name, err)
		}
	}
	return nil
}
