package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Cluster is what an extension gets to know of the garden about the shoot that an object belongs to.
type Cluster struct {
	// Name is that of the Cluster and of the control plane namespace.
	Name string
	// Annotations are those of the Cluster. One of them names the Secret with the kubeconfig that components of the control plane use.
	Annotations map[string]string
	// CloudProfile is the profile of the shoot.
	CloudProfile *corev1beta1.CloudProfile
	// Seed is where the control plane is. Nil if there is no seed.
	Seed *corev1beta1.Seed
	// Shoot is the shoot, with its status.
	Shoot *corev1beta1.Shoot
}

// ReadCluster reads and decodes a Cluster. It returns nil if there is none of that name, as for objects that belong to no shoot.
func ReadCluster(ctx context.Context, reader client.Reader, name string) (*Cluster, error) {
	object := &extensionsv1alpha1.Cluster{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, object); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Cluster %q: %w", name, err)
	}
	return decodeCluster(object)
}

func decodeCluster(object *extensionsv1alpha1.Cluster) (*Cluster, error) {
	cluster := &Cluster{Name: object.Name, Annotations: object.Annotations}
	for _, part := range []struct {
		name   string
		raw    *runtime.RawExtension
		decode func([]byte) error
	}{
		{"cloudProfile", &object.Spec.CloudProfile, into(&cluster.CloudProfile)},
		{"seed", object.Spec.Seed, into(&cluster.Seed)},
		{"shoot", &object.Spec.Shoot, into(&cluster.Shoot)},
	} {
		if part.raw == nil || len(part.raw.Raw) == 0 {
			continue
		}
		// Not the error's text: it may quote what is in the object.
		if err := part.decode(part.raw.Raw); err != nil {
			return nil, fmt.Errorf("decode spec.%s of Cluster %q: it is not valid JSON of the kind", part.name, object.Name)
		}
	}
	return cluster, nil
}

func into[T any](target **T) func([]byte) error {
	return func(data []byte) error { return json.Unmarshal(data, target) }
}

// Resting says why extensions leave the objects of a shoot alone: gardenlet has given up on it, or its owner has asked for it. It is
// empty if they do not. A cluster of nil never rests.
func (c *Cluster) Resting() string {
	if c == nil || c.Shoot == nil {
		return ""
	}
	if ignore, err := strconv.ParseBool(c.Shoot.Annotations[constants.ShootIgnore]); err == nil && ignore {
		return "the shoot is to be ignored"
	}
	last := c.Shoot.Status.LastOperation
	if last != nil && last.State == corev1beta1.LastOperationStateFailed && c.Shoot.Status.ObservedGeneration == c.Shoot.Generation {
		return "the shoot has failed"
	}
	return ""
}

// forced tells whether the shoot goes without anybody looking after what is left of it.
func (c *Cluster) forced() bool {
	if c == nil || c.Shoot == nil || c.Shoot.DeletionTimestamp == nil {
		return false
	}
	force, err := strconv.ParseBool(c.Shoot.Annotations[constants.ConfirmationForceDeletion])
	return err == nil && force
}
