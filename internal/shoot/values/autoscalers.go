package values

import (
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
			return cautious(s)
		case deployment == vpnseedserver.Name && s.Shoot.Annotations[constants.ShootAlphaControlPlaneVPNVPAUpdateDisabled] == "true":
			return workload.Autoscaling{UpdateMode: workload.Off}
		}
		return workload.Autoscaling{}
	})
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
