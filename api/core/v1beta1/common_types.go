package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LastOperation is what the responsible controller did last to an object, how far it got, and how it ended.
type LastOperation struct {
	// Description says in one sentence, for users, what is going on or how the operation ended.
	Description string `json:"description" protobuf:"bytes,1,opt,name=description"`
	// LastUpdateTime is when this record was last written.
	LastUpdateTime metav1.Time `json:"lastUpdateTime" protobuf:"bytes,2,opt,name=lastUpdateTime"`
	// Progress is how much of the operation is done, in percent (0 to 100).
	Progress int32 `json:"progress" protobuf:"varint,3,opt,name=progress"`
	// State is how the operation stands.
	State LastOperationState `json:"state" protobuf:"bytes,4,opt,name=state,casttype=LastOperationState"`
	// Type is what kind of operation it is.
	Type LastOperationType `json:"type" protobuf:"bytes,5,opt,name=type,casttype=LastOperationType"`
}

// LastOperationType is the kind of an operation on an object.
type LastOperationType string

const (
	// LastOperationTypeCreate brings the object up for the first time.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile brings an existing object to its desired state.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete removes the object and everything that belongs to it.
	LastOperationTypeDelete LastOperationType = "Delete"
	// LastOperationTypeMigrate prepares the object to be moved: its state is saved and the source seed removes it.
	LastOperationTypeMigrate LastOperationType = "Migrate"
	// LastOperationTypeRestore brings the object up again on another seed, from the saved state.
	LastOperationTypeRestore LastOperationType = "Restore"
	// LastOperationTypeLiveMigrate moves the object to another seed while its control plane keeps running.
	LastOperationTypeLiveMigrate LastOperationType = "LiveMigrate"
)

// LastOperationState is the state of an operation.
type LastOperationState string

const (
	// LastOperationStateProcessing means that a controller is working on it.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded means that everything was done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError means that something failed and is tried again.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateFailed means that the controller gave up; a change of the spec or a retry annotation starts
	// it again.
	LastOperationStateFailed LastOperationState = "Failed"
	// LastOperationStatePending means that the operation waits for its turn.
	LastOperationStatePending LastOperationState = "Pending"
	// LastOperationStateAborted means that the operation was stopped and is not continued.
	LastOperationStateAborted LastOperationState = "Aborted"
)

// LastError is one error of the last operation, in a form that users and programs can act on.
type LastError struct {
	// Description is the error for users: what was tried, on which object, and why it failed.
	Description string `json:"description" protobuf:"bytes,1,opt,name=description"`
	// TaskID names the task of the flow that failed, such as "deploy-etcd-main". Empty if the error belongs to the
	// operation as a whole.
	// +optional
	TaskID *string `json:"taskID,omitempty" protobuf:"bytes,2,opt,name=taskID"`
	// Codes classify the error, so that programs know whether the user or the operator has to act, and whether a retry may help.
	// +optional
	Codes []ErrorCode `json:"codes,omitempty" protobuf:"bytes,3,rep,name=codes,casttype=ErrorCode"`
	// LastUpdateTime is when this error was last seen.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty" protobuf:"bytes,4,opt,name=lastUpdateTime"`
}

// ErrorCode classifies an error: whose fault it is and whether trying again can help.
type ErrorCode string

