package nodeagent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/access"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

// kubelet manages the bootstrap kubeconfig, with which the kubelet of a new machine requests its first certificate.
type kubelet struct {
	root   rootfs.Dir
	server nodeagentconfigv1alpha1.APIServer
}

// prepare writes the bootstrap kubeconfig, unless the kubelet has a certificate.
func (k kubelet) prepare() error {
	if k.root.Exists(operatingsystemconfig.KubeletKubeconfig) {
		return nil
	}
	token, err := k.root.Read(nodeagentconfigv1alpha1.BootstrapTokenFilePath)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the kubelet has no certificate, and there is no token in %s to request one with",
			nodeagentconfigv1alpha1.BootstrapTokenFilePath)
	}
	if err != nil {
		return err
	}
	kubeconfig, err := access.KubeletBootstrapKubeconfig(k.server.Server, k.server.CAFile, string(bytes.TrimSpace(token)))
	if err != nil {
		return err
	}
	_, err = k.root.Update(operatingsystemconfig.KubeletBootstrapKubeconfig, kubeconfig, 0o600)
	return err
}

// tidy removes the bootstrap kubeconfig and the token, once the kubelet has a certificate.
func (k kubelet) tidy() error {
	if !k.root.Exists(operatingsystemconfig.KubeletKubeconfig) {
		return nil
	}
	return errors.Join(k.root.Remove(operatingsystemconfig.KubeletBootstrapKubeconfig),
		k.root.Remove(nodeagentconfigv1alpha1.BootstrapTokenFilePath))
}
