package care

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// forObservability is whether an object of a control plane counts for ObservabilityComponentsHealthy, and not for ControlPlaneHealthy.
func forObservability(object client.Object) bool {
	switch object.GetLabels()[constants.GardenRole] {
	case constants.GardenRoleMonitoring, constants.GardenRoleLogging, constants.GardenRoleObservability:
		return true
	}
	return false
}

// observabilityProblems are the reasons why ObservabilityComponentsHealthy is False.
func observabilityProblems(o *observed) []error {
	var errs []error
	for i := range o.deployments {
		if d := &o.deployments[i]; forObservability(d) {
			errs = append(errs, kube.DeploymentAvailable(d))
		}
	}
	for i := range o.statefulSets {
		s := &o.statefulSets[i]
		if want := s.Spec.Replicas; forObservability(s) && want != nil && s.Status.ReadyReplicas < *want {
			errs = append(errs, fmt.Errorf("StatefulSet %q: %d of %d pods are ready", s.Name, s.Status.ReadyReplicas, *want))
		}
	}
	return errs
}