const (
	// ErrorInfraUnauthenticated means that the infrastructure refused the credentials. The owner of the credentials
	// has to act.
	ErrorInfraUnauthenticated ErrorCode = "ERR_INFRA_UNAUTHENTICATED"
	// ErrorInfraUnauthorized means that the credentials lack permissions on the infrastructure. The owner of the
	// credentials has to act.
	ErrorInfraUnauthorized ErrorCode = "ERR_INFRA_UNAUTHORIZED"
	// ErrorInfraQuotaExceeded means that a quota of the infrastructure account is used up. The owner of the account
	// has to act.
	ErrorInfraQuotaExceeded ErrorCode = "ERR_INFRA_QUOTA_EXCEEDED"
	// ErrorInfraRateLimitsExceeded means that the infrastructure throttles the requests of the account.
	ErrorInfraRateLimitsExceeded ErrorCode = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
	// ErrorInfraDependencies means that objects on the infrastructure, which Gardener does not own, stand in the way.
	// The user has to act.
	ErrorInfraDependencies ErrorCode = "ERR_INFRA_DEPENDENCIES"
	// ErrorRetryableInfraDependencies means that the infrastructure is not in the needed state yet; trying again
	// usually helps.
	ErrorRetryableInfraDependencies ErrorCode = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
	// ErrorInfraResourcesDepleted means that the infrastructure has no capacity left of what was requested.
	ErrorInfraResourcesDepleted ErrorCode = "ERR_INFRA_RESOURCES_DEPLETED"
	// ErrorCleanupClusterResources means that objects in the shoot could not be removed, for example because of
	// finalizers. The user has to act.
	ErrorCleanupClusterResources ErrorCode = "ERR_CLEANUP_CLUSTER_RESOURCES"
	// ErrorConfigurationProblem means that the user's configuration cannot work. Trying again does not help.
	ErrorConfigurationProblem ErrorCode = "ERR_CONFIGURATION_PROBLEM"
	// ErrorRetryableConfigurationProblem means that something the user configured, such as a pod disruption budget,
	// blocks for now; trying again may help.
	ErrorRetryableConfigurationProblem ErrorCode = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
	// ErrorProblematicWebhook means that a webhook in the shoot blocks operations that the cluster cannot do without.
	// The user has to act.
	ErrorProblematicWebhook ErrorCode = "ERR_PROBLEMATIC_WEBHOOK"
)

// Condition is one observation about an object, with a status and the reason for it. Lists of conditions have at
// most one entry per type.
type Condition struct {
	// Type is what is observed, in CamelCase.
	Type ConditionType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=ConditionType"`
	// Status is the answer: True, False, Unknown, or Progressing when a bad answer is not counted yet.
	Status ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=ConditionStatus"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime" protobuf:"bytes,3,opt,name=lastTransitionTime"`
	// LastUpdateTime is when reason, message or status last changed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime" protobuf:"bytes,4,opt,name=lastUpdateTime"`
	// Reason is the cause of the status as one CamelCase word, for programs.
	Reason string `json:"reason" protobuf:"bytes,5,opt,name=reason"`
	// Message is the cause of the status for users. It names the objects concerned.
	Message string `json:"message" protobuf:"bytes,6,opt,name=message"`
	// Codes classify the errors behind a status that is not True.
	// +optional
	Codes []ErrorCode `json:"codes,omitempty" protobuf:"bytes,7,rep,name=codes,casttype=ErrorCode"`
}

// ConditionType is what a condition is about. The types of each kind are declared beside that kind.
type ConditionType string

// ConditionStatus is the answer that a condition gives.
type ConditionStatus string

const (
	// ConditionTrue means that what the type says holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that what the type says does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that it could not be observed.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means that it did hold and does not at the moment, but the threshold for False is not
	// reached yet.
	ConditionProgressing ConditionStatus = "Progressing"
)

// Gardener identifies the Gardener component that last worked on an object.
type Gardener struct {
	// ID is the identity of the instance, such as its pod's container ID.
	ID string `json:"id" protobuf:"bytes,1,opt,name=id"`
	// Name is the host name of the instance, usually its pod name.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
	// Version is the Gardener version of the instance.
	Version string `json:"version" protobuf:"bytes,3,opt,name=version"`
}

// NamedResourceReference gives a name to an object in the same namespace, so that provider configuration can refer
// to it by that name.
type NamedResourceReference struct {
	// Name is the name that configuration uses. It is unique in the list.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// ResourceRef points to the object. Its namespace is that of the object that holds the reference.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef" protobuf:"bytes,2,opt,name=resourceRef"`
}

