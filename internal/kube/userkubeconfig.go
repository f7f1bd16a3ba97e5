package kube

import (
	"errors"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ConfigOfUser returns the configuration of a kubeconfig that a user has written. What would execute a program or read a file of this process is
// refused: commands, plugins and paths. Errors do not quote the content.
func ConfigOfUser(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("kubeconfig: it is not valid")
	}
	for _, user := range config.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return nil, errors.New("kubeconfig: users must have a token, a certificate or a password: commands and plugins are not executed")
		case user.TokenFile != "", user.ClientCertificate != "", user.ClientKey != "":
			return nil, errors.New("kubeconfig: users must have their credentials inline: files are not read")
		}
	}
	for _, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, errors.New("kubeconfig: clusters must have certificate-authority-data: files are not read")
		}
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("kubeconfig: its current context has no cluster with a server and user")
	}
	return out, nil
}
