package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ShootStatus is what was last seen of a cluster. The gardenlet writes it, except where a field says otherwise.
type ShootStatus struct {
	// Conditions are the observations about the health of the cluster.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// Constraints are conditions that prevent future operations; the user should act.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Constraints []Condition `json:"constraints,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=constraints"`
	// Gardener is the gardenlet that last worked on the cluster.
	Gardener Gardener `json:"gardener" protobuf:"bytes,3,opt,name=gardener"`
	// Hibernated says whether the cluster is hibernated.
	Hibernated bool `json:"hibernated" protobuf:"varint,4,opt,name=hibernated"`
	// LastOperation is the last operation on the cluster.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty" protobuf:"bytes,5,opt,name=lastOperation"`
	// LastErrors are the errors of the last operation. Empty if it succeeded.
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty" protobuf:"bytes,6,rep,name=lastErrors"`
	// ObservedGeneration is the generation of the spec that the gardenlet last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,7,opt,name=observedGeneration"`
	// RetryCycleStartTime is when the gardenlet began to try the present operation.
	// +optional
	RetryCycleStartTime *metav1.Time `json:"retryCycleStartTime,omitempty" protobuf:"bytes,8,opt,name=retryCycleStartTime"`
	// SeedName is the seed that hosts the control plane at present. It differs from spec.seedName while the control
	// plane moves.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,9,opt,name=seedName"`
	// TechnicalID is the name of the cluster's namespace in the seed and of its resources on the infrastructure. Cannot
	// be changed.
	TechnicalID string `json:"technicalID" protobuf:"bytes,10,opt,name=technicalID"`
	// UID identifies the cluster and never changes. It stays the same when the Shoot is restored from a backup of the garden.
	// Cannot be changed.
	UID types.UID `json:"uid" protobuf:"bytes,11,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`
	// ClusterIdentity identifies the cluster across landscapes. Cannot be changed.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty" protobuf:"bytes,12,opt,name=clusterIdentity"`
	// AdvertisedAddresses are the addresses where the API server and other endpoints are found.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	AdvertisedAddresses []ShootAdvertisedAddress `json:"advertisedAddresses,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,13,rep,name=advertisedAddresses"`
	// MigrationStartTime is when the control plane began to move to another seed.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty" protobuf:"bytes,14,opt,name=migrationStartTime"`
	// Credentials is the state of the cluster's credentials.
	// +optional
	Credentials *ShootCredentials `json:"credentials,omitempty" protobuf:"bytes,15,opt,name=credentials"`
	// LastHibernationTriggerTime is when a hibernation schedule last hibernated the cluster or woke it up. Written
	// by the gardener-controller-manager.
	// +optional
	LastHibernationTriggerTime *metav1.Time `json:"lastHibernationTriggerTime,omitempty" protobuf:"bytes,16,opt,name=lastHibernationTriggerTime"`
	// LastMaintenance is what the last maintenance did. Written by the gardener-controller-manager.
	// +optional
	LastMaintenance *LastMaintenance `json:"lastMaintenance,omitempty" protobuf:"bytes,17,opt,name=lastMaintenance"`
	// Networking are the network ranges that the cluster really has.
	// +optional
	Networking *NetworkingStatus `json:"networking,omitempty" protobuf:"bytes,19,opt,name=networking"`
	// InPlaceUpdates says which pools wait for an in-place update.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty" protobuf:"bytes,20,opt,name=inPlaceUpdates"`
	// ManualWorkerPoolRollout is the state of pool rollouts that the user requested.
	// +optional
	ManualWorkerPoolRollout *ManualWorkerPoolRollout `json:"manualWorkerPoolRollout,omitempty" protobuf:"bytes,21,opt,name=manualWorkerPoolRollout"`
	// LiveMigration is the state of a move to another seed with a running control plane.
	// +optional
	LiveMigration *LiveMigration `json:"liveMigration,omitempty" protobuf:"bytes,22,opt,name=liveMigration"`
}

// LiveMigration is the state of a move to another seed with a running control plane.
type LiveMigration struct {
	// Conditions are the steps of the move that were taken.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
}

// ShootAdvertisedAddress is an address where an endpoint of a cluster is found.
type ShootAdvertisedAddress struct {
	// Name says what the address is for, such as "external". It is unique.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// URL is the address.
	URL string `json:"url" protobuf:"bytes,2,opt,name=url"`
	// Application says which application answers there.
	// +optional
	Application *string `json:"application,omitempty" protobuf:"bytes,3,opt,name=application"`
}

