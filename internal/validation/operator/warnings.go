package operator

import (
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Why a field is stored and nothing reads it.
const (
	noEffectYet = "has no effect yet"
	noEffect    = "has no effect in a virtual garden, which has no nodes and pods"
	// API servers have ignored it for long.
	noEffectCache = "has no effect: the size of a watch cache adapts itself"
)

// GardenWarnings returns a warning for each field of a Garden, and for each operation, that is accepted and has no effect.
func GardenWarnings(garden *operatorv1alpha1.Garden) []string {
	var warnings []string
	warn := func(is bool, path *field.Path, text string) {
		if is {
			warnings = append(warnings, path.String()+": "+text)
		}
	}
	runtime, path := &garden.Spec.RuntimeCluster, specPath.Child("runtimeCluster")
	// The kind is required, and there is only one.
	warn(runtime.Ingress.Controller.ProviderConfig != nil, path.Child("ingress", "controller", "providerConfig"), "has no effect: there is no ingress controller")
	for i, family := range runtime.Networking.IPFamilies {
		warn(family != corev1beta1.IPFamilyIPv4, path.Child("networking", "ipFamilies").Index(i), noEffectYet)
	}
	if settings := runtime.Settings; settings != nil && settings.PersistentVolumeClaimAutoscaler != nil {
		warn(settings.PersistentVolumeClaimAutoscaler.Enabled, path.Child("settings", "persistentVolumeClaimAutoscaler", "enabled"), noEffectYet)
	}
	warn(runtime.Volume != nil && runtime.Volume.MinimumSize != nil, path.Child("volume", "minimumSize"), noEffectYet)

	virtual, path := &garden.Spec.VirtualCluster, specPath.Child("virtualCluster")
	if config := virtual.Kubernetes.KubeAPIServer; config != nil {
		warn(sizesCaches(config.WatchCacheSizes), path.Child("kubernetes", "kubeAPIServer", "watchCacheSizes", "default"), noEffectCache)
		//nolint:staticcheck // deprecated in Shoots, and without effect here
		warn(config.OIDCConfig != nil, path.Child("kubernetes", "kubeAPIServer", "oidcConfig"), "has no effect in a virtual garden: use structuredAuthentication")
	}
	if config := virtual.Kubernetes.KubeControllerManager; config != nil {
		path := path.Child("kubernetes", "kubeControllerManager")
		warn(config.HorizontalPodAutoscaler != nil, path.Child("horizontalPodAutoscaler"), noEffect)
		warn(config.NodeCIDRMaskSize != nil, path.Child("nodeCIDRMaskSize"), noEffect)
		warn(config.NodeCIDRMaskSizeIPv6 != nil, path.Child("nodeCIDRMaskSizeIPv6"), noEffect)
		warn(config.NodeMonitorGracePeriod != nil, path.Child("nodeMonitorGracePeriod"), noEffect)
		//nolint:staticcheck // deprecated in Shoots, and without effect here
		warn(config.PodEvictionTimeout != nil, path.Child("podEvictionTimeout"), noEffect)
	}
	if config := virtual.Gardener.GardenerAPIServer; config != nil {
		warn(sizesCaches(config.WatchCacheSizes), path.Child("gardener", "gardenerAPIServer", "watchCacheSizes", "default"), noEffectCache)
	}
	warn(virtual.Gardener.GardenerDashboard != nil, path.Child("gardener", "gardenerDashboard"), noEffectYet)

	operations := strings.Split(garden.Annotations[constants.GardenerOperation], constants.OperationsSeparator)
	warn(slices.Contains(operations, constants.OperationRotateObservabilityCredentials), metadataPath.Child("annotations").Key(constants.GardenerOperation),
		constants.OperationRotateObservabilityCredentials+" renews Secret "+operatorv1alpha1.SecretNameObservabilityIngress+", which no component uses yet")
	return warnings
}

// sizesCaches is whether watch caches are given a size in general.
func sizesCaches(config *corev1beta1.WatchCacheSizes) bool {
	return config != nil && config.Default != nil //nolint:staticcheck // it is warned about
}

// GardenUpdateWarnings returns those of a changed Garden, and one for each change that does nothing, as it is about volumes that exist.
func GardenUpdateWarnings(garden, old *operatorv1alpha1.Garden) []string {
	warnings := GardenWarnings(garden)
	main, events := storages(garden)
	oldMain, oldEvents := storages(old)
	for _, etcd := range []struct {
		name     string
		new, old *operatorv1alpha1.Storage
	}{{"main", main, oldMain}, {"events", events, oldEvents}} {
		if !apiequality.Semantic.DeepEqual(etcd.new, etcd.old) {
			warnings = append(warnings, fmt.Sprintf("%s: counts only when the Etcd is created: volumes that exist are enlarged by spec.storageCapacity of Etcd %setcd-%s",
				specPath.Child("virtualCluster", "etcd", etcd.name, "storage"), operatorv1alpha1.VirtualGardenNamePrefix, etcd.name))
		}
	}
	return warnings
}

// storages returns how the volumes of both etcds are configured. They may be nil.
func storages(garden *operatorv1alpha1.Garden) (main, events *operatorv1alpha1.Storage) {
	etcd := garden.Spec.VirtualCluster.ETCD
	if etcd != nil && etcd.Main != nil {
		main = etcd.Main.Storage
	}
	if etcd != nil && etcd.Events != nil {
		events = etcd.Events.Storage
	}
	return main, events
}

// GardenDeletionWarnings returns a warning for what the deletion of a Garden deletes that others may need.
func GardenDeletionWarnings(garden *operatorv1alpha1.Garden) []string {
	etcd := garden.Spec.VirtualCluster.ETCD
	if etcd == nil || etcd.Main == nil || etcd.Main.Backup == nil {
		return nil
	}
	bucket, prefix, shared := strings.Cut(ptr.Deref(etcd.Main.Backup.BucketName, ""), "/")
	if !shared {
		return nil
	}
	return []string{fmt.Sprintf("%s: the whole bucket %q is deleted with all that is in it, and not only what is under %q",
		specPath.Child("virtualCluster", "etcd", "main", "backup", "bucketName"), bucket, prefix)}
}
