// Package chart pulls Helm charts, and prepares their values and their pods.
package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/helm"
)

// ErrInvalid is for errors that only a change of a chart, of its values or of what they refer to can fix.
var ErrInvalid = errors.New("not valid")

// Withheld is in the place of a text that may quote values.
const Withheld = "the error is not shown, as values of the chart are data of Secrets"

// Resources is the data of Secrets and ConfigMaps that values refer to, by the names that placeholders use.
type Resources struct {
	data map[string]map[string]string
	// secret says that some of it is from Secrets.
	secret bool
}

// ReadResources reads Secrets and ConfigMaps from the namespace "garden".
func ReadResources(ctx context.Context, reader client.Reader, refs []gardencorev1.NamedResourceReference) (*Resources, error) {
	resources := &Resources{data: map[string]map[string]string{}, secret: UsesSecrets(refs)}
	for _, resource := range refs {
		data, key := map[string]string{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: resource.ResourceRef.Name}
		var err error
		switch resource.ResourceRef.Kind {
		case "Secret":
			secret := &corev1.Secret{}
			if err = reader.Get(ctx, key, secret); err == nil {
				for name, value := range secret.Data {
					data[name] = string(value)
				}
			}
		case "ConfigMap":
			configMap := &corev1.ConfigMap{}
			if err = reader.Get(ctx, key, configMap); err == nil {
				data = configMap.Data
			}
		default:
			err = fmt.Errorf("%w: kind %q is not supported, only Secret and ConfigMap", ErrInvalid, resource.ResourceRef.Kind)
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

// Expand replaces the placeholders in values.
func (d *Resources) Expand(values map[string]any) error {
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

// Withheld returns an error of a chart without its text if values are data of Secrets. Templates and parsers quote what they fail on, in
// any encoding that templates can write.
func (d *Resources) Withheld(err error) error {
	if !d.secret {
		return err
	}
	at := "chart"
	var of *helm.Error
	if errors.As(err, &of) {
		at = of.At
	}
	return fmt.Errorf("%s: %s", at, Withheld)
}

// UsesSecrets reports whether values that refer to resources are data of Secrets.
func UsesSecrets(refs []gardencorev1.NamedResourceReference) bool {
	return slices.ContainsFunc(refs, func(r gardencorev1.NamedResourceReference) bool { return r.ResourceRef.Kind == "Secret" })
}
