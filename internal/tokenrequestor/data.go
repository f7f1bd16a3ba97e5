package tokenrequestor

import (
	"errors"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// errKubeconfig says that the kubeconfig in a Secret is invalid. Its text must not quote the kubeconfig.
var errKubeconfig = errors.New("the kubeconfig in the Secret is not usable")

// bundleOf returns a function that returns the CA bundle of a cluster. A file is read each time, as it may be replaced.
func bundleOf(config *rest.Config) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(config.CAData) > 0 || config.CAFile == "" {
			return config.CAData, nil
		}
		return os.ReadFile(config.CAFile)
	}
}

// TokenIn returns the token of a Secret, from its own key or from its kubeconfig. It is empty if there is none.
func TokenIn(secret *corev1.Secret) (string, error) {
	raw, ok := secret.Data[resourcesv1alpha1.DataKeyKubeconfig]
	if !ok {
		return string(secret.Data[resourcesv1alpha1.DataKeyToken]), nil
	}
	_, user, _, err := current(raw)
	if err != nil {
		return "", err
	}
	return user.Token, nil
}

// fillData returns the data of a Secret with a token and, if it is not empty, a CA bundle.
func fillData(data map[string][]byte, token string, bundle []byte) (map[string][]byte, error) {
	raw, ok := data[resourcesv1alpha1.DataKeyKubeconfig]
	if !ok {
		data = with(data, resourcesv1alpha1.DataKeyToken, []byte(token))
		if len(bundle) > 0 {
			data = with(data, resourcesv1alpha1.DataKeyCABundle, bundle)
		}
		return data, nil
	}
	config, user, cluster, err := current(raw)
	if err != nil {
		return nil, err
	}
	if user.Token == token && (len(bundle) == 0 || string(cluster.CertificateAuthorityData) == string(bundle)) {
		return data, nil // as it is, whatever its layout
	}
	user.Token = token
	if len(bundle) > 0 {
		cluster.CertificateAuthorityData = bundle
	}
	written, err := clientcmd.Write(*config)
	if err != nil {
		return nil, errKubeconfig
	}
	return with(data, resourcesv1alpha1.DataKeyKubeconfig, written), nil
}

// current reads a kubeconfig and returns the user and the cluster of its current context.
func current(raw []byte) (*clientcmdapi.Config, *clientcmdapi.AuthInfo, *clientcmdapi.Cluster, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, nil, nil, errKubeconfig // the parser's text may quote it
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, nil, nil, fmt.Errorf("%w: there is no context %q", errKubeconfig, config.CurrentContext)
	}
	user, cluster := config.AuthInfos[context.AuthInfo], config.Clusters[context.Cluster]
	if user == nil || cluster == nil {
		return nil, nil, nil, fmt.Errorf("%w: the user or the cluster of context %q is missing", errKubeconfig, config.CurrentContext)
	}
	return config, user, cluster, nil
}

func with(data map[string][]byte, key string, value []byte) map[string][]byte {
	data = maps.Clone(data)
	if data == nil {
		data = map[string][]byte{}
	}
	data[key] = value
	return data
}
