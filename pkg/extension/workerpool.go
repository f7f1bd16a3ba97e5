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

// WorkerPoolHash identifies what machines of a pool are made from: when it changes, they are replaced. What an extension takes into
// account besides, such as the image that machines boot from, is added. What gardenlet knows about is in the name of the Secret of the
// gardener-node-agent, if there is one.
func WorkerPoolHash(pool *extensionsv1alpha1.WorkerPool, cluster *Cluster, additional ...string) (string, error) {
	var made any
	if pool.NodeAgentSecretName != nil {
		made = *pool.NodeAgentSecretName
	} else {
		version := ""
		switch {
		case pool.KubernetesVersion != nil:
			version = *pool.KubernetesVersion
		case cluster != nil && cluster.Shoot != nil:
			version = cluster.Shoot.Spec.Kubernetes.Version
		}
		made = []any{version, pool.MachineType, pool.MachineImage, pool.Volume, pool.DataVolumes, pool.Architecture}
	}
	data, err := json.Marshal([]any{made, pool.ProviderConfig, additional})
	if err != nil {
		return "", fmt.Errorf("hash of pool %q: %w", pool.Name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:poolHashLength], nil
}

// Share returns how much of a number a zone gets, if zones are to have as even a share as possible.
func Share(total int32, zone, zones int) int32 {
	count := int32(zones)
	share := total / count
	if int32(zone) < total%count {
		share++
	}
	return share
}

// ShareOf is Share for a number or a percentage. Of a percentage, every zone gets all, because it is one of its own machines.
func ShareOf(total intstr.IntOrString, zone, zones int) intstr.IntOrString {
	if total.Type == intstr.String {
		return total
	}
	return intstr.FromInt32(Share(total.IntVal, zone, zones))
}