// Toleration lets a shoot run on seeds that have the taint.
type Toleration struct {
	// Key is the key of the taint that is tolerated.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`
	// Value is the value of the taint. Without it every value is tolerated.
	// +optional
	Value *string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`
}

// SeedSelector restricts the seeds that come into question.
type SeedSelector struct {
	// LabelSelector selects seeds by their labels. An empty selector matches every seed.
	metav1.LabelSelector `json:",inline" protobuf:"bytes,1,opt,name=labelSelector"`
	// ProviderTypes is the list of seed provider types to choose from. "*" stands for all; without entries, only
	// seeds of the shoot's own provider type are considered.
	// +optional
	ProviderTypes []string `json:"providerTypes,omitempty" protobuf:"bytes,2,rep,name=providerTypes"`
}

// AccessRestriction names a restriction that users or processes must respect when they access a cluster, such as
// "eu-access-only".
type AccessRestriction struct {
	// Name is the name of the restriction.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// AccessRestrictionWithOptions is an access restriction with settings of the user.
type AccessRestrictionWithOptions struct {
	// AccessRestriction is the requested restriction.
	AccessRestriction `json:",inline" protobuf:"bytes,1,opt,name=accessRestriction"`
	// Options refine the restriction; the meaning of keys and values is that of the landscape.
	// +optional
	Options map[string]string `json:"options,omitempty" protobuf:"bytes,2,rep,name=options"`
}

// Extension requests an extension of a type that is not part of the standard control plane.
type Extension struct {
	// Type is the type of the extension, as registered in a ControllerRegistration. It appears at most once in the
	// list.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// ProviderConfig is passed to the extension as it is.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Disabled turns off an extension that is otherwise enabled for all clusters. False is the default.
	// +optional
	Disabled *bool `json:"disabled,omitempty" protobuf:"varint,3,opt,name=disabled"`
}

// Backup is where the etcd backups of a cluster are kept.
type Backup struct {
	// Provider is the type of the object store, such as "local". Cannot be changed.
	Provider string `json:"provider" protobuf:"bytes,1,opt,name=provider"`
	// ProviderConfig is passed to the extension that manages the BackupBucket.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Region is the region of the object store. The cluster's own region if unset. Cannot be changed.
	// +optional
	Region *string `json:"region,omitempty" protobuf:"bytes,3,opt,name=region"`
	// CredentialsRef points to a Secret or a WorkloadIdentity with access to the object store, for a seed in the
	// "garden" namespace.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,5,opt,name=credentialsRef"`
}

// CRI selects the container runtime interface of worker nodes.
type CRI struct {
	// Name is the name of the runtime; only "containerd" is known.
	Name CRIName `json:"name" protobuf:"bytes,1,opt,name=name,casttype=CRIName"`
	// ContainerRuntimes are additional runtimes that can be chosen per pod by a RuntimeClass.
	// +optional
	ContainerRuntimes []ContainerRuntime `json:"containerRuntimes,omitempty" protobuf:"bytes,2,rep,name=containerRuntimes"`
}

// CRIName is the name of a container runtime interface.
type CRIName string

const (
	// CRINameContainerD is the only runtime that nodes come with.
	CRINameContainerD CRIName = "containerd"
)

// ContainerRuntime is an additional runtime below the CRI, such as gVisor.
type ContainerRuntime struct {
	// Type is the type of the runtime, as registered in a ControllerRegistration.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// ProviderConfig is passed to the extension that installs the runtime.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// IPFamily is a version of the Internet Protocol.
type IPFamily string

const (
	// IPFamilyIPv4 is version 4.
	IPFamilyIPv4 IPFamily = "IPv4"
	// IPFamilyIPv6 is version 6.
	IPFamilyIPv6 IPFamily = "IPv6"
)
