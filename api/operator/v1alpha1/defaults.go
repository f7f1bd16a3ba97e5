package v1alpha1

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Kinds of extension resources that have defaults of their own.
const (
	kindExtension = "Extension"
	kindWorker    = "Worker"
)

// DefaultGarden fills in the defaults of a Garden. Those in the CustomResourceDefinition are not repeated here.
func DefaultGarden(garden *Garden) {
	networking := &garden.Spec.RuntimeCluster.Networking
	if len(networking.IPFamilies) == 0 {
		networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4}
	}
	kubernetes := &garden.Spec.VirtualCluster.Kubernetes
	apiServer := ensure(&kubernetes.KubeAPIServer)
	corev1beta1.DefaultKubeAPIServer(&apiServer.KubeAPIServerConfig, false)
	ensure(&kubernetes.KubeControllerManager)

	// Both API servers store in the same etcd, so that one setting is enough for most operators.
	gardenerAPIServer := ensure(&garden.Spec.VirtualCluster.Gardener.GardenerAPIServer)
	if provider := &ensure(&gardenerAPIServer.EncryptionConfig).Provider; provider.Type == nil {
		provider.Type = new(*apiServer.EncryptionConfig.Provider.Type)
	}
}

// DefaultExtension fills in the defaults of an Extension.
func DefaultExtension(extension *Extension) {
	worker := false
	for i := range extension.Spec.Resources {
		resource := &extension.Spec.Resources[i]
		if resource.Primary == nil {
			resource.Primary = new(true)
		}
		if resource.Kind == kindExtension && len(resource.ClusterCompatibility) == 0 && slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeShoot) {
			resource.ClusterCompatibility = []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}
		}
		worker = worker || resource.Kind == kindWorker
	}
	// Extensions that manage machines read from the garden.
	if deployment := extension.Spec.Deployment; worker && deployment != nil && deployment.Extension != nil && deployment.Extension.InjectGardenKubeconfig == nil {
		deployment.Extension.InjectGardenKubeconfig = new(true)
	}
}

// ensure creates an optional object if it is nil, and returns it.
func ensure[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}
