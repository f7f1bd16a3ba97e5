package v1alpha1

// Finalizers of the machine-controller-manager.
const (
	// MCMFinalizerName keeps MachineDeployments and MachineSets until their machines are gone, Machines until they are gone from the infrastructure,
	// and MachineClasses while machines use them.
	MCMFinalizerName = "machine.sapcloud.io/machine-controller-manager"
	// MCFinalizerName keeps the Secrets that MachineClasses refer to while machines use them.
	MCFinalizerName = "machine.sapcloud.io/machine-controller"
	// NodeFinalizerName keeps Nodes until their machine is gone.
	NodeFinalizerName = "node.machine.sapcloud.io/machine-controller"
)

// Annotations of machines, their deployments and Nodes.
const (
	// MachinePriority on a Machine is its priority when a set shrinks: the lowest one goes first. Unset means 3.
	MachinePriority = "machinepriority.machine.sapcloud.io"
	// NotManagedByMCM on a Node says that no machine stands for it. Written by the machine-controller-manager.
	NotManagedByMCM = "node.machine.sapcloud.io/not-managed-by-mcm"
	// TriggerDeletionByMCM on a MachineDeployment lists machines that are deleted first, as NAME~TIME, separated by commas. The cluster-autoscaler
	// writes it together with fewer replicas. On a Node, with the value "true", it deletes its machine.
	TriggerDeletionByMCM = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
	// MarkedForDeletionTime on a Machine is when the cluster-autoscaler chose it for deletion.
	MarkedForDeletionTime = "machine.sapcloud.io/marked-for-deletion-time"
	// LastDeploymentReplicaChangeByScalerTime on a MachineDeployment is when the cluster-autoscaler changed its replicas last.
	LastDeploymentReplicaChangeByScalerTime = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
	// PreserveMachine on a Machine or Node says whether the machine is kept for inspection: "now", "when-failed" or "false".
	PreserveMachine = "node.machine.sapcloud.io/preserve"
	// LastAppliedNodePreserveValue on a Machine is the value of PreserveMachine that was taken over from the Node.
	LastAppliedNodePreserveValue = "node.machine.sapcloud.io/last-applied-node-preserve-value"
	// UnfreezeAnnotation on a MachineDeployment or MachineSet, with the value "True", lets it create machines again after it was
	// frozen.
	UnfreezeAnnotation = "safety.machine.sapcloud.io/unfreeze"
	// LastAppliedALTAnnotation on a Node is the JSON of the annotations, labels and taints that were put on it last.
	LastAppliedALTAnnotation = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	// LastAppliedVirtualCapacityAnnotation on a Node is the JSON of the virtual capacity that was put on it last.
	LastAppliedVirtualCapacityAnnotation = "node.machine.sapcloud.io/last-applied-virtual-capacity"
	// MachineUpdateFailedReason on a Node says why its machine could not be updated in place.
	MachineUpdateFailedReason = "node.machine.sapcloud.io/update-failed-reason"
)

// Labels of machines, their deployments and Nodes.
const (
	// MachineLabelKey on a Node is the name of its Machine.
	MachineLabelKey = "node.gardener.cloud/machine-name"
	// NodeLabelKey on a Machine is the name of its Node.
	NodeLabelKey = "node"
	// MachineSetScaleUpDisabled on a MachineSet keeps it from growing while machines are updated in place.
	MachineSetScaleUpDisabled = "node.machine.sapcloud.io/scale-up-disabled"
	// NodeCandidateForUpdate on a Node says that its machine needs an update in place.
	NodeCandidateForUpdate = "node.machine.sapcloud.io/candidate-for-update"
	// NodeSelectedForUpdate on a Node says that its machine is updated now. The user sets it if the orchestration is manual.
	NodeSelectedForUpdate = "node.machine.sapcloud.io/selected-for-update"
	// NodeUpdateResult on a Node says how the update in place went. Written by the gardener-node-agent.
	NodeUpdateResult = "node.machine.sapcloud.io/update-result"
)

// Taints of Nodes.
const (
	// PreferNoScheduleKey is the taint of Nodes whose machines will be replaced soon.
	PreferNoScheduleKey = "deployment.machine.sapcloud.io/prefer-no-schedule"
)

const (
	// ForceDeletionLabel with LabelValueTrue on a Machine makes its deletion not wait for its pods: they are deleted by force.
	// Set by users and extensions, read by the machine-controller-manager.
	ForceDeletionLabel = "force-deletion"
	// FreezeLabel with LabelValueTrue keeps a MachineSet from creating Machines, and a MachineDeployment from rolling.
	// Set by users, and by the machine-controller-manager on a MachineSet with too many Machines.
	FreezeLabel = "freeze"
	// LabelValueTrue is the value of both labels.
	LabelValueTrue = "True"
)
