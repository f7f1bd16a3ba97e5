package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// AutoscalerKind is that of what a Vertical Pod Autoscaler works by. Its Go types would bring other versions of Kubernetes' libraries.
var AutoscalerKind = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// AutoscalerLabel is on all VerticalPodAutoscalers that are rendered here, by which they are found when there is no autoscaler any more.
const AutoscalerLabel = "autoscaling.gardener.cloud/component"

// UpdateMode is what becomes of a recommendation.
type UpdateMode string

const (
	// Recreate gives it to new pods, and replaces pods that are too far from it.
	Recreate UpdateMode = "Recreate"
	// Off only makes it.
	Off UpdateMode = "Off"
)

// Autoscaling says how the requests of pods follow what they use.
type Autoscaling struct {
	// UpdateMode is what becomes of recommendations. The default is Recreate.
	UpdateMode UpdateMode
	// Downscale is a value of constants.VPAEvictionRequirementDownscaleRestriction, which says when pods may be replaced to ask for less.
	// Empty means at any time.
	Downscale string
	// MaintenanceWindow is when they may if Downscale says so.
	MaintenanceWindow *corev1beta1.MaintenanceTimeWindow
}

// Autoscaled tells whether there is a Vertical Pod Autoscaler in a seed. Defaults have been set.
func Autoscaled(seed *corev1beta1.Seed) bool {
	s := seed.Spec.Settings
	return s != nil && s.VerticalPodAutoscaler != nil && s.VerticalPodAutoscaler.Enabled
}

// Autoscalers renders a VerticalPodAutoscaler for each Deployment among objects, which has its name.
func Autoscalers(objects []client.Object, how func(deployment string) Autoscaling) []client.Object {
	var out []client.Object
	for _, object := range objects {
		if d, ok := object.(*appsv1.Deployment); ok {
			out = append(out, Autoscaler(d.ObjectMeta, appsv1.SchemeGroupVersion.WithKind("Deployment"), d.Spec.Template.Spec.Containers, how(d.Name)))
		}
	}
	return out
}

// Autoscaler renders a VerticalPodAutoscaler for what makes pods. No container gets less than it asks for itself, as that is what it takes
// to start; limits stay as they are.
func Autoscaler(target metav1.ObjectMeta, kind schema.GroupVersionKind, containers []corev1.Container, how Autoscaling) client.Object {
	var policies []any
	for _, container := range containers {
		policy := map[string]any{"containerName": container.Name, "controlledValues": "RequestsOnly"}
		if requests := container.Resources.Requests; len(requests) > 0 {
			minimum := map[string]any{}
			for name, quantity := range requests {
				minimum[string(name)] = quantity.String()
			}
			policy["minAllowed"] = minimum
		}
		policies = append(policies, policy)
	}
	mode := how.UpdateMode
	if mode == "" {
		mode = Recreate
	}
	labels := Merge(target.Labels, map[string]string{AutoscalerLabel: "true"})
	vpa := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"targetRef":      map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "name": target.Name},
		"updatePolicy":   map[string]any{"updateMode": string(mode)},
		"resourcePolicy": map[string]any{"containerPolicies": policies},
	}}}
	vpa.SetGroupVersionKind(AutoscalerKind)
	vpa.SetNamespace(target.Namespace)
	vpa.SetName(target.Name)
	if how.Downscale != "" {
		labels[constants.VPAEvictionRequirements] = constants.EvictionRequirementManagedByController
		annotations := map[string]string{constants.VPAEvictionRequirementDownscaleRestriction: how.Downscale}
		if w := how.MaintenanceWindow; w != nil {
			annotations[constants.ShootMaintenanceWindow] = w.Begin + "," + w.End
		}
		vpa.SetAnnotations(annotations)
	}
	vpa.SetLabels(labels)
	return vpa
}
