package landscape

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
)

const (
	// encryptionKeyAge is the age from which on keys for data in etcd are rotated.
	encryptionKeyAge = 90 * 24 * time.Hour
	// encryptionTimeout is how long a rotation may take, with three restarts of an API server.
	encryptionTimeout = 10 * time.Minute
	// encryptionDir is the directory on a machine that has the configuration of the kube-apiserver's encryption.
	encryptionDir = "/etc/machine/encryption"
	// kubeAPIServerManifest is the static pod that kubeadm writes.
	kubeAPIServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
)

// dueRotation returns the state with a rotation initiated, if that was requested or the key is old.
func (u *upRun) dueRotation(state encryption.State) encryption.State {
	now := time.Now()
	if u.rotateKeys || now.Sub(state.Created) > encryptionKeyAge {
		return state.Rotate(now)
	}
	return state
}

// encryptionFile has the state of the encryption by the kube-apiserver of a cluster. It is not in the cluster, as all Secrets of the cluster
// are encrypted with its keys.
func (l *Landscape) encryptionFile(cluster Cluster) string {
	return filepath.Join(l.machineDir(cluster.Machines[0].Name), "encryption.json")
}

// encryptionState returns how far the kube-apiserver of a cluster encrypts, and a state with a new key if it does not.
func (l *Landscape) encryptionState(cluster Cluster) (encryption.State, error) {
	data, err := os.ReadFile(l.encryptionFile(cluster))
	if errors.Is(err, fs.ErrNotExist) {
		return encryption.NewState(time.Now()), nil
	}
	if err != nil {
		return encryption.State{}, err
	}
	state := encryption.State{}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("read %s: %w", l.encryptionFile(cluster), err)
	}
	return state, nil
}

func (l *Landscape) saveEncryptionState(cluster Cluster, state encryption.State) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return host.WriteFile(l.encryptionFile(cluster), data, 0o600)
}

// writeEncryptionConfig writes the configuration of the kube-apiserver's encryption, and returns its path on the machine. Each has a name of
// its own, so that the static pod changes with it.
func (l *Landscape) writeEncryptionConfig(cluster Cluster, keys []encryption.Key) (string, error) {
	config, err := encryption.Configuration(encryption.Values{Keys: keys, Resources: []string{"secrets"}})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(config)
	name := hex.EncodeToString(sum[:8]) + ".yaml"
	if err := host.WriteFile(filepath.Join(l.encryptionConfigs(cluster), name), config, 0o600); err != nil {
		return "", err
	}
	return encryptionDir + "/" + name, nil
}

// encryptionConfigs is the directory that is encryptionDir on the machine.
func (l *Landscape) encryptionConfigs(cluster Cluster) string {
	return filepath.Join(l.userDataDir(cluster.Machines[0].Name), filepath.Base(encryptionDir))
}

// encryptSecrets has the kube-apiserver of a cluster encrypt Secrets in etcd, and rotates its key when it is due.
func (u *upRun) encryptSecrets(ctx context.Context, cluster Cluster, etcdTag string, detail func(string)) error {
	state, err := u.encryptionState(cluster)
	if err != nil {
		return err
	}
	return encryption.Reconcile(ctx, &kubeAPIServerEncryption{upRun: u, cluster: cluster, etcdTag: etcdTag, detail: detail}, u.dueRotation(state))
}

// kubeAPIServerEncryption is the encryption by a kube-apiserver that kubeadm made.
type kubeAPIServerEncryption struct {
	*upRun

	cluster Cluster
	etcdTag string
	detail  func(string)
	config  string // the path on the machine of what was used last
}

func (s *kubeAPIServerEncryption) Save(_ context.Context, state encryption.State) error {
	return s.saveEncryptionState(s.cluster, state)
}

// Use has kubeadm write the static pod again, which the kubelet then restarts.
func (s *kubeAPIServerEncryption) Use(ctx context.Context, keys []encryption.Key) error {
	path, err := s.writeEncryptionConfig(s.cluster, keys)
	if err != nil {
		return err
	}
	s.config = path
	machine := s.cluster.Machines[0]
	_, err = s.client.Run(ctx, machine.Name, nil, "grep", "--quiet", "--fixed-strings", path, kubeAPIServerManifest)
	var exit *containers.ExitError
	if !errors.As(err, &exit) { // it has it, or cannot be read
		return err
	}
	if err := s.writeKubeadmConfig(s.cluster, machine, s.etcdTag, map[string]any{"Encryption": path, "Timeout": kubeadmWait}); err != nil {
		return err
	}
	s.detail("restarting the kube-apiserver")
	_, err = s.client.Run(ctx, machine.Name, nil, "kubeadm", "init", "phase", "control-plane", "apiserver", "--config", "/etc/machine/kubeadm.yaml")
	return err
}

// AwaitUsed returns when the kube-apiserver was restarted. There is nothing to watch while it is down, so this polls it.
func (s *kubeAPIServerEncryption) AwaitUsed(ctx context.Context) error {
	const interval = 500 * time.Millisecond
	c, err := s.Client(s.cluster.Name)
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-apiserver-" + s.cluster.Machines[0].Name}
	var last error
	if err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		if last = c.Get(ctx, key, pod); last != nil {
			return false, nil
		}
		if !slices.Contains(pod.Spec.Containers[0].Command, "--encryption-provider-config="+s.config) {
			last = fmt.Errorf("Pod %q runs with another configuration", key.Name)
			return false, nil
		}
		last = kube.PodReady(pod)
		return last == nil, nil
	}); err != nil {
		return fmt.Errorf("the kube-apiserver does not use its encryption configuration: %w (%w)", last, context.Cause(ctx))
	}
	return s.removeOtherConfigs()
}

// removeOtherConfigs deletes the configurations of before, with keys that are not in use any more.
func (s *kubeAPIServerEncryption) removeOtherConfigs() error {
	dir := s.encryptionConfigs(s.cluster)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == filepath.Base(s.config) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *kubeAPIServerEncryption) Rewrite(ctx context.Context) error {
	c, err := s.Client(s.cluster.Name)
	if err != nil {
		return err
	}
	s.detail("encrypting Secrets")
	return encryption.Rewrite(ctx, c, corev1.Resource("secrets"))
}
