package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerRegistration registers an extension controller: which kinds and types of extension resources it
// serves, and how it gets to the seeds.
type ControllerRegistration struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the registration.
	// +optional
	Spec ControllerRegistrationSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerRegistrationList is a list of ControllerRegistration objects.
type ControllerRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ControllerRegistration `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ControllerRegistrationSpec says what an extension controller serves and how it is deployed.
type ControllerRegistrationSpec struct {
	// Resources are the kinds and types of extension resources that the controller serves. Each pair of kind and type
	// appears once.
	// +optional
	Resources []ControllerResource `json:"resources,omitempty" protobuf:"bytes,1,rep,name=resources"`
	// Deployment says how and when the controller is installed. Without it, it is installed by other means.
	// +optional
	Deployment *ControllerRegistrationDeployment `json:"deployment,omitempty" protobuf:"bytes,2,opt,name=deployment"`
}

// ControllerResource is a kind and type of extension resources that a controller serves.
type ControllerResource struct {
	// Kind is the kind of extension resource, such as "Infrastructure".
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Type is the value of spec.type of the extension resources, such as "local".
	Type string `json:"type" protobuf:"bytes,2,opt,name=type"`
	// ReconcileTimeout is how long to wait for an extension resource to become ready. "3m" is the default for kind
	// Extension.
	// +optional
	ReconcileTimeout *metav1.Duration `json:"reconcileTimeout,omitempty" protobuf:"bytes,4,opt,name=reconcileTimeout"`
	// Primary says that this controller alone is responsible for the kind and type, which installs and deletes it.
	// Exactly one registration can be primary for a pair. True is the default; cannot be changed.
	// +optional
	Primary *bool `json:"primary,omitempty" protobuf:"varint,5,opt,name=primary"`
	// Lifecycle says when an extension resource is handled relative to the kube-apiserver. Allowed for kind Extension
	// only.
	// +optional
	Lifecycle *ControllerResourceLifecycle `json:"lifecycle,omitempty" protobuf:"bytes,6,opt,name=lifecycle"`
	// WorkerlessSupported says that the extension can be used for shoots without workers. Allowed for kind Extension
	// only.
	// +optional
	WorkerlessSupported *bool `json:"workerlessSupported,omitempty" protobuf:"varint,7,opt,name=workerlessSupported"`
	// AutoEnable lists the types of cluster for which the extension is enabled without being in spec.extensions. Allowed for kind
	// Extension only.
	// +optional
	AutoEnable []ClusterType `json:"autoEnable,omitempty" protobuf:"bytes,8,rep,name=autoEnable,casttype=ClusterType"`
	// ClusterCompatibility lists the types of cluster that the extension can be used for. [shoot] is the default.
	// Allowed for kind Extension only.
	// +optional
	ClusterCompatibility []ClusterType `json:"clusterCompatibility,omitempty" protobuf:"bytes,9,rep,name=clusterCompatibility,casttype=ClusterType"`
	// ContinuousEndpointUpdate says whether the endpoints in the resource are kept up to date all the time. True is
	// the default for kind SelfHostedShootExposure, the only kind that has it.
	// +optional
	ContinuousEndpointUpdate *bool `json:"continuousEndpointUpdate,omitempty" protobuf:"varint,10,opt,name=continuousEndpointUpdate"`
}

// ClusterType is a type of cluster that extensions are for.
type ClusterType string

const (
	// ClusterTypeShoot is a cluster of users.
	ClusterTypeShoot ClusterType = "shoot"
	// ClusterTypeSeed is a cluster that hosts control planes.
	ClusterTypeSeed ClusterType = "seed"
	// ClusterTypeGarden is the cluster that serves the Gardener API.
	ClusterTypeGarden ClusterType = "garden"
)

// DeploymentRef names a ControllerDeployment.
type DeploymentRef struct {
	// Name is the name of the ControllerDeployment.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// ControllerRegistrationDeployment says how and when an extension controller is installed.
type ControllerRegistrationDeployment struct {
	// Policy says when a seed gets the controller. OnDemand is the default.
	// +optional
	Policy *ControllerDeploymentPolicy `json:"policy,omitempty" protobuf:"bytes,3,opt,name=policy,casttype=ControllerDeploymentPolicy"`
	// SeedSelector restricts the seeds that get the controller. It is not allowed if one of the resources is primary.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty" protobuf:"bytes,4,opt,name=seedSelector"`
	// DeploymentRefs names the ControllerDeployment. At most one is allowed.
	// +optional
	DeploymentRefs []DeploymentRef `json:"deploymentRefs,omitempty" protobuf:"bytes,5,rep,name=deploymentRefs"`
}

// ControllerDeploymentPolicy says when a seed gets an extension controller.
type ControllerDeploymentPolicy string

const (
	// ControllerDeploymentPolicyOnDemand means only when an extension resource on the seed needs it.
	ControllerDeploymentPolicyOnDemand ControllerDeploymentPolicy = "OnDemand"
	// ControllerDeploymentPolicyAlways means on every seed.
	ControllerDeploymentPolicyAlways ControllerDeploymentPolicy = "Always"
	// ControllerDeploymentPolicyAlwaysExceptNoShoots means on every seed that has at least one shoot.
	ControllerDeploymentPolicyAlwaysExceptNoShoots ControllerDeploymentPolicy = "AlwaysExceptNoShoots"
)

// ControllerResourceLifecycle says when an Extension resource is handled.
type ControllerResourceLifecycle struct {
	// Reconcile is when it is created or reconciled. AfterKubeAPIServer is the default.
	// +optional
	Reconcile *ControllerResourceLifecycleStrategy `json:"reconcile,omitempty" protobuf:"bytes,1,opt,name=reconcile,casttype=ControllerResourceLifecycleStrategy"`
	// Delete is when it is deleted. BeforeKubeAPIServer is the default.
	// +optional
	Delete *ControllerResourceLifecycleStrategy `json:"delete,omitempty" protobuf:"bytes,2,opt,name=delete,casttype=ControllerResourceLifecycleStrategy"`
	// Migrate is when it is migrated. BeforeKubeAPIServer is the default.
	// +optional
	Migrate *ControllerResourceLifecycleStrategy `json:"migrate,omitempty" protobuf:"bytes,3,opt,name=migrate,casttype=ControllerResourceLifecycleStrategy"`
}

// ControllerResourceLifecycleStrategy is a point in the flow of a shoot.
type ControllerResourceLifecycleStrategy string

const (
	// BeforeKubeAPIServer is before the kube-apiserver is created, or before it is deleted.
	BeforeKubeAPIServer ControllerResourceLifecycleStrategy = "BeforeKubeAPIServer"
	// AfterKubeAPIServer is after the kube-apiserver was created, or after it was deleted.
	AfterKubeAPIServer ControllerResourceLifecycleStrategy = "AfterKubeAPIServer"
	// AfterWorker is after the workers were created; it is not possible for deletion and migration.
	AfterWorker ControllerResourceLifecycleStrategy = "AfterWorker"
)
