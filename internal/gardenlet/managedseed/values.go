package managedseed

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
)

const (
	// annotationBackupChecksum is on the pods of a gardenlet, so that they start again when the credentials for backups change.
	annotationBackupChecksum = "checksum/seed-backup-secret"
	// annotationBootstrapped is on the pods of a gardenlet, with the time at which it got new bootstrap credentials: it reads them when it starts.
	annotationBootstrapped = "seedmanagement.gardener.cloud/bootstrapped-at"
	// annotationRenewal is on a ManagedSeed while its gardenlet is given a new client certificate, with when that has begun and the UID of the Secret with
	// the kubeconfig that is replaced, which may be empty.
	annotationRenewal = "seedmanagement.gardener.cloud/renewal"
	// envAPIServer is the address of the API server in pods.
	envAPIServer = "KUBERNETES_SERVICE_HOST"
)

// parentConfiguration returns what of the configuration of a gardenlet others inherit: not its Seed, not with which credentials it connects, and not
// the addresses of its load balancers.
func parentConfiguration(config *gardenletconfigv1alpha1.GardenletConfiguration) (map[string]any, error) {
	config = config.DeepCopy()
	gateways := []*gardenletconfigv1alpha1.SNI{config.SNI}
	for _, handler := range config.ExposureClassHandlers {
		gateways = append(gateways, handler.SNI)
	}
	for _, sni := range gateways {
		if sni != nil && sni.Ingress != nil {
			sni.Ingress.ServiceExternalIP = nil
		}
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of the gardenlet: %w", err)
	}
	for _, path := range [][]string{
		{"gardenClientConnection", "bootstrapKubeconfig"},
		{"gardenClientConnection", "kubeconfigSecret"},
		{"gardenClientConnection", "kubeconfig"},
		{"seedClientConnection", "kubeconfig"},
		{"seedConfig"},
	} {
		unstructured.RemoveNestedField(out, path...)
	}
	return out, nil
}

// merged returns a configuration with all fields of another set. Objects are merged, everything else is replaced.
func merged(base, over map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(base)
	for key, value := range over {
		below, isObject := value.(map[string]any)
		before, wasObject := out[key].(map[string]any)
		switch {
		case isObject && wasObject:
			out[key] = merged(before, below)
		case out[key] == nil || !unset(key, value):
			out[key] = value
		}
	}
	return out
}

// alwaysEncoded are the fields that the API server encodes with their zero values, as they are no pointers in the types of Kubernetes.
var alwaysEncoded = []string{"qps", "burst", "leaseDuration", "renewDeadline", "retryPeriod"}

// unset says whether the value of a field is that of one that was left out.
func unset(key string, value any) bool {
	switch value {
	case nil, "":
		return true
	case float64(0), "0s":
		return slices.Contains(alwaysEncoded, key)
	}
	return false
}

// asGardenlet returns the Gardenlet that would request what a ManagedSeed does, with what it inherits from the parent.
func asGardenlet(object *seedmanagementv1alpha1.ManagedSeed, parent map[string]any) (*seedmanagementv1alpha1.Gardenlet, error) {
	own := map[string]any{}
	if raw := object.Spec.Gardenlet.Config; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &own); err != nil {
			return nil, fmt.Errorf("spec.gardenlet.config: %w", err)
		}
	}
	if ptr.Deref(object.Spec.Gardenlet.MergeWithParent, true) {
		own = merged(parent, own)
	}
	config, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("spec.gardenlet.config: %w", err)
	}
	gardenlet := &seedmanagementv1alpha1.Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name},
		Spec:       seedmanagementv1alpha1.GardenletSpec{Config: &runtime.RawExtension{Raw: config}},
	}
	if deployment := object.Spec.Gardenlet.Deployment; deployment != nil {
		gardenlet.Spec.Deployment.GardenletDeployment = *deployment.DeepCopy()
	}
	return gardenlet, nil
}

// adapt lets a gardenlet reach the API server of its shoot by its domain, and annotates its pods. Annotations without a value are left out.
func adapt(deployment *seedmanagementv1alpha1.GardenletDeployment, shoot *corev1beta1.Shoot, annotations map[string]string) {
	if dns := shoot.Spec.DNS; dns != nil && dns.Domain != nil &&
		!slices.ContainsFunc(deployment.Env, func(e corev1.EnvVar) bool { return e.Name == envAPIServer }) {
		deployment.Env = append(deployment.Env, corev1.EnvVar{Name: envAPIServer, Value: "api." + *dns.Domain})
	}
	all := maps.Clone(deployment.PodAnnotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	deployment.PodAnnotations = all
}

// seedSpec returns the Seed of a configuration.
func seedSpec(config release.Configuration) (*corev1beta1.SeedSpec, error) {
	typed := &gardenletconfigv1alpha1.GardenletConfiguration{}
	data, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(data, typed)
	}
	if err != nil || typed.SeedConfig == nil {
		return nil, fmt.Errorf("spec.gardenlet.config: decode the Seed: %w", err)
	}
	return &typed.SeedConfig.Spec, nil
}

// wantsVPA says whether the gardenlet of a Seed deploys the vertical pod autoscaler.
func wantsVPA(seed *corev1beta1.SeedSpec) bool {
	return seed.Settings == nil || seed.Settings.VerticalPodAutoscaler == nil || seed.Settings.VerticalPodAutoscaler.Enabled
}