// ShootCredentials is the state of a cluster's credentials.
type ShootCredentials struct {
	// Rotation is the state of their rotations.
	// +optional
	Rotation *ShootCredentialsRotation `json:"rotation,omitempty" protobuf:"bytes,1,opt,name=rotation"`
	// EncryptionAtRest says how etcd content is encrypted at present.
	// +optional
	EncryptionAtRest *EncryptionAtRest `json:"encryptionAtRest,omitempty" protobuf:"bytes,2,opt,name=encryptionAtRest"`
}

// EncryptionAtRest says how etcd content is encrypted at present.
type EncryptionAtRest struct {
	// Resources are the resources that are encrypted.
	// +optional
	Resources []string `json:"resources,omitempty" protobuf:"bytes,1,rep,name=resources"`
	// Provider is how they are encrypted.
	Provider EncryptionProviderStatus `json:"provider" protobuf:"bytes,2,opt,name=provider"`
}

// EncryptionProviderStatus is how resources are encrypted at present.
type EncryptionProviderStatus struct {
	// Type is the method.
	Type EncryptionProviderType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=EncryptionProviderType"`
}

// ShootCredentialsRotation is the state of the rotations of credentials.
type ShootCredentialsRotation struct {
	// CertificateAuthorities is the rotation of the CAs.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty" protobuf:"bytes,1,opt,name=certificateAuthorities"`
	// SSHKeypair is the rotation of the SSH key pair of the nodes.
	// +optional
	SSHKeypair *ShootSSHKeypairRotation `json:"sshKeypair,omitempty" protobuf:"bytes,3,opt,name=sshKeypair"`
	// Observability is the rotation of the passwords of the monitoring and logging endpoints.
	// +optional
	Observability *ObservabilityRotation `json:"observability,omitempty" protobuf:"bytes,4,opt,name=observability"`
	// ServiceAccountKey is the rotation of the key that signs service account tokens.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty" protobuf:"bytes,5,opt,name=serviceAccountKey"`
	// ETCDEncryptionKey is the rotation of the key that encrypts etcd content.
	// +optional
	ETCDEncryptionKey *ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty" protobuf:"bytes,6,opt,name=etcdEncryptionKey"`
}

// CARotation is the rotation of CAs.
type CARotation struct {
	// Phase is how far it is.
	Phase CredentialsRotationPhase `json:"phase" protobuf:"bytes,1,opt,name=phase,casttype=CredentialsRotationPhase"`
	// LastCompletionTime is when a rotation was last completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
	// LastInitiationTime is when a rotation was last started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,3,opt,name=lastInitiationTime"`
	// LastInitiationFinishedTime is when the first part of a rotation was last done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty" protobuf:"bytes,4,opt,name=lastInitiationFinishedTime"`
	// LastCompletionTriggeredTime is when the second part of a rotation was last started.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty" protobuf:"bytes,5,opt,name=lastCompletionTriggeredTime"`
	// PendingWorkersRollouts are the pools whose machines still have to be replaced.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty" protobuf:"bytes,6,rep,name=pendingWorkersRollouts"`
}

// ShootSSHKeypairRotation is the rotation of the SSH key pair of the nodes.
type ShootSSHKeypairRotation struct {
	// LastInitiationTime is when a rotation was last started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,1,opt,name=lastInitiationTime"`
	// LastCompletionTime is when a rotation was last completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
}

// ObservabilityRotation is the rotation of the passwords of the monitoring and logging endpoints.
type ObservabilityRotation struct {
	// LastInitiationTime is when a rotation was last started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,1,opt,name=lastInitiationTime"`
	// LastCompletionTime is when a rotation was last completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
}

// ServiceAccountKeyRotation is the rotation of the key that signs service account tokens.
type ServiceAccountKeyRotation struct {
	// Phase is how far it is.
	Phase CredentialsRotationPhase `json:"phase" protobuf:"bytes,1,opt,name=phase,casttype=CredentialsRotationPhase"`
	// LastCompletionTime is when a rotation was last completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
	// LastInitiationTime is when a rotation was last started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,3,opt,name=lastInitiationTime"`
	// LastInitiationFinishedTime is when the first part of a rotation was last done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty" protobuf:"bytes,4,opt,name=lastInitiationFinishedTime"`
	// LastCompletionTriggeredTime is when the second part of a rotation was last started.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty" protobuf:"bytes,5,opt,name=lastCompletionTriggeredTime"`
	// PendingWorkersRollouts are the pools whose machines still have to be replaced.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty" protobuf:"bytes,6,rep,name=pendingWorkersRollouts"`
}

