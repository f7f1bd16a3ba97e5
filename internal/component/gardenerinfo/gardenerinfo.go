// Package gardenerinfo renders the ConfigMap gardener-info of a garden cluster, which all authenticated users may read.
package gardenerinfo

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/skew"
)

// keyAPIServer is the key of what it says of gardener-apiserver, as YAML.
const keyAPIServer = "gardenerAPIServer"

// APIServer is what it says of gardener-apiserver.
type APIServer struct {
	// Version is the version of gardener-apiserver, such as "v1.150.0".
	Version string `json:"version,omitempty"`
	// WorkloadIdentityIssuerURL is the issuer of the tokens of WorkloadIdentities, which issuer.WorkloadIdentityURL returns.
	WorkloadIdentityIssuerURL string `json:"workloadIdentityIssuerURL,omitempty"`
}

// ConfigMap renders the ConfigMap. gardenrbac has its namespace and the Role for readers.
func ConfigMap(server APIServer) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(server)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenerSystemPublicNamespace, Name: constants.ConfigMapNameGardenerInfo},
		Data:       map[string]string{keyAPIServer: string(text)},
	}, nil
}

// Read returns what the ConfigMap says of gardener-apiserver.
func Read(info *corev1.ConfigMap) (server APIServer, err error) {
	err = yaml.Unmarshal([]byte(info.Data[keyAPIServer]), &server)
	return server, err
}

// Version returns the version of a garden. A garden may not publish it, or not to this client: then the error is one of the API. If the version cannot be read,
// it is a *skew.UnreadableError.
func Version(ctx context.Context, garden client.Reader) (*semver.Version, error) {
	info := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: constants.GardenerSystemPublicNamespace, Name: constants.ConfigMapNameGardenerInfo}
	if err := garden.Get(ctx, key, info); err != nil {
		return nil, fmt.Errorf("read ConfigMap %q of the garden: %w", key, err)
	}
	server, err := Read(info)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %q of the garden: %w", key, err)
	}
	version, err := skew.Parse(server.Version)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %q of the garden: %w", key, err)
	}
	return version, nil
}
