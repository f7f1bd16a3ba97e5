package operatingsystemconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// HashVersion is the version of PoolHash. A pool keeps the version that its machines were created with, so that a new version of
// Gardener replaces no machines; when its hash changes anyway, it gets the latest version.
type HashVersion int

const (
	// HashVersion1 includes the minor version of Kubernetes, the container runtime, the machine image and credentials.
	HashVersion1 HashVersion = 1
	// HashVersion2 also includes the machine type, the volumes, and the settings of the kubelet that cannot change on a node: its CPU
	// manager policy, reserved resources and eviction thresholds.
	HashVersion2 HashVersion = 2
	// LatestHashVersion is for new pools.
	LatestHashVersion = HashVersion2
)

// PoolHash is a hash of everything about a worker pool that needs new machines. For pools that are updated in place it is empty, as they keep their
// machines. The rotation is that of the Shoot, or one from before it
// for pools whose machines are not replaced by it yet. dnsCache is whether nodes have a DNS cache: pods keep the address of the DNS server
// that they started with.
func PoolHash(
	version HashVersion, worker *corev1beta1.Worker, controlPlaneVersion string, shoot *corev1beta1.KubeletConfig, dnsCache bool, rotation Rotation,
) (string, error) {
	if worker.UpdateStrategy.InPlace() {
		return "", nil
	}
	kubernetes, err := semver.NewVersion(KubernetesVersion(worker, controlPlaneVersion))
	if err != nil {
		return "", fmt.Errorf("worker pool %q: Kubernetes version: %w", worker.Name, err)
	}
	var data []string
	add := func(key string, values ...any) { data = append(data, key+"="+fmt.Sprintln(values...)) }

	cri := corev1beta1.CRINameContainerD
	if worker.CRI != nil {
		cri = worker.CRI.Name
	}
	add("cri", cri)
	if dnsCache {
		add("dnsCache")
	}
	add("kubernetes", kubernetes.Major(), kubernetes.Minor())
	if image := worker.Machine.Image; image != nil {
		add("image", image.Name, ptr.Deref(image.Version, ""))
	}
	add("authorities", unix(rotation.CertificateAuthorities))
	add("serviceAccountKey", unix(rotation.ServiceAccountKey))
	if rotation.Rollout != nil {
		add("rollout", unix(rotation.Rollout))
	}
	if version >= HashVersion2 {
		add("type", worker.Machine.Type)
		if v := worker.Volume; v != nil {
			add("volume", ptr.Deref(v.Name, ""), ptr.Deref(v.Type, ""), v.VolumeSize, ptr.Deref(v.Encrypted, false))
		}
		for _, v := range worker.DataVolumes {
			add("dataVolume", v.Name, ptr.Deref(v.Type, ""), v.VolumeSize, ptr.Deref(v.Encrypted, false))
		}
		add("kubeletDataVolume", ptr.Deref(worker.KubeletDataVolumeName, ""))
		// With defaults, so that setting a default explicitly replaces no machines.
		// Without the other settings that a pool which only sets reserved resources takes from the Shoot: nodes got these without new machines.
		kubelet := ptr.Deref(shoot, corev1beta1.KubeletConfig{})
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
			kubelet = *worker.Kubernetes.Kubelet
		}
		add("cpuManagerPolicy", cpuManagerPolicy(&kubelet))
		add("kubeReserved", reserved(kubelet.KubeReserved))
		add("evictionHard", eviction(kubelet.EvictionHard, defaultEvictionHard))
	}
	sum := sha256.Sum256([]byte(strings.Join(data, "")))
	return hex.EncodeToString(sum[:])[:hashLength], nil
}

func unix(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
