package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// obsolete returns the deployments without a pool and zone, sorted by name.
func obsolete(all []machines, existing map[string]*machinev1alpha1.MachineDeployment) []*machinev1alpha1.MachineDeployment {
	var out []*machinev1alpha1.MachineDeployment
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		if !slices.ContainsFunc(all, func(m machines) bool { return m.deployment.Name == name }) {
			out = append(out, existing[name])
		}
	}
	return out
}

// progress returns what is waited for until the desired machines are ready, or which of them fail; nil if they are ready. Failed machines that are kept
// for inspection are not waited for. The deletion of stale deployments waits, too.
func progress(all []machines, existing map[string]*machinev1alpha1.MachineDeployment, stale []*machinev1alpha1.MachineDeployment) error {
	var failed, waiting []string
	var codes []corev1beta1.ErrorCode
	for _, m := range all {
		deployment := existing[m.deployment.Name]
		switch {
		case deployment == nil:
			waiting = append(waiting, fmt.Sprintf("MachineDeployment %q does not exist yet", m.deployment.Name))
			continue
		case deployment.DeletionTimestamp != nil: // its pool was removed for a while
			waiting = append(waiting, fmt.Sprintf("MachineDeployment %q is being deleted, and will be created again", deployment.Name))
			continue
		}
		status, replicas := deployment.Status, deployment.Spec.Replicas
		// Nothing has to be done for a deployment that has no machines and shall have none, such as a new one of a hibernated shoot.
		observed := status.ObservedGeneration >= deployment.Generation || replicas+status.Replicas == 0
		for _, machine := range status.FailedMachines {
			if len(status.FailedMachines) <= int(status.PreservedFailedReplicas) {
				break // all of them are kept
			}
			failed = append(failed, fmt.Sprintf("machine %q: %s", machine.Name, machine.LastOperation.Description))
			// The error of a machine that is being replaced may have been fixed.
			if code, ok := codeOf(machine.LastOperation); ok && observed && status.UpdatedReplicas == status.Replicas {
				codes = append(codes, code)
			}
		}
		updated := status.UpdatedReplicas == replicas || extension.WaitsForSelection(deployment)
		if !observed || !updated || status.Replicas != replicas || status.AvailableReplicas+status.PreservedFailedReplicas != replicas {
			waiting = append(waiting, fmt.Sprintf("%d of %d machines of %q are ready", min(status.UpdatedReplicas, status.AvailableReplicas), replicas, deployment.Name))
		}
	}
	slices.Sort(failed)
	slices.Sort(waiting)
	after := ""
	for _, deployment := range stale {
		if deployment.DeletionTimestamp == nil {
			after += fmt.Sprintf("; then MachineDeployment %q will be deleted", deployment.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return errorcode.With(errors.New("machines have failed: "+strings.Join(failed, "; ")+after), codes...)
	case len(waiting) > 0:
		return &extension.Wait{Reason: strings.Join(waiting, "; ") + after, After: machinesRecheck}
	}
	return nil
}

// codeOf returns the error code for users of a failed creation or deletion of a machine.
func codeOf(operation machinev1alpha1.LastOperation) (corev1beta1.ErrorCode, bool) {
	if operation.Type != machinev1alpha1.MachineOperationCreate && operation.Type != machinev1alpha1.MachineOperationDelete {
		return "", false
	}
	code, ok := map[string]corev1beta1.ErrorCode{ // the names are those of gRPC
		"ResourceExhausted": corev1beta1.ErrorInfraResourcesDepleted, "InvalidArgument": corev1beta1.ErrorConfigurationProblem,
		"Unauthenticated": corev1beta1.ErrorInfraUnauthenticated, "PermissionDenied": corev1beta1.ErrorInfraUnauthorized,
	}[operation.ErrorCode]
	return code, ok
}
