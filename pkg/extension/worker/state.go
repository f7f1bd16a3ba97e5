package worker

import (
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// State is what is kept of the machines of a control plane that moves to another seed: the gardenlet of the old seed collects it, that of the new one
// writes it to status.state of the Worker before it requests to restore it. The names of the fields are those of the original.
type State struct {
	// MachineDeployments are the deployments by name. Those without MachineSets are left out.
	MachineDeployments map[string]*DeploymentState `json:"machineDeployments,omitempty"`
}

// DeploymentState is what is kept of a MachineDeployment.
type DeploymentState struct {
	// Replicas is its number of machines, which the cluster-autoscaler may have changed.
	Replicas int32 `json:"replicas,omitempty"`
	// MachineSets are its sets, without their status.
	MachineSets []machinev1alpha1.MachineSet `json:"machineSets,omitempty"`
	// Machines are the machines of these sets that have a node or a provider ID, without their status.
	Machines []machinev1alpha1.Machine `json:"machines,omitempty"`
}
