package extension

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// inPlaceHashLength is the length of a hash in status.inPlaceUpdates.workerPoolToHashMap.
const inPlaceHashLength = 16

// InPlaceHash is a hash of what nodes of a pool are brought to by an update in place: the minor version of Kubernetes, the version of the machine image,
// the credentials, and the settings of the kubelet that need an empty node. The gardenlet compares it with the one that the extension has recorded when
// all nodes were updated, so both must use this function.
func InPlaceHash(pool, kubernetesVersion, imageVersion string, kubelet *corev1beta1.KubeletConfig, credentials *corev1beta1.ShootCredentials) (string, error) {
	version, err := semver.NewVersion(kubernetesVersion)
	if err != nil {
		return "", fmt.Errorf("Kubernetes version %q of pool %q: %w", kubernetesVersion, pool, err)
	}
	parts := []string{fmt.Sprintf("%d.%d", version.Major(), version.Minor()), imageVersion}
	if credentials != nil && credentials.Rotation != nil {
		if ca := credentials.Rotation.CertificateAuthorities; ca != nil {
			parts = append(parts, initiation(pool, ca.LastInitiationTime, ca.PendingWorkersRollouts)...)
		}
		if key := credentials.Rotation.ServiceAccountKey; key != nil {
			parts = append(parts, initiation(pool, key.LastInitiationTime, key.PendingWorkersRollouts)...)
		}
	}
	var hashes strings.Builder
	for _, part := range append(parts, kubeletFacts(kubelet)...) {
		hashes.WriteString(sha256Hex(part))
	}
	return sha256Hex(hashes.String())[:inPlaceHashLength], nil
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// initiation is when the rotation began whose credentials the nodes of a pool have, nothing if there was none.
func initiation(pool string, last *metav1.Time, pending []corev1beta1.PendingWorkersRollout) []string {
	if i := slices.IndexFunc(pending, func(p corev1beta1.PendingWorkersRollout) bool { return p.Name == pool }); i >= 0 {
		last = pending[i].LastInitiationTime
	}
	if last == nil {
		return nil
	}
	return []string{last.UTC().String()}
}

func kubeletFacts(kubelet *corev1beta1.KubeletConfig) []string {
	if kubelet == nil {
		return nil
	}
	var parts []string
	if r := kubelet.KubeReserved; r != nil {
		parts = append(parts, strings.Join([]string{quantity(r.CPU), quantity(r.Memory), quantity(r.PID), quantity(r.EphemeralStorage)}, "-"))
	}
	if e := kubelet.EvictionHard; e != nil {
		var values []string
		for _, value := range []*string{e.ImageFSAvailable, e.ImageFSInodesFree, e.MemoryAvailable, e.NodeFSAvailable, e.NodeFSInodesFree} {
			values = append(values, ptr.Deref(value, ""))
		}
		parts = append(parts, strings.Join(values, "-"))
	}
	if policy := kubelet.CPUManagerPolicy; policy != nil {
		parts = append(parts, *policy)
	}
	return parts
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}

// inPlaceHashOf is InPlaceHash of a pool of a Worker.
func inPlaceHashOf(pool *extensionsv1alpha1.WorkerPool, cluster *Cluster) (string, error) {
	version, image := ptr.Deref(pool.KubernetesVersion, ""), ""
	var credentials *corev1beta1.ShootCredentials
	if cluster != nil && cluster.Shoot != nil {
		credentials = cluster.Shoot.Status.Credentials
		if version == "" {
			version = cluster.Shoot.Spec.Kubernetes.Version
		}
	}
	if pool.MachineImage != nil {
		image = pool.MachineImage.Version
	}
	return InPlaceHash(pool.Name, version, image, pool.KubeletConfig, credentials)
}

// UpdateStrategy is the strategy of the MachineDeployments of a pool, given the share of its limits that each has.
func UpdateStrategy(pool *extensionsv1alpha1.WorkerPool, surge, unavailable intstr.IntOrString) machinev1alpha1.MachineDeploymentStrategy {
	limits := machinev1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	if !pool.UpdateStrategy.InPlace() {
		return machinev1alpha1.MachineDeploymentStrategy{
			Type:          machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: limits},
		}
	}
	update := &machinev1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: limits, OrchestrationType: machinev1alpha1.OrchestrationTypeAuto}
	if *pool.UpdateStrategy == corev1beta1.ManualInPlaceUpdate {
		update.OrchestrationType = machinev1alpha1.OrchestrationTypeManual
		zero := intstr.FromInt32(0) // the user decides how many are updated at a time
		update.UpdateConfiguration = machinev1alpha1.UpdateConfiguration{MaxSurge: &zero, MaxUnavailable: &zero}
	}
	return machinev1alpha1.MachineDeploymentStrategy{Type: machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType, InPlaceUpdate: update}
}

// WaitsForSelection reports whether machines of a deployment are updated only when the user selects their nodes, so that a Worker is ready before.
func WaitsForSelection(deployment *machinev1alpha1.MachineDeployment) bool {
	update := deployment.Spec.Strategy.InPlaceUpdate
	return update != nil && update.OrchestrationType == machinev1alpha1.OrchestrationTypeManual
}

// RecordInPlaceUpdates writes the hashes of pools that are updated in place to the status of a Worker, for pools whose machines are updated. It takes the
// MachineDeployments of each pool, as they are.
func RecordInPlaceUpdates(worker *extensionsv1alpha1.Worker, cluster *Cluster, deployments map[string][]*machinev1alpha1.MachineDeployment) error {
	recorded := map[string]string{}
	for i := range worker.Spec.Pools {
		pool := &worker.Spec.Pools[i]
		if !pool.UpdateStrategy.InPlace() {
			continue
		}
		if before := worker.Status.InPlaceUpdates; before != nil && before.WorkerPoolToHashMap[pool.Name] != "" {
			recorded[pool.Name] = before.WorkerPoolToHashMap[pool.Name]
		}
		if len(deployments[pool.Name]) == 0 || slices.ContainsFunc(deployments[pool.Name], func(d *machinev1alpha1.MachineDeployment) bool { return !updated(d) }) {
			continue
		}
		hash, err := inPlaceHashOf(pool, cluster)
		if err != nil {
			return err
		}
		recorded[pool.Name] = hash
	}
	worker.Status.InPlaceUpdates = nil
	if len(recorded) > 0 {
		worker.Status.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: recorded}
	}
	return nil
}

// updated reports whether all machines of a deployment have its template. Those that the user selects count before their nodes are available.
func updated(d *machinev1alpha1.MachineDeployment) bool {
	status := d.Status
	if d.Spec.Replicas+status.Replicas == 0 {
		return true
	}
	return status.ObservedGeneration >= d.Generation && status.UpdatedReplicas >= d.Spec.Replicas &&
		(WaitsForSelection(d) || status.Replicas == d.Spec.Replicas && status.AvailableReplicas >= d.Spec.Replicas)
}
