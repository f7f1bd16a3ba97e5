package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// minRedacted is the length from which a value is redacted. Shorter ones, such as "true", would make a text unreadable and are no secrets.
const minRedacted = 6

// resourceData is the data of the resources that a ControllerDeployment names, by their names there.
type resourceData struct {
	data map[string]map[string]string
	// secrets are the values of Secrets.
	secrets []string
}

// readResources reads the resources of a ControllerDeployment from the namespace "garden" of the garden.
func (r *reconciler) readResources(ctx context.Context, deployment *gardencorev1.ControllerDeployment) (*resourceData, error) {
	resources := &resourceData{data: map[string]map[string]string{}}
	for _, resource := range deployment.Resources {
		data, key := map[string]string{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: resource.ResourceRef.Name}
		var err error
		switch resource.ResourceRef.Kind {
		case "Secret":
			secret := &corev1.Secret{}
			if err = r.GardenAPI.Get(ctx, key, secret); err == nil {
				for name, value := range secret.Data {
					data[name] = string(value)
					resources.secrets = append(resources.secrets, string(value))
				}
			}
		case "ConfigMap":
			configMap := &corev1.ConfigMap{}
			if err = r.GardenAPI.Get(ctx, key, configMap); err == nil {
				data = configMap.Data
			}
		default:
			err = fmt.Errorf("%w: kind %q is not supported, only Secret and ConfigMap", errInvalid, resource.ResourceRef.Kind)
		}
		if apierrors.IsNotFound(err) {
			err = errors.New("not found")
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %q for resource %q: %w", resource.ResourceRef.Kind, key, resource.Name, err)
		}
		resources.data[resource.Name] = data
	}
	return resources, nil
}

// expandIn replaces the placeholders in values.
func (d *resourceData) expandIn(values map[string]any) error {
	_, err := expand(values, func(resource, key string) (string, error) {
		data, ok := d.data[resource]
		if !ok {
			return "", fmt.Errorf("there is no resource %q", resource)
		}
		value, ok := data[key]
		if !ok {
			return "", fmt.Errorf("resource %q has no key %q", resource, key)
		}
		return value, nil
	})
	return err
}

// redact removes what came from Secrets from a text, as templates and parsers quote what they fail on.
func (d *resourceData) redact(text string) string {
	for _, secret := range d.secrets {
		for _, part := range append(strings.Split(secret, "\n"), secret) {
			if part = strings.TrimSpace(part); len(part) >= minRedacted {
				text = strings.ReplaceAll(text, part, "[redacted]")
			}
		}
	}
	return text
}
