// Package technicalid finds the Shoot whose control plane is in a namespace, by an index of status.technicalID, so that not all Shoots are read.
package technicalid

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// index is the name of the index, which is the path of the field.
const index = "status.technicalID"

// Index adds the index to a cache with Shoots that has not been started.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1beta1.Shoot{}, index, Keys); err != nil {
		return fmt.Errorf("index Shoots by the namespace of their control plane: %w", err)
	}
	return nil
}

// Keys returns the keys of a Shoot in the index: one, or none without a control plane.
func Keys(obj client.Object) []string {
	if id := obj.(*corev1beta1.Shoot).Status.TechnicalID; id != "" { //nolint:forcetypeassert // the kind that is indexed
		return []string{id}
	}
	return nil
}

// Shoot returns the Shoot whose control plane is in a namespace, or nil if there is none. It must not be changed.
func Shoot(ctx context.Context, gardenCache client.Reader, namespace string) (*corev1beta1.Shoot, error) {
	shoots := &corev1beta1.ShootList{}
	if err := gardenCache.List(ctx, shoots, client.MatchingFields{index: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Shoots with a control plane in namespace %q: %w", namespace, err)
	}
	if len(shoots.Items) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	return &shoots.Items[0], nil
}