// ETCDEncryptionKeyRotation is the rotation of the key that encrypts etcd content.
type ETCDEncryptionKeyRotation struct {
	// Phase is how far it is.
	Phase CredentialsRotationPhase `json:"phase" protobuf:"bytes,1,opt,name=phase,casttype=CredentialsRotationPhase"`
	// LastCompletionTime is when a rotation was last completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty" protobuf:"bytes,2,opt,name=lastCompletionTime"`
	// LastInitiationTime is when a rotation was last started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,3,opt,name=lastInitiationTime"`
	// LastInitiationFinishedTime is when the first part of a rotation was last done.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty" protobuf:"bytes,4,opt,name=lastInitiationFinishedTime"`
	// LastCompletionTriggeredTime is when the second part of a rotation was last started.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty" protobuf:"bytes,5,opt,name=lastCompletionTriggeredTime"`
	// AutoCompleteAfterPrepared completes the rotation automatically, once it is prepared.
	//
	// Deprecated: From Kubernetes 1.34 every rotation does so.
	// +optional
	AutoCompleteAfterPrepared *bool `json:"autoCompleteAfterPrepared,omitempty" protobuf:"varint,6,opt,name=autoCompleteAfterPrepared"`
}

// CredentialsRotationPhase is how far a rotation is.
type CredentialsRotationPhase string

const (
	// RotationPreparing means that new credentials are being created and added beside the old ones.
	RotationPreparing CredentialsRotationPhase = "Preparing"
	// RotationPreparingWithoutWorkersRollout is the same, but machines are not replaced until the user requests it,
	// pool by pool.
	RotationPreparingWithoutWorkersRollout CredentialsRotationPhase = "PreparingWithoutWorkersRollout"
	// RotationWaitingForWorkersRollout means that only machines of pools that the user has to name are still to be
	// replaced.
	RotationWaitingForWorkersRollout CredentialsRotationPhase = "WaitingForWorkersRollout"
	// RotationPrepared means that old and new credentials are accepted; users switch to the new ones now.
	RotationPrepared CredentialsRotationPhase = "Prepared"
	// RotationCompleting means that the old credentials are being removed.
	RotationCompleting CredentialsRotationPhase = "Completing"
	// RotationCompleted means that only the new credentials are left.
	RotationCompleted CredentialsRotationPhase = "Completed"
)

// PendingWorkersRollout is a pool whose machines still have to be replaced.
type PendingWorkersRollout struct {
	// Name is the name of the pool.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// LastInitiationTime is when the replacement was last requested.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty" protobuf:"bytes,2,opt,name=lastInitiationTime"`
}

// InPlaceUpdatesStatus says which pools wait for an in-place update.
type InPlaceUpdatesStatus struct {
	// PendingWorkerUpdates are those pools.
	// +optional
	PendingWorkerUpdates *PendingWorkerUpdates `json:"pendingWorkerUpdates,omitempty" protobuf:"bytes,1,opt,name=pendingWorkerUpdates"`
}

// PendingWorkerUpdates are the pools that wait for an in-place update.
type PendingWorkerUpdates struct {
	// AutoInPlaceUpdate are the pools with the strategy AutoInPlaceUpdate.
	// +optional
	AutoInPlaceUpdate []string `json:"autoInPlaceUpdate,omitempty" protobuf:"bytes,1,rep,name=autoInPlaceUpdate"`
	// ManualInPlaceUpdate are the pools with the strategy ManualInPlaceUpdate.
	// +optional
	ManualInPlaceUpdate []string `json:"manualInPlaceUpdate,omitempty" protobuf:"bytes,2,rep,name=manualInPlaceUpdate"`
}

// ManualWorkerPoolRollout is the state of pool rollouts that the user requested.
type ManualWorkerPoolRollout struct {
	// PendingWorkersRollouts are the pools whose machines are still to be replaced.
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty" protobuf:"bytes,1,rep,name=pendingWorkersRollouts"`
}
