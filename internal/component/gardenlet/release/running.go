package release

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenlet"
)

// Running is what a gardenlet is deployed with that need not be in its Gardenlet.
type Running struct {
	// Chart is the checksum of its chart. Empty if nothing says it.
	Chart string
	// Image is its image.
	Image string
	// ImageVectorOverwrite and ComponentImageVectorOverwrites are its files, as text.
	ImageVectorOverwrite, ComponentImageVectorOverwrites string
	// GardenAddress is the address of the garden in its configuration.
	GardenAddress string
}

// ReadRunning reads what the gardenlet in a cluster is deployed with. It is empty without one. What is deployed counts, and not what a process was
// started with: gardener-operator may have deployed it again a moment ago.
func ReadRunning(ctx context.Context, reader client.Reader) (Running, error) {
	deployment, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenlet.Name}
	if err := reader.Get(ctx, key, deployment); apierrors.IsNotFound(err) {
		return Running{}, nil
	} else if err != nil {
		return Running{}, fmt.Errorf("read Deployment %q: %w", key, err)
	}
	pod := deployment.Spec.Template.Spec
	running := Running{Chart: deployment.Annotations[AnnotationChart]}
	if len(pod.Containers) > 0 {
		running.Image = pod.Containers[0].Image
	}
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		config, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: volume.ConfigMap.Name}
		if err := reader.Get(ctx, key, config); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return Running{}, fmt.Errorf("read ConfigMap %q: %w", key, err)
		}
		switch volume.Name {
		case "gardenlet-imagevector-overwrite":
			running.ImageVectorOverwrite = config.Data["images_overwrite.yaml"]
		case "gardenlet-imagevector-overwrite-components":
			running.ComponentImageVectorOverwrites = config.Data["components_overwrite.yaml"]
		case "configuration":
			current := Configuration{}
			if err := yaml.Unmarshal([]byte(config.Data["config.yaml"]), &current); err != nil {
				return Running{}, fmt.Errorf("configuration in ConfigMap %q: %w", key, err)
			}
			running.GardenAddress = current.text("", "gardenClientConnection", "gardenClusterAddress")
		}
	}
	return running, nil
}

// Runs is the gardenlet that runs in a cluster.
type Runs struct {
	// Any says whether there is one.
	Any bool
	// Seed is the name of its seed. Empty if it is not known.
	Seed string
}

// RunsIn returns the gardenlet that runs in a cluster.
func RunsIn(ctx context.Context, api client.Reader) (Runs, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenlet.Name}
	if err := api.Get(ctx, key, deployment); apierrors.IsNotFound(err) {
		return Runs{}, nil
	} else if err != nil {
		return Runs{}, fmt.Errorf("read Deployment %q: %w", key, err)
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		// The second name is that in deployments of the original.
		if volume.ConfigMap == nil || !slices.Contains([]string{"configuration", "gardenlet-config"}, volume.Name) {
			continue
		}
		config, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: deployment.Namespace, Name: volume.ConfigMap.Name}
		if err := api.Get(ctx, key, config); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return Runs{}, fmt.Errorf("read ConfigMap %q: %w", key, err)
		}
		for _, text := range config.Data {
			found := &gardenletconfigv1alpha1.GardenletConfiguration{}
			if err := yaml.Unmarshal([]byte(text), found); err == nil && found.SeedConfig != nil {
				return Runs{Any: true, Seed: found.SeedConfig.Name}, nil
			}
		}
	}
	return Runs{Any: true}, nil
}
