package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedSet makes equal ManagedSeeds with a shoot each, and updates them one after the other.
type ManagedSeedSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec describes the desired ManagedSeeds and shoots.
	// +optional
	Spec ManagedSeedSetSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is how many of them there are.
	// +optional
	Status ManagedSeedSetStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedSetList is a list of ManagedSeedSet objects.
type ManagedSeedSetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ManagedSeedSet `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ManagedSeedSetSpec describes the desired ManagedSeeds and shoots.
type ManagedSeedSetSpec struct {
	// Replicas is the desired number. 1 is the default.
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	// Selector selects the ManagedSeeds and shoots that belong to the set; it must fit the labels of both templates.
	// Cannot be changed.
	Selector metav1.LabelSelector `json:"selector" protobuf:"bytes,2,opt,name=selector"`
	// Template is what the ManagedSeeds are created from. Its spec.shoot is filled in.
	Template ManagedSeedTemplate `json:"template" protobuf:"bytes,3,opt,name=template"`
	// ShootTemplate is what the shoots are created from.
	ShootTemplate corev1beta1.ShootTemplate `json:"shootTemplate" protobuf:"bytes,4,opt,name=shootTemplate"`
	// UpdateStrategy says how changed templates are brought to what exists. RollingUpdate is the default.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,5,opt,name=updateStrategy"`
	// RevisionHistoryLimit is how many old revisions are kept. 10 is the default. Cannot be changed.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"varint,6,opt,name=revisionHistoryLimit"`
}

// UpdateStrategy says how changed templates are brought to what exists.
type UpdateStrategy struct {
	// Type is the method. "RollingUpdate" is the default.
	// +optional
	Type *UpdateStrategyType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=UpdateStrategyType"`
	// RollingUpdate are the settings of RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateStrategy `json:"rollingUpdate,omitempty" protobuf:"bytes,2,opt,name=rollingUpdate"`
}

// UpdateStrategyType is how changed templates are brought to what exists.
type UpdateStrategyType string

const (
	// RollingUpdateStrategyType updates one replica after the other, from the highest number down.
	RollingUpdateStrategyType UpdateStrategyType = "RollingUpdate"
)

// RollingUpdateStrategy are the settings of RollingUpdate.
type RollingUpdateStrategy struct {
	// Partition is the lowest number that is updated; replicas with a lower one stay as they are. 0 is the default.
	// +optional
	Partition *int32 `json:"partition,omitempty" protobuf:"varint,1,opt,name=partition"`
}

// ManagedSeedSetStatus is how many replicas there are, and which one is being worked on. Written by the gardener-
// controller-manager.
type ManagedSeedSetStatus struct {
	// ObservedGeneration is the generation of the spec that the controller last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`
	// Replicas is how many there are.
	Replicas int32 `json:"replicas" protobuf:"varint,2,opt,name=replicas"`
	// ReadyReplicas is how many of them are ready: their shoot is healthy and their seed is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"varint,3,opt,name=readyReplicas"`
	// NextReplicaNumber is the number that the next new replica gets.
	// +optional
	NextReplicaNumber int32 `json:"nextReplicaNumber,omitempty" protobuf:"varint,4,opt,name=nextReplicaNumber"`
	// CurrentReplicas is how many are of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty" protobuf:"varint,5,opt,name=currentReplicas"`
	// UpdatedReplicas is how many are of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"varint,6,opt,name=updatedReplicas"`
	// CurrentRevision is the revision that replicas had before the present update.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty" protobuf:"bytes,7,opt,name=currentRevision"`
	// UpdateRevision is the revision that replicas are updated to.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty" protobuf:"bytes,8,opt,name=updateRevision"`
	// CollisionCount is how often a name for a revision was taken. It is part of the next name.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"varint,9,opt,name=collisionCount"`
	// Conditions are the observations about the set.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,10,rep,name=conditions"`
	// PendingReplica is the replica that is being worked on. Nothing else is done until it is ready.
	// +optional
	PendingReplica *PendingReplica `json:"pendingReplica,omitempty" protobuf:"bytes,11,opt,name=pendingReplica"`
}

// PendingReplica is a replica that is being worked on.
type PendingReplica struct {
	// Name is its name.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Reason says what it waits for.
	Reason PendingReplicaReason `json:"reason" protobuf:"bytes,2,opt,name=reason,casttype=PendingReplicaReason"`
	// Since is since when it waits.
	Since metav1.Time `json:"since" protobuf:"bytes,3,opt,name=since"`
	// Retries is how often its shoot was tried again.
	// +optional
	Retries *int32 `json:"retries,omitempty" protobuf:"varint,4,opt,name=retries"`
}

// PendingReplicaReason says what a replica waits for.
type PendingReplicaReason string

const (
	// ShootReconcilingReason means that its shoot is being reconciled.
	ShootReconcilingReason PendingReplicaReason = "ShootReconciling"
	// ShootDeletingReason means that its shoot is being deleted.
	ShootDeletingReason PendingReplicaReason = "ShootDeleting"
	// ShootReconcileFailedReason means that the reconciliation of its shoot failed.
	ShootReconcileFailedReason PendingReplicaReason = "ShootReconcileFailed"
	// ShootDeleteFailedReason means that the deletion of its shoot failed.
	ShootDeleteFailedReason PendingReplicaReason = "ShootDeleteFailed"
	// ManagedSeedPreparingReason means that its ManagedSeed is not registered yet.
	ManagedSeedPreparingReason PendingReplicaReason = "ManagedSeedPreparing"
	// ManagedSeedDeletingReason means that its ManagedSeed is being deleted.
	ManagedSeedDeletingReason PendingReplicaReason = "ManagedSeedDeleting"
	// SeedNotReadyReason means that its seed is not ready.
	SeedNotReadyReason PendingReplicaReason = "SeedNotReady"
	// ShootNotHealthyReason means that its shoot is not healthy.
	ShootNotHealthyReason PendingReplicaReason = "ShootNotHealthy"
)
