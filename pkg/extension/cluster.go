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

// Cluster is the decoded Cluster resource: the objects of the garden that describe the shoot which an object belongs to.
type Cluster struct {
	// Name is the name of the Cluster and of the control plane namespace.
	Name string
	// Annotations are those of the Cluster. One of them names the Secret with the generic token kubeconfig of control plane components.
	Annotations map[string]string
	// CloudProfile is the profile of the shoot.
	CloudProfile *corev1beta1.CloudProfile
	// Seed is the seed of the control plane. It is nil if there is none.
	Seed *corev1beta1.Seed
	// Shoot is the shoot, with its status.
	Shoot *corev1beta1.Shoot
}

// ReadCluster reads and decodes a Cluster. It returns nil if there is no Cluster of that name, as for objects that belong to no shoot.
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
		// The error of the decoder is left out: it may quote data of the object.
		if err := part.decode(part.raw.Raw); err != nil {
			return nil, fmt.Errorf("decode spec.%s of Cluster %q: it is not valid JSON of the kind", part.name, object.Name)
		}
	}
	return cluster, nil
}

func into[T any](target **T) func([]byte) error {
	return func(data []byte) error { return json.Unmarshal(data, target) }
}

// SkipReason returns why extensions do not reconcile the objects of a shoot: its last operation has failed for good, or its owner has
// annotated it to be ignored. It is empty if they do, and for a cluster of nil.
func (c *Cluster) SkipReason() string {
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

// forceDeleted says whether the shoot is deleted by force.
func (c *Cluster) forceDeleted() bool {
	if c == nil || c.Shoot == nil || c.Shoot.DeletionTimestamp == nil {
		return false
	}
	force, err := strconv.ParseBool(c.Shoot.Annotations[constants.ConfirmationForceDeletion])
	return err == nil && force
}
