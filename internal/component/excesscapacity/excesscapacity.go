// Package excesscapacity reserves capacity of a seed for new control planes: pods that do nothing request it, and are replaced by pods of control
// planes at once. A cluster-autoscaler then starts a node for the pods that were replaced, before a control plane has to wait for one.
package excesscapacity

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// prefix is that of the names of the Deployments, which end with their place in the settings.
const prefix = "reserve-excess-capacity-"

// Values are what the Deployments are rendered from.
type Values struct {
	// Namespace is where the pods are.
	Namespace string
	// Image is that of a container that does nothing.
	Image string
	// Zones are those of the seed.
	Zones []string
	// Reservation is the setting of the Seed. Nil means that nothing is reserved.
	Reservation *corev1beta1.SeedSettingExcessCapacityReservation
}

// Labels are on all Deployments and pods of the component.
func Labels() map[string]string {
	return map[string]string{"app": "kubernetes", "role": "reserve-excess-capacity"}
}

// Objects returns one Deployment for each entry of the setting.
func Objects(v Values) []client.Object {
	if r := v.Reservation; r == nil || r.Enabled != nil && !*r.Enabled {
		return nil
	}
	var objects []client.Object
	for i, config := range v.Reservation.Configs {
		objects = append(objects, deployment(v, fmt.Sprintf("%s%d", prefix, i), config))
	}
	return objects
}

func deployment(v Values, name string, config corev1beta1.SeedSettingExcessCapacityReservationConfig) *appsv1.Deployment {
	labels := Labels()
	labels["reservation"] = name
	pod := corev1.PodSpec{
		PriorityClassName:             constants.PriorityClassNameReserveExcessCapacity,
		TerminationGracePeriodSeconds: new(int64(5)), // a control plane waits for it
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		NodeSelector:                  config.NodeSelector,
		Tolerations:                   config.Tolerations,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "pause", Image: v.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Resources: corev1.ResourceRequirements{Requests: config.Resources, Limits: config.Resources},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	if len(v.Zones) > 1 {
		pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: name, Labels: labels,
			// That a pod is pending is what it is for.
			Annotations: map[string]string{resourcesv1alpha1.SkipHealthCheck: "true"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas(v.Zones)), RevisionHistoryLimit: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// replicas returns two pods, or as many as there are zones, so that capacity is reserved in each.
func replicas(zones []string) int32 {
	return int32(max(2, len(zones))) //nolint:gosec // there are a few
}
