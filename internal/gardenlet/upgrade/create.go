package upgrade

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// ownConfigMap has the Gardenlet of a gardenlet that was not installed by gardener-operator. The chart writes it.
const (
	ownConfigMap    = "gardenlet-selfupgrade-config"
	ownConfigMapKey = "gardenlet.yaml"
)

// createOwn creates the Gardenlet of a gardenlet that was installed by hand, unless it exists.
func createOwn(ctx context.Context, gardenAPI client.Client, seedAPI client.Reader, seedName string) error {
	config, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: ownConfigMap}
	if err := seedAPI.Get(ctx, key, config); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %q: %w", key, err)
	}
	object := &seedmanagementv1alpha1.Gardenlet{}
	if err := yaml.UnmarshalStrict([]byte(config.Data[ownConfigMapKey]), object); err != nil {
		return fmt.Errorf("key %s of ConfigMap %q: %w", ownConfigMapKey, key, err)
	}
	if object.Namespace != constants.GardenNamespace || object.Name != seedName {
		return fmt.Errorf("key %s of ConfigMap %q: the Gardenlet must have the name %q of the seed and the namespace %q", ownConfigMapKey, key, seedName, constants.GardenNamespace)
	}
	switch err := gardenAPI.Create(ctx, object); {
	case apierrors.IsAlreadyExists(err):
		return nil // an operator changes it from now on
	case err != nil:
		return fmt.Errorf("create Gardenlet %q: %w", object.Name, err)
	}
	logf.FromContext(ctx).Info("Created Gardenlet for updates of the gardenlet", "name", object.Name)
	return nil
}
