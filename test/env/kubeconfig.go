package env

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig with the server and the credentials of a configuration.
func Kubeconfig(t *testing.T, of *rest.Config) []byte {
	t.Helper()
	data, err := clientcmd.Write(*kubeconfigOf(of))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// KubeconfigFile writes such a kubeconfig to a file, which exists until the test ends.
func KubeconfigFile(t *testing.T, of *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfigOf(of), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// WithToken returns a configuration of another user of the same server.
func WithToken(of *rest.Config, token string) *rest.Config {
	config := rest.AnonymousClientConfig(of)
	config.BearerToken = token
	return config
}

func kubeconfigOf(of *rest.Config) *clientcmdapi.Config {
	return &clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"garden": {Server: of.Host, CertificateAuthorityData: of.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			"admin": {ClientCertificateData: of.CertData, ClientKeyData: of.KeyData, Token: of.BearerToken},
		},
		Contexts:       map[string]*clientcmdapi.Context{"garden": {Cluster: "garden", AuthInfo: "admin"}},
		CurrentContext: "garden",
	}
}
