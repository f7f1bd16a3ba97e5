package v1alpha1

import corev1 "k8s.io/api/core/v1"

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
	// LastDeploymentReplicaChangeByScalerTime on a MachineDeployment is when the cluster-autoscaler removed replicas of it last, and on a MachineSet the
	// time of its deployment when its own were changed.
	LastDeploymentReplicaChangeByScalerTime = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
	// PreserveMachine on a Machine or Node says whether the machine is kept for inspection: PreserveNow, PreserveWhenFailed, PreserveAuto or
	// PreserveFalse. That of the Node counts if it has one, and that of the Machine is removed. Other values have no effect.
	PreserveMachine = "node.machine.sapcloud.io/preserve"
	// PreserveNow keeps a machine at once, whatever its phase.
	PreserveNow = "now"
	// PreserveWhenFailed keeps a machine when it fails, until it runs again.
	PreserveWhenFailed = "when-failed"
	// PreserveAuto is the value that the machine-controller-manager sets on failed machines, up to spec.autoPreserveFailedMachineMax of their
	// deployment.
	PreserveAuto = "auto-preserved"
	// PreserveFalse stops keeping a machine, and excludes it from being kept automatically.
	PreserveFalse = "false"
	// LastAppliedNodePreserveValue on a Machine is the value of PreserveMachine that was taken over from the Node.
	LastAppliedNodePreserveValue = "node.machine.sapcloud.io/last-applied-node-preserve-value"
	// UnfreezeAnnotation on a MachineDeployment or MachineSet, with the value "True", lets it create machines again after it was
	// frozen.
	UnfreezeAnnotation = "safety.machine.sapcloud.io/unfreeze"
	// LastAppliedALTAnnotation on a Node is the JSON of the annotations, labels and taints that were put on it last.
	LastAppliedALTAnnotation = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	// LastAppliedVirtualCapacityAnnotation on a Node is the JSON of the virtual capacity that was put on it last.
	LastAppliedVirtualCapacityAnnotation = "node.machine.sapcloud.io/last-applied-virtual-capacity"
	// ScaleDownDisabled on a Node keeps the cluster-autoscaler from deleting its machine.
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ScaleDownDisabledByMCM on a Node says that the machine-controller-manager set ScaleDownDisabled; it removes both after an update.
	ScaleDownDisabledByMCM = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
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
	// NodeUpdateResult on a Node says how the update in place went: NodeUpdateSuccessful or NodeUpdateFailed. Written by the gardener-node-agent. On a
	// Machine, it is set while the machine moves to the set with the new template.
	NodeUpdateResult = "node.machine.sapcloud.io/update-result"
	// NodeUpdateSuccessful is its value after an update.
	NodeUpdateSuccessful = "successful"
	// NodeUpdateFailed is its value after an update that has failed.
	NodeUpdateFailed = "failed"
	// ForceDrainLabel with LabelValueTrue on a Machine makes its update in place not wait until its pods are evicted: they are deleted.
	ForceDrainLabel = "force-drain"
)

// NodeInPlaceUpdate is the condition of a Node whose machine is updated in place. Its reason is the step. Written by the machine-controller-manager,
// read by the gardener-node-agent, which begins at ReadyForUpdate.
const NodeInPlaceUpdate corev1.NodeConditionType = "InPlaceUpdate"

// Reasons of the condition, in the order in which they follow each other.
const (
	// CandidateForUpdate Nodes need an update, and were not selected for it.
	CandidateForUpdate = "CandidateForUpdate"
	// SelectedForUpdate Nodes are being drained.
	SelectedForUpdate = "SelectedForUpdate"
	// DrainSuccessful Nodes have no pods that would be disturbed.
	DrainSuccessful = "DrainSuccessful"
	// ReadyForUpdate Nodes are being updated by their gardener-node-agent.
	ReadyForUpdate = "ReadyForUpdate"
	// UpdateSuccessful Nodes were updated.
	UpdateSuccessful = "UpdateSuccessful"
	// UpdateFailed Nodes could not be updated.
	UpdateFailed = "UpdateFailed"
)

// NodePreserved is the condition of a Node whose machine is kept for inspection, or was. Written by the machine-controller-manager.
const NodePreserved corev1.NodeConditionType = "Preserved"

// Reasons of the condition. They are sentences in the original, too.
const (
	// PreservedByMCM Nodes are those of failed machines that are kept automatically.
	PreservedByMCM = "Preserved by MCM."
	// PreservedByUser Nodes are kept because of the annotation PreserveMachine.
	PreservedByUser = "Preserved by user."
	// PreservationStopped Nodes are not kept any more.
	PreservationStopped = "Preservation stopped."
)

// Taints of Nodes.
const (
	// NodePreservedKey is the taint of Nodes whose machines have failed and are kept for inspection.
	NodePreservedKey = "node.machine.sapcloud.io/preserved"
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
