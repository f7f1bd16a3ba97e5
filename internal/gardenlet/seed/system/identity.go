package system

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// identityOrigin is the key in the ConfigMap cluster-identity that says which component has written it.
const identityOrigin = "origin"

// createIdentity creates the ConfigMap cluster-identity, unless the cluster has one: a seed that is a shoot has that of the shoot. A garden
// without an identity gives its seeds none.
func (s *run) createIdentity(ctx context.Context) error {
	garden, err := identity(ctx, s.GardenAPI)
	if err != nil || garden.Data[constants.ClusterIdentity] == "" {
		return err
	}
	current, err := identity(ctx, s.SeedAPI)
	if err != nil || current.Name != "" {
		return err
	}
	return s.apply(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
		Immutable:  new(true),
		Data: map[string]string{
			constants.ClusterIdentity: seedIdentity(garden.Data[constants.ClusterIdentity], s.seed.Name), identityOrigin: constants.ClusterIdentityOriginSeed,
		},
	})
}

// deleteIdentity deletes the ConfigMap cluster-identity if createIdentity has created it.
func (s *run) deleteIdentity(ctx context.Context) error {
	current, err := identity(ctx, s.SeedAPI)
	if err != nil || current.Data[identityOrigin] != constants.ClusterIdentityOriginSeed {
		return err
	}
	return client.IgnoreNotFound(s.SeedAPI.Delete(ctx, current))
}

// identity reads the ConfigMap with the identity of a cluster. It is empty if there is none.
func identity(ctx context.Context, c client.Reader) (*corev1.ConfigMap, error) {
	configMap, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}
	if err := c.Get(ctx, key, configMap); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %q: %w", key, err)
	}
	return configMap, nil
}

// seedIdentity is unique in all landscapes if the identity of the garden is.
func seedIdentity(garden, seed string) string { return garden + "-" + seed + "-seed" }
