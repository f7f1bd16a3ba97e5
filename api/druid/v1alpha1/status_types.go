package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is an observation about an object of this group.
type Condition struct {
	// LastTransitionTime is when status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// LastUpdateTime is when the condition was written last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`

	// Message explains the condition for users.
	Message string `json:"message"`

	// Reason explains the condition in one word.
	Reason string `json:"reason"`

	// Status is True, False, Unknown or Progressing.
	Status ConditionStatus `json:"status"`

	// Type names what is observed.
	Type ConditionType `json:"type"`
}

// LastError is an error of the last operation.
type LastError struct {
	// Code is a stable name for the cause.
	Code ErrorCode `json:"code"`

	// Description explains the error for users.
	Description string `json:"description"`

	// ObservedAt is when it happened.
	ObservedAt metav1.Time `json:"observedAt"`
}

// LastOperation describes the last operation.
type LastOperation struct {
	// Description explains for users what happened.
	Description string `json:"description"`

	// LastUpdateTime is when state changed last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`

	// RunID identifies the run of the operation, in the logs too.
	RunID string `json:"runID"`

	// State says how it went: Processing, Succeeded, Error or Requeue for Etcds; Pending, Processing, Completed, Failed
	// and the like for tasks.
	State LastOperationState `json:"state"`

	// Type says what was done, such as Create, Reconcile or Delete.
	Type LastOperationType `json:"type"`
}

// EtcdMemberStatus describes a member.
type EtcdMemberStatus struct {
	// ID is the ID of the member in the cluster. Unset until it joined.
	// +optional
	ID *string `json:"id,omitempty"`

	// LastTransitionTime is when status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// Name is the name of the member, that is, of its pod.
	Name string `json:"name"`

	// Reason explains the status in one word.
	Reason string `json:"reason"`

	// Role is Leader, Member or Learner. Unset until it is known.
	// +optional
	Role *EtcdRole `json:"role,omitempty"`

	// Status is Ready, NotReady or Unknown.
	Status EtcdMemberConditionStatus `json:"status"`
}

// ConditionType names what a condition is about.
type ConditionType string

// Conditions of an Etcd.
const (
	// ConditionTypeReady says whether the cluster has a quorum.
	ConditionTypeReady ConditionType = "Ready"
	// ConditionTypeAllMembersReady says whether all members are ready.
	ConditionTypeAllMembersReady ConditionType = "AllMembersReady"
	// ConditionTypeAllMembersUpdated says whether all members run with the current configuration.
	ConditionTypeAllMembersUpdated ConditionType = "AllMembersUpdated"
	// ConditionTypeBackupReady says whether backups are being made in time.
	ConditionTypeBackupReady ConditionType = "BackupReady"
	// ConditionTypeDataVolumesReady says whether the volumes are there and usable.
	ConditionTypeDataVolumesReady ConditionType = "DataVolumesReady"
	// ConditionTypeClusterIDMismatch is True when members believe to be in different clusters.
	ConditionTypeClusterIDMismatch ConditionType = "ClusterIDMismatch"
	// ConditionTypeLastSnapshotCompactionSucceeded says whether the last compaction of snapshots succeeded.
	ConditionTypeLastSnapshotCompactionSucceeded ConditionType = "LastSnapshotCompactionSucceeded"
	// ConditionTypeBootstrappedWithExistingCluster says whether the members joined the cluster they were configured to join.
	ConditionTypeBootstrappedWithExistingCluster ConditionType = "BootstrappedWithExistingCluster"
)

// Conditions of an EtcdCopyBackupsTask.
const (
	// EtcdCopyBackupsTaskSucceeded is True when the backups are copied.
	EtcdCopyBackupsTaskSucceeded ConditionType = "Succeeded"
	// EtcdCopyBackupsTaskFailed is True when copying was given up.
	EtcdCopyBackupsTaskFailed ConditionType = "Failed"
)

// ConditionStatus is the result of an observation.
type ConditionStatus string

const (
	// ConditionTrue says that what the type names is so.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse says that it is not so.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown says that it could not be found out.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing says that it was so and probably will be again soon.
	ConditionProgressing ConditionStatus = "Progressing"
)

// EtcdMemberConditionStatus says how a member is.
type EtcdMemberConditionStatus string

const (
	// EtcdMemberStatusReady members are healthy and in touch.
	EtcdMemberStatusReady EtcdMemberConditionStatus = "Ready"
	// EtcdMemberStatusNotReady members are not healthy, or were not heard of for long.
	EtcdMemberStatusNotReady EtcdMemberConditionStatus = "NotReady"
	// EtcdMemberStatusUnknown members were not heard of for a while.
	EtcdMemberStatusUnknown EtcdMemberConditionStatus = "Unknown"
)

// EtcdRole is the role of a member.
type EtcdRole string

const (
	// EtcdRoleLeader is the member that takes the writes.
	EtcdRoleLeader EtcdRole = "Leader"
	// EtcdRoleMember is a voting member that follows.
	EtcdRoleMember EtcdRole = "Member"
	// EtcdRoleLearner is a member that has no vote yet.
	EtcdRoleLearner EtcdRole = "Learner"
)

// ErrorCode is a stable name for the cause of an error.
type ErrorCode string

// LastOperationType says what was done.
type LastOperationType string

const (
	// LastOperationTypeCreate brings up a new cluster.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile brings a cluster to its spec.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete deletes a cluster.
	LastOperationTypeDelete LastOperationType = "Delete"
)

// Phases of an EtcdOpsTask, as the type of its last operation.
const (
	// EtcdOpsTaskPhaseAdmit checks whether the task can be done now.
	EtcdOpsTaskPhaseAdmit LastOperationType = "Admit"
	// EtcdOpsTaskPhaseExecution does it.
	EtcdOpsTaskPhaseExecution LastOperationType = "Execution"
	// EtcdOpsTaskPhaseCleanup removes what the task left behind.
	EtcdOpsTaskPhaseCleanup LastOperationType = "Cleanup"
)

// LastOperationState says how an operation went.
type LastOperationState string

const (
	// LastOperationStateProcessing operations are under way.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded operations are done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError operations had an error and are tried again.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateRequeue operations wait for something and go on later.
	LastOperationStateRequeue LastOperationState = "Requeue"
)
