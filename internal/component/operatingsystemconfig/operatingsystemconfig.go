// Package operatingsystemconfig renders the node configuration of a shoot: the systemd units and files of new machines, and those that
// the gardener-node-agent keeps up to date on nodes.
//
// A worker pool has two OperatingSystemConfigs in the shoot's namespace of the seed. The one with purpose provision becomes user data
// and only has a script that fetches the gardener-node-agent. The one with purpose reconcile has everything else; when the extension of
// the operating system has added its part, NodeAgentSecret packs it into a Secret of the shoot, which node agents read.
// Access renders the permissions of node agents in the shoot. Rendering is pure, and nothing is applied here.
//
// The names end in the hash of everything that needs new machines, see PoolHash: with another hash, machines are replaced. Those of pools that are updated
// in place have no hash, as their machines stay.
package operatingsystemconfig

import (
	"fmt"
	"net"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// PlaceholderBootstrapToken in user data is replaced by the machine-controller-manager with the bootstrap token of a machine, in
	// the form abcdef.0123456789abcdef.
	PlaceholderBootstrapToken = "<<BOOTSTRAP_TOKEN>>"
	// PlaceholderMachineName in user data is replaced by the machine-controller-manager with the name of the Machine.
	PlaceholderMachineName = "<<MACHINE_NAME>>"
)

// Values are what the worker pools of a shoot have in common, and the pools.
type Values struct {
	// Namespace is the shoot's namespace in the seed.
	Namespace string
	// KubernetesVersion is that of the control plane, such as 1.36.3. Pools may have an older one.
	KubernetesVersion string
	// APIServerURL is the URL of the kube-apiserver for nodes, such as https://api.crazy-botany.dev.internal.example.com.
	APIServerURL string
	// ClusterCABundle is the CA bundle of the kube-apiserver, as PEM.
	ClusterCABundle []byte
	// KubeletCABundle is the CA bundle for clients of kubelets, as PEM: that of ca-kubelet.
	KubeletCABundle []byte
	// ClusterDomain is the domain of Services. The default is cluster.local.
	ClusterDomain string
	// ClusterDNS are the addresses that pods send their DNS queries to.
	ClusterDNS []net.IP
	// Kubelet is spec.kubernetes.kubelet of the Shoot, which pools may override.
	Kubelet *corev1beta1.KubeletConfig
	// SSHPublicKeys are the keys, in the format of authorized_keys, that the user gardener can log in with. Without any, the SSH server
	// of the machines is stopped.
	SSHPublicKeys []string
	// TokenSecrets are the Secrets in kube-system of the shoot whose tokens node agents write to files.
	TokenSecrets []nodeagentconfigv1alpha1.TokenSecretSyncConfig
	// Pools are the worker pools.
	Pools []Pool
}

// Rotation has the times when rotations of credentials on machines were last initiated.
type Rotation struct {
	// CertificateAuthorities is for status.credentials.rotation.certificateAuthorities, and ServiceAccountKey for serviceAccountKey.
	CertificateAuthorities, ServiceAccountKey *metav1.Time
	// Rollout is when a rollout of the pool was last requested: its entry in status.manualWorkerPoolRollout.
	Rollout *metav1.Time
}

// Pool is a worker pool.
type Pool struct {
	// Worker is the entry in spec.provider.workers of the Shoot.
	Worker corev1beta1.Worker
	// Hash is the hash of the pool's machines, see PoolHash. It is empty for a pool that is updated in place.
	Hash string
	// Rotation has the times when credentials of the pool were rotated, for an update in place. The zero value means never.
	Rotation Rotation
	// NodeAgentImage is the image with all processes of Gardener, for the architecture of the pool. The node agent is extracted from it.
	NodeAgentImage string
	// SandboxImage is the image of the container that holds the namespaces of a pod, for the architecture of the pool.
	SandboxImage string
	// KubeletImage is an image with /usr/local/bin/kubelet and /usr/local/bin/kubectl in the version and for the architecture of the pool.
	KubeletImage string
	// Labels are those of the pool's nodes. The kubelet sets those of them that it may set itself.
	Labels map[string]string
	// Registries are the registry configurations of containerd.
	Registries []extensionsv1alpha1.RegistryConfig
	// KubeletDataVolumeSize is the size in bytes of the data volume that Worker.KubeletDataVolumeName names.
	KubeletDataVolumeSize *int64
}

// KubernetesVersion is that of a pool: its own, or the control plane's.
func KubernetesVersion(worker *corev1beta1.Worker, controlPlane string) string {
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		return *worker.Kubernetes.Version
	}
	return controlPlane
}

const suffixReconcile = "-original"

// Name is the name of the OperatingSystemConfig of a pool for a purpose.
func Name(pool, hash string, purpose extensionsv1alpha1.OperatingSystemConfigPurpose) string {
	suffix := suffixReconcile
	if purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		suffix = "-init"
	}
	return SecretName(pool, hash) + suffix
}

