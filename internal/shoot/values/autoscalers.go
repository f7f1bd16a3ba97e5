package values

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
				maps.Copy(how.MinAllowed, c.Autoscaling.MinAllowed)
			}
			return how
		case deployment == vpnseedserver.Name && s.Shoot.Annotations[constants.ShootAlphaControlPlaneVPNVPAUpdateDisabled] == "true":
			return workload.Autoscaling{UpdateMode: workload.Off}
		}
		return workload.Autoscaling{}
	})
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
