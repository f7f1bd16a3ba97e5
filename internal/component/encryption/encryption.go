// Package encryption is the encryption of data at rest by an API server: its configuration, the rotation of its key, and the rewriting of
// what is stored.
package encryption

import (
	"encoding/base64"
	"fmt"
	"slices"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Values say how resources are encrypted at rest.
type Values struct {
	// Keys are tried in this order to read; the first one writes. Empty means that nothing is encrypted.
	Keys []Key
	// Resources are encrypted, such as "secrets" or "shoots.core.gardener.cloud".
	Resources []string
	// PlainResources are read encrypted and in plain text, and written in plain text: they were encrypted, or are to be as soon as all API
	// servers can read them.
	PlainResources []string
}

// Key is a key for encryption at rest.
type Key struct {
	// Provider is aescbc (the default), aesgcm or secretbox.
	Provider corev1beta1.EncryptionProviderType `json:"provider"`
	// Name is that of the key in the configuration. It is stored with everything that the key encrypts.
	Name string `json:"name"`
	// Secret is the key: 32 bytes.
	Secret []byte `json:"secret"`
}

// Configuration renders the file for --encryption-provider-config. It is nil without keys.
func Configuration(v Values) ([]byte, error) {
	if len(v.Keys) == 0 {
		return nil, nil
	}
	providers := make([]apiserverv1.ProviderConfiguration, 0, len(v.Keys)+1)
	for _, key := range v.Keys {
		keys := []apiserverv1.Key{{Name: key.Name, Secret: base64.StdEncoding.EncodeToString(key.Secret)}}
		switch key.Provider {
		case corev1beta1.EncryptionProviderTypeAESCBC, "":
			providers = append(providers, apiserverv1.ProviderConfiguration{AESCBC: &apiserverv1.AESConfiguration{Keys: keys}})
		case corev1beta1.EncryptionProviderTypeAESGCM:
			providers = append(providers, apiserverv1.ProviderConfiguration{AESGCM: &apiserverv1.AESConfiguration{Keys: keys}})
		case corev1beta1.EncryptionProviderTypeSecretbox:
			providers = append(providers, apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: keys}})
		default:
			return nil, fmt.Errorf("encryption provider %q is not known", key.Provider)
		}
	}
	// What was written before, or shall not be encrypted any more, is plain text.
	plain := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	config := apiserverv1.EncryptionConfiguration{}
	config.APIVersion, config.Kind = apiserverv1.SchemeGroupVersion.String(), "EncryptionConfiguration"
	if len(v.Resources) > 0 {
		config.Resources = append(config.Resources, apiserverv1.ResourceConfiguration{
			Resources: v.Resources, Providers: append(slices.Clone(providers), plain),
		})
	}
	if len(v.PlainResources) > 0 {
		config.Resources = append(config.Resources, apiserverv1.ResourceConfiguration{
			Resources: v.PlainResources, Providers: append([]apiserverv1.ProviderConfiguration{plain}, providers...),
		})
	}
	return yaml.Marshal(config)
}
