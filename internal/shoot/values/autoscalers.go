package values

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/observed"
)

// Autoscalers returns the VerticalPodAutoscalers that go with objects of the control plane, if the seed has them.
func Autoscalers(s *observed.State, objects []client.Object) []client.Object {
	if !workload.Autoscaled(s.Seed) {
		return nil
	}
	return workload.ControlPlaneAutoscalers(objects, func(deployment string) workload.Autoscaling {
		switch {
		case deployment == kubeapiserver.Name:
			how := cautious(s)
			how.MinAllowed = kubeapiserver.ScaledMinimum()
			if c := s.Shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.Autoscaling != nil {
				maps.Copy(how.MinAllowed, bounded(s, c.Autoscaling).MinAllowed)
			}
			return how
		case deployment == vpnseedserver.Name && s.Shoot.Annotations[constants.ShootAlphaControlPlaneVPNVPAUpdateDisabled] == "true":
			return workload.Autoscaling{UpdateMode: workload.Off}
		}
		return workload.Autoscaling{}
	})
}

// maxMinimum is the most that the owner of a shoot gets as the minimum of a component in a seed without a maximum. Pods of other control planes with lower
// priorities would be evicted for it.
var maxMinimum = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")}

// bounded returns how a component is scaled, with no larger minimum than the maximum of the seed. Nil stays nil.
func bounded(s *observed.State, autoscaling *corev1beta1.ControlPlaneAutoscaling) *corev1beta1.ControlPlaneAutoscaling {
	if autoscaling == nil {
		return nil
	}
	most := maps.Clone(maxMinimum)
	if settings := s.Seed.Spec.Settings; settings != nil && settings.VerticalPodAutoscaler != nil {
		maps.Copy(most, settings.VerticalPodAutoscaler.MaxAllowed)
	}
	out := autoscaling.DeepCopy()
	for name, quantity := range out.MinAllowed {
		if limit := most[name]; quantity.Cmp(limit) > 0 {
			out.MinAllowed[name] = limit
		}
	}
	return out
}

// horizontally returns how the number of pods of the kube-apiserver is scaled. Nil means that it is fixed: nothing of the control plane is scaled in a seed
// whose setting has the Vertical Pod Autoscaler off. Source: nodes-and-autoscaling.md 4.3.
func horizontally(s *observed.State, replicas int32) *kubeapiserver.Autoscaling {
	if replicas == 0 || !workload.Autoscaled(s.Seed) {
		return nil
	}
	a := &kubeapiserver.Autoscaling{MinReplicas: 2, MaxReplicas: kubeapiserver.MaxReplicas}
	switch {
	case s.Shoot.Annotations[constants.ShootAlphaControlPlaneScaleDownDisabled] == "true":
		a.MinReplicas, a.ScaleDownDisabled = 4, true
	case s.HighlyAvailable():
		a.MinReplicas = 3
	}
	return a
}

// cautious is the autoscaling of pods that users miss while they are replaced. Requests are lowered in the maintenance time window, or
// never.
func cautious(s *observed.State) workload.Autoscaling {
	if s.ScaleDownForbidden() {
		return workload.Autoscaling{Downscale: constants.EvictionRequirementNever}
	}
	return workload.Autoscaling{
		Downscale: constants.EvictionRequirementInMaintenanceWindowOnly, MaintenanceWindow: s.Shoot.Spec.Maintenance.TimeWindow,
	}
}