// SecretName is the name of the Secret in kube-system of the shoot with the node configuration of a pool. It is in
// spec.pools[].nodeAgentSecretName of the Worker, and in a label of nodes.
func SecretName(pool, hash string) string {
	if hash == "" {
		return secretPrefix + pool
	}
	return secretPrefix + pool + "-" + hash
}

const (
	secretPrefix = "gardener-node-agent-"
	// hashLength is the length of a hash of PoolHash.
	hashLength = 16
)

// IsSecretOf reports whether a Secret has the name of a configuration of a pool, with any hash. The name of another pool may begin with the name of this one
// and a dash, but is too short to end like a hash.
func IsSecretOf(pool, secret string) bool {
	hash, ok := strings.CutPrefix(secret, SecretName(pool, "")+"-")
	return pool != "" && (secret == SecretName(pool, "") || ok && len(hash) == hashLength && !strings.Contains(hash, "-"))
}

// HashOf is the hash in the name of the OperatingSystemConfig of a pool with purpose reconcile.
func HashOf(pool, name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(name, suffixReconcile), SecretName(pool, "")), "-")
}

// Objects renders the OperatingSystemConfigs: two per pool, in the order of the pools, that for provisioning first.
func Objects(v Values) ([]client.Object, error) {
	if v.ClusterDomain == "" {
		v.ClusterDomain = constants.DefaultDomain
	}
	var objects []client.Object
	for i := range v.Pools {
		pool := &v.Pools[i]
		if pool.Worker.Machine.Image == nil {
			return nil, fmt.Errorf("worker pool %q has no machine image", pool.Worker.Name)
		}
		agent, err := agentFiles(&v, pool)
		if err != nil {
			return nil, err
		}
		provision := osc(&v, pool, extensionsv1alpha1.OperatingSystemConfigPurposeProvision)
		provision.Spec.Units, provision.Spec.Files = provisioning(pool, agent)
		reconcile := osc(&v, pool, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
		if reconcile.Spec.Units, reconcile.Spec.Files, err = reconciling(&v, pool, agent); err != nil {
			return nil, err
		}
		reconcile.Spec.CRIConfig.CgroupDriver = new(extensionsv1alpha1.CgroupDriverSystemd)
		reconcile.Spec.CRIConfig.Containerd = &extensionsv1alpha1.ContainerdConfig{SandboxImage: pool.SandboxImage, Registries: pool.Registries}
		reconcile.Spec.InPlaceUpdates = inPlaceUpdates(&v, pool)
		objects = append(objects, provision, reconcile)
	}
	return objects, nil
}

// ContainerRuntimeLabels has a label for each additional container runtime of a pool. Its nodes have them for pods, and its OperatingSystemConfigs and the
// namespace of the control plane for webhooks of extensions, which select those that have their runtime.
func ContainerRuntimeLabels(worker *corev1beta1.Worker) map[string]string {
	labels := map[string]string{}
	if worker.CRI != nil {
		for _, runtime := range worker.CRI.ContainerRuntimes {
			labels[fmt.Sprintf(extensionsv1alpha1.ContainerRuntimeNameWorkerLabel, runtime.Type)] = "true"
		}
	}
	return labels
}

func osc(v *Values, pool *Pool, purpose extensionsv1alpha1.OperatingSystemConfigPurpose) *extensionsv1alpha1.OperatingSystemConfig {
	image := pool.Worker.Machine.Image
	labels := ContainerRuntimeLabels(&pool.Worker)
	labels[constants.WorkerPool] = pool.Worker.Name
	return &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: Name(pool.Worker.Name, pool.Hash, purpose),
			Labels: workload.Mutable(labels),
		},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: image.Name, ProviderConfig: image.ProviderConfig}, Purpose: purpose,
			CRIConfig: &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD},
		},
	}
}

// inPlaceUpdates describes the desired state of machines that are updated in place.
func inPlaceUpdates(v *Values, pool *Pool) *extensionsv1alpha1.InPlaceUpdates {
	if !pool.Worker.UpdateStrategy.InPlace() {
		return nil
	}
	updates := &extensionsv1alpha1.InPlaceUpdates{Kubelet: KubernetesVersion(&pool.Worker, v.KubernetesVersion)}
	if version := pool.Worker.Machine.Image.Version; version != nil {
		updates.OperatingSystemVersion = *version
	}
	if r := pool.Rotation; r.CertificateAuthorities != nil || r.ServiceAccountKey != nil {
		updates.CredentialsRotation = &extensionsv1alpha1.CredentialsRotation{}
		if at := r.CertificateAuthorities; at != nil {
			updates.CredentialsRotation.CertificateAuthorities = &extensionsv1alpha1.CARotation{LastInitiationTime: at}
		}
		if at := r.ServiceAccountKey; at != nil {
			updates.CredentialsRotation.ServiceAccountKey = &extensionsv1alpha1.ServiceAccountKeyRotation{LastInitiationTime: at}
		}
	}
	return updates
}
