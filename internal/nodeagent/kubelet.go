package nodeagent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/access"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

const (
	// kubeletPKI is the directory with the certificates of the kubelet, and kubeletCertificate its current client certificate.
	kubeletPKI         = operatingsystemconfig.KubeletDir + "/pki"
	kubeletCertificate = kubeletPKI + "/kubelet-client-current.pem"
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
	if errors.Is(err, fs.ErrNotExist) && k.root.Exists(operatingsystemconfig.KubeletBootstrapKubeconfig) {
		return nil // that of rebootstrap
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the kubelet has no certificate, and there is no token in %s to request one with",
			nodeagentconfigv1alpha1.BootstrapTokenFilePath)
	}
	if err != nil {
		return err
	}
	kubeconfig, err := access.KubeletBootstrapKubeconfig(k.server.Server, k.server.CAFile, &clientcmdapi.AuthInfo{Token: string(bytes.TrimSpace(token))})
	if err != nil {
		return err
	}
	_, err = k.root.Update(operatingsystemconfig.KubeletBootstrapKubeconfig, kubeconfig, 0o600)
	return err
}

// rebootstrap makes the kubelet request new certificates when it starts, with the client certificate that it has. If it fails half way, it continues.
func (k kubelet) rebootstrap() error {
	certificate, err := k.root.Read(kubeletCertificate)
	if errors.Is(err, fs.ErrNotExist) && k.root.Exists(operatingsystemconfig.KubeletBootstrapKubeconfig) {
		return k.root.Remove(operatingsystemconfig.KubeletKubeconfig)
	}
	if err != nil {
		return err
	}
	// The file has the certificate and the key.
	kubeconfig, err := access.KubeletBootstrapKubeconfig(k.server.Server, k.server.CAFile, &clientcmdapi.AuthInfo{
		ClientCertificateData: certificate, ClientKeyData: certificate,
	})
	if err != nil {
		return err
	}
	if _, err := k.root.Update(operatingsystemconfig.KubeletBootstrapKubeconfig, kubeconfig, 0o600); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(k.root.Path(kubeletPKI)), k.root.Remove(operatingsystemconfig.KubeletKubeconfig))
}

// tidy removes the bootstrap kubeconfig and the token, once the kubelet has a certificate.
func (k kubelet) tidy() error {
	if !k.root.Exists(operatingsystemconfig.KubeletKubeconfig) {
		return nil
	}
	return errors.Join(k.root.Remove(operatingsystemconfig.KubeletBootstrapKubeconfig),
		k.root.Remove(nodeagentconfigv1alpha1.BootstrapTokenFilePath))
}
