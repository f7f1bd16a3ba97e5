package v1alpha1

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// EncryptionConfigs returns how the kube-apiserver and gardener-apiserver of a Garden encrypt data at rest. Either may be nil.
func (g *Garden) EncryptionConfigs() (kube, gardener *corev1beta1.EncryptionConfig) {
	if config := g.Spec.VirtualCluster.Kubernetes.KubeAPIServer; config != nil {
		kube = config.EncryptionConfig
	}
	if config := g.Spec.VirtualCluster.Gardener.GardenerAPIServer; config != nil {
		gardener = config.EncryptionConfig
	}
	return kube, gardener
}

// EncryptionProvider returns the provider with which the kube-apiserver of a Garden encrypts data at rest, aescbc by default.
func (g *Garden) EncryptionProvider() corev1beta1.EncryptionProviderType {
	kube, _ := g.EncryptionConfigs()
	if kube == nil || kube.Provider.Type == nil {
		return corev1beta1.EncryptionProviderTypeAESCBC
	}
	return *kube.Provider.Type
}

// GardenerEncryptionProvider returns the provider with which gardener-apiserver encrypts data at rest, by default that of the kube-apiserver.
func (g *Garden) GardenerEncryptionProvider() corev1beta1.EncryptionProviderType {
	_, gardener := g.EncryptionConfigs()
	if gardener == nil || gardener.Provider.Type == nil {
		return g.EncryptionProvider()
	}
	return *gardener.Provider.Type
}

// EncryptedResources returns what both API servers of a Garden encrypt besides what they always do.
func (g *Garden) EncryptedResources() []string {
	var resources []string
	kube, gardener := g.EncryptionConfigs()
	for _, config := range []*corev1beta1.EncryptionConfig{kube, gardener} {
		if config != nil {
			resources = slices.Concat(resources, config.Resources)
		}
	}
	return resources
}
