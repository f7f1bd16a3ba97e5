package extension

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// AutoscalerAnnotations are the annotations of the MachineDeployments of a pool for its settings of the cluster-autoscaler: without one, the setting
// of the shoot applies. Apply them server-side, so that an annotation goes when its field does.
func AutoscalerAnnotations(options *extensionsv1alpha1.ClusterAutoscalerOptions) map[string]string {
	if options == nil {
		return nil
	}
	out := map[string]string{}
	text := func(key string, value *string) {
		if value != nil {
			out[key] = *value
		}
	}
	duration := func(key string, value *metav1.Duration) {
		if value != nil {
			out[key] = value.Duration.String()
		}
	}
	text(extensionsv1alpha1.ScaleDownUtilizationThresholdAnnotation, options.ScaleDownUtilizationThreshold)
	text(extensionsv1alpha1.ScaleDownGPUUtilizationThresholdAnnotation, options.ScaleDownGPUUtilizationThreshold)
	duration(extensionsv1alpha1.ScaleDownUnneededTimeAnnotation, options.ScaleDownUnneededTime)
	duration(extensionsv1alpha1.ScaleDownUnreadyTimeAnnotation, options.ScaleDownUnreadyTime)
	duration(extensionsv1alpha1.MaxNodeProvisionTimeAnnotation, options.MaxNodeProvisionTime)
	return out
}
