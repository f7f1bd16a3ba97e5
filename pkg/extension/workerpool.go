package extension

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// poolHashLength is how much of the hash of a pool is in names.
const poolHashLength = 5

// WorkerPoolHash is a hash of what machines of a pool are created from: when it changes, they are replaced. An extension adds what else its
// machines depend on, such as the image that they boot from. If the pool names a Secret of gardener-node-agent, that name contains a hash of
// all fields that gardenlet takes into account. For a pool that is updated in place, machines are not replaced but updated when it changes, and it includes
// InPlaceHash.
func WorkerPoolHash(pool *extensionsv1alpha1.WorkerPool, cluster *Cluster, additional ...string) (string, error) {
	var source any
	if pool.NodeAgentSecretName != nil {
		source = *pool.NodeAgentSecretName
	} else {
		version := ""
		switch {
		case pool.KubernetesVersion != nil:
			version = *pool.KubernetesVersion
		case cluster != nil && cluster.Shoot != nil:
			version = cluster.Shoot.Spec.Kubernetes.Version
		}
		source = []any{version, pool.MachineType, pool.MachineImage, pool.Volume, pool.DataVolumes, pool.Architecture}
	}
	if pool.UpdateStrategy.InPlace() {
		hash, err := inPlaceHashOf(pool, cluster)
		if err != nil {
			return "", err
		}
		additional = append([]string{hash}, additional...)
	}
	data, err := json.Marshal([]any{source, pool.ProviderConfig, additional})
	if err != nil {
		return "", fmt.Errorf("hash of pool %q: %w", pool.Name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:poolHashLength], nil
}

// Share returns how much of a total a zone gets when it is distributed as evenly as possible.
func Share(total int32, zone, zones int) int32 {
	count := int32(zones)
	share := total / count
	if int32(zone) < total%count {
		share++
	}
	return share
}

// ShareOf is Share for a number or a percentage. A percentage is the same for every zone, as it is a percentage of its own machines.
func ShareOf(total intstr.IntOrString, zone, zones int) intstr.IntOrString {
	if total.Type == intstr.String {
		return total
	}
	return intstr.FromInt32(Share(total.IntVal, zone, zones))
}
