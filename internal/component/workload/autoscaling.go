package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// AutoscalerKind is the kind VerticalPodAutoscaler. Its Go types would need other versions of Kubernetes' libraries.
var AutoscalerKind = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// AutoscalerLabel is on all VerticalPodAutoscalers that are rendered here, to delete them when the seed has no autoscaler any more.
const AutoscalerLabel = "autoscaling.gardener.cloud/component"

// UpdateMode is spec.updatePolicy.updateMode of a VerticalPodAutoscaler.
type UpdateMode string

const (
	// Recreate applies recommendations to new pods, and evicts pods that are too far from them.
	Recreate UpdateMode = "Recreate"
	// Auto is Recreate, in the words of former releases.
	Auto UpdateMode = "Auto"
	// InPlaceOrRecreate changes the requests of running pods, and evicts those for which that is not possible.
	InPlaceOrRecreate UpdateMode = "InPlaceOrRecreate"
	// Off only writes recommendations.
	Off UpdateMode = "Off"
)

// Autoscaling says how the requests of pods are scaled.
type Autoscaling struct {
	// UpdateMode is the update mode. The default is Recreate.
	UpdateMode UpdateMode
	// Downscale is a value of constants.VPAEvictionRequirementDownscaleRestriction, which says when pods may be evicted to reduce their requests.
	// Empty means at any time.
	Downscale string
	// MinAllowed is the minimum of the requests of each container. Empty means what the container requests itself.
	MinAllowed corev1.ResourceList
	// MaintenanceWindow is the time window for Downscale, or nil.
	MaintenanceWindow *corev1beta1.MaintenanceTimeWindow
}

// policyPath leads to the policies for containers.
var policyPath = []string{"spec", "resourcePolicy", "containerPolicies"}

// autoscalerSuffix is what names of VerticalPodAutoscalers in control planes have after that of the Deployment. Extensions look for
// machine-controller-manager-vpa.
const autoscalerSuffix = "-vpa"

// Autoscaled says whether the Vertical Pod Autoscaler is enabled in a seed, whose defaults have to be set.
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

// SystemAutoscalers renders a VerticalPodAutoscaler for each DaemonSet among objects of a shoot, and for each Deployment, except for one with a
// HorizontalPodAutoscaler: that compares what pods use with what they request.
func SystemAutoscalers(objects []client.Object) []client.Object {
	var deployments, out []client.Object
	for _, object := range objects {
		switch o := object.(type) {
		case *appsv1.DaemonSet:
			out = append(out, Autoscaler(o.ObjectMeta, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), o.Spec.Template.Spec.Containers, Autoscaling{}))
		case *appsv1.Deployment:
			if !slices.ContainsFunc(objects, func(other client.Object) bool { return scalesHorizontally(other, o) }) {
				deployments = append(deployments, o)
			}
		}
	}
	return append(out, Autoscalers(deployments, func(string) Autoscaling { return Autoscaling{} })...)
}

// scalesHorizontally reports whether an object is the HorizontalPodAutoscaler of a Deployment.
func scalesHorizontally(object client.Object, deployment *appsv1.Deployment) bool {
	hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	return ok && hpa.Namespace == deployment.Namespace && hpa.Spec.ScaleTargetRef.Kind == "Deployment" && hpa.Spec.ScaleTargetRef.Name == deployment.Name
}

// ControlPlaneAutoscalers renders a VerticalPodAutoscaler for each Deployment among objects of a control plane. Its name has a suffix, and containers that
// webhooks of extensions add to the Deployment are not scaled, unless they add a policy, too.
func ControlPlaneAutoscalers(objects []client.Object, how func(deployment string) Autoscaling) []client.Object {
	out := Autoscalers(objects, how)
	for _, object := range out {
		object.SetName(object.GetName() + autoscalerSuffix)
		vpa := object.(*unstructured.Unstructured) //nolint:forcetypeassert // Autoscaler renders it
		policies, _, _ := unstructured.NestedSlice(vpa.Object, policyPath...)
		policies = append(policies, map[string]any{"containerName": "*", "mode": string(Off)})
		_ = unstructured.SetNestedSlice(vpa.Object, policies, policyPath...)
	}
	return out
}

// FormerAutoscalers returns those of VerticalPodAutoscalers in a namespace that have the name of their Deployment, as in earlier versions, beside one that
// ControlPlaneAutoscalers has rendered.
func FormerAutoscalers(vpas []unstructured.Unstructured) []unstructured.Unstructured {
	target := func(vpa unstructured.Unstructured) string {
		kind, _, _ := unstructured.NestedString(vpa.Object, "spec", "targetRef", "kind")
		name, _, _ := unstructured.NestedString(vpa.Object, "spec", "targetRef", "name")
		return kind + "/" + name
	}
	targets := map[string]string{}
	for _, vpa := range vpas {
		targets[vpa.GetName()] = target(vpa)
	}
	var former []unstructured.Unstructured
	for _, vpa := range vpas {
		if vpa.GetLabels()[AutoscalerLabel] != "" && targets[vpa.GetName()+autoscalerSuffix] == target(vpa) {
			former = append(former, vpa)
		}
	}
	return former
}

// Autoscaler renders a VerticalPodAutoscaler for a workload. The minimum is what containers request, as they need that to start, unless another one is
// given; limits are not changed.
func Autoscaler(target metav1.ObjectMeta, kind schema.GroupVersionKind, containers []corev1.Container, how Autoscaling) client.Object {
	var policies []any
	for _, container := range containers {
		policy := map[string]any{"containerName": container.Name, "controlledValues": "RequestsOnly"}
		requests := container.Resources.Requests
		if len(how.MinAllowed) > 0 {
			requests = how.MinAllowed
		}
		if len(requests) > 0 {
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
