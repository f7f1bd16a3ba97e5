package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CloudProfile is what an infrastructure offers to shoots: Kubernetes versions, machine images and types, regions,
// volumes. Operators maintain it.
type CloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the offer.
	// +optional
	Spec CloudProfileSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is the offer's state, which depends on time.
	// +optional
	Status CloudProfileStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CloudProfileList is a list of CloudProfile objects.
type CloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []CloudProfile `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// CloudProfileSpec is what an infrastructure offers to shoots.
type CloudProfileSpec struct {
	// CABundle is a CA bundle in PEM form that is installed on all nodes.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,1,opt,name=caBundle"`
	// Kubernetes are the offered Kubernetes versions.
	Kubernetes KubernetesSettings `json:"kubernetes" protobuf:"bytes,2,opt,name=kubernetes"`
	// MachineImages are the offered operating system images.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	MachineImages []MachineImage `json:"machineImages" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=machineImages"`
	// MachineTypes are the offered types of machines.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	MachineTypes []MachineType `json:"machineTypes" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=machineTypes"`
	// ProviderConfig is passed to the provider extension.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,5,opt,name=providerConfig"`
	// Regions are the offered regions and their zones.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Regions []Region `json:"regions" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,6,rep,name=regions"`
	// SeedSelector restricts the seeds for shoots that use this profile.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty" protobuf:"bytes,7,opt,name=seedSelector"`
	// Type is the provider type of the infrastructure, such as "local".
	Type string `json:"type" protobuf:"bytes,8,opt,name=type"`
	// VolumeTypes are the offered types of volumes.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,9,rep,name=volumeTypes"`
	// Bastion is the machine and image for bastions. Without it, the provider extension's choice counts.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty" protobuf:"bytes,10,opt,name=bastion"`
	// Limits are upper bounds for shoots that use this profile.
	// +optional
	Limits *Limits `json:"limits,omitempty" protobuf:"bytes,11,opt,name=limits"`
	// MachineCapabilities are the names and all possible values of what machine types and images can differ in, such
	// as "architecture".
	// +optional
	MachineCapabilities []CapabilityDefinition `json:"machineCapabilities,omitempty" protobuf:"bytes,12,rep,name=machineCapabilities"`
	// ControlPlane are settings for the control planes of shoots that use this profile.
	// +optional
	ControlPlane *CloudProfileControlPlane `json:"controlPlane,omitempty" protobuf:"bytes,13,opt,name=controlPlane"`
}

// CloudProfileControlPlane are settings for the control planes of shoots that use a profile.
type CloudProfileControlPlane struct {
	// AllowZonePinning says whether shoots may name the zones of their control plane in spec.controlPlane.zones.
	// False is the default.
	// +optional
	AllowZonePinning *bool `json:"allowZonePinning,omitempty" protobuf:"varint,1,opt,name=allowZonePinning"`
}

// KubernetesSettings are the offered Kubernetes versions.
type KubernetesSettings struct {
	// Versions are the offered versions.
	// +patchMergeKey=version
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=version
	// +optional
	Versions []ExpirableVersion `json:"versions,omitempty" patchStrategy:"merge" patchMergeKey:"version" protobuf:"bytes,1,rep,name=versions"`
}

// ExpirableVersion is a version of something that is only offered for some time.
type ExpirableVersion struct {
	// Version is the version, as semantic version without a leading "v".
	Version string `json:"version" protobuf:"bytes,1,opt,name=version"`
	// ExpirationDate is when the version is not offered any more and shoots are moved away from it.
	//
	// Deprecated: Use lifecycle instead.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty" protobuf:"bytes,2,opt,name=expirationDate"`
	// Classification says how the version can be used at present.
	//
	// Deprecated: Use lifecycle instead.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty" protobuf:"bytes,3,opt,name=classification,casttype=VersionClassification"`
	// Lifecycle says how the classification changes over time. Stages are in ascending order; excludes classification
	// and expirationDate.
	// +optional
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty" protobuf:"bytes,4,rep,name=lifecycle"`
}

// LifecycleStage is one stage in the lifecycle of a version.
type LifecycleStage struct {
	// Classification is the classification in this stage.
	Classification VersionClassification `json:"classification" protobuf:"bytes,1,opt,name=classification,casttype=VersionClassification"`
	// StartTime is when the stage begins. The first stage may go without: it has always been.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,2,opt,name=startTime"`
}

// VersionClassification says how a version can be used.
type VersionClassification string

const (
	// ClassificationUnavailable means that the version cannot be used yet.
	ClassificationUnavailable VersionClassification = "unavailable"
	// ClassificationPreview means that the version may be tried, but not be the target of automatic updates.
	ClassificationPreview VersionClassification = "preview"
	// ClassificationSupported means that the version is recommended. At most one patch version per minor version of
	// Kubernetes should be.
	ClassificationSupported VersionClassification = "supported"
	// ClassificationDeprecated means that the version should not be used any more and will expire.
	ClassificationDeprecated VersionClassification = "deprecated"
	// ClassificationExpired means that the version cannot be used for new clusters, and existing ones are updated by
	// force.
	ClassificationExpired VersionClassification = "expired"
)

// MachineImage is an operating system image in its versions.
type MachineImage struct {
	// Name is the name of the image.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Versions are the offered versions.
	// +patchMergeKey=version
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=version
	Versions []MachineImageVersion `json:"versions" patchStrategy:"merge" patchMergeKey:"version" protobuf:"bytes,2,rep,name=versions"`
	// UpdateStrategy says to which version the automatic update goes. "major" is the default.
	// +optional
	UpdateStrategy *MachineImageUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,3,opt,name=updateStrategy,casttype=MachineImageUpdateStrategy"`
}

// MachineImageUpdateStrategy says to which version of a machine image an automatic update goes.
type MachineImageUpdateStrategy string

const (
	// UpdateStrategyPatch goes to the newest patch version of the current minor version; only a forced update goes to
	// the next minor.
	UpdateStrategyPatch MachineImageUpdateStrategy = "patch"
	// UpdateStrategyMinor goes to the newest version of the current major version; only a forced update goes to the
	// next major.
	UpdateStrategyMinor MachineImageUpdateStrategy = "minor"
	// UpdateStrategyMajor goes to the newest version of all.
	UpdateStrategyMajor MachineImageUpdateStrategy = "major"
)

// MachineImageVersion is one version of a machine image.
type MachineImageVersion struct {
	// ExpirableVersion is the version and how long it is offered.
	ExpirableVersion `json:",inline" protobuf:"bytes,1,opt,name=expirableVersion"`
	// CRI are the container runtime interfaces that the image has. containerd is the default.
	// +optional
	CRI []CRI `json:"cri,omitempty" protobuf:"bytes,2,rep,name=cri"`
	// Architectures are the CPU architectures that the image exists for. [amd64] is the default if the profile
	// declares no capabilities.
	// +optional
	Architectures []string `json:"architectures,omitempty" protobuf:"bytes,3,rep,name=architectures"`
	// KubeletVersionConstraint is a constraint on the kubelet versions that run on the image, such as ">= 1.30".
	// +optional
	KubeletVersionConstraint *string `json:"kubeletVersionConstraint,omitempty" protobuf:"bytes,4,opt,name=kubeletVersionConstraint"`
	// InPlaceUpdates says whether running machines can be brought to this version.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty" protobuf:"bytes,5,opt,name=inPlaceUpdates"`
	// CapabilityFlavors are the sets of capabilities that the image exists for. Needed if the profile declares
	// capabilities.
	// +optional
	CapabilityFlavors []MachineImageFlavor `json:"capabilityFlavors,omitempty" protobuf:"bytes,6,rep,name=capabilityFlavors"`
}

// InPlaceUpdates says whether running machines can be brought to a machine image version.
type InPlaceUpdates struct {
	// Supported says whether it is possible.
	Supported bool `json:"supported" protobuf:"varint,1,opt,name=supported"`
	// MinVersionForUpdate is the lowest version that can be updated in place to this one.
	// +optional
	MinVersionForUpdate *string `json:"minVersionForUpdate,omitempty" protobuf:"bytes,2,opt,name=minVersionForUpdate"`
}

// MachineType is a type of machine.
type MachineType struct {
	// CPU is the number of CPUs.
	CPU resource.Quantity `json:"cpu" protobuf:"bytes,1,opt,name=cpu"`
	// GPU is the number of GPUs.
	GPU resource.Quantity `json:"gpu" protobuf:"bytes,2,opt,name=gpu"`
	// Memory is the size of the memory.
	Memory resource.Quantity `json:"memory" protobuf:"bytes,3,opt,name=memory"`
	// Name is the name of the type.
	Name string `json:"name" protobuf:"bytes,4,opt,name=name"`
	// Storage is the root disk that comes with the type, or the limits for one.
	// +optional
	Storage *MachineTypeStorage `json:"storage,omitempty" protobuf:"bytes,5,opt,name=storage"`
	// Usable says whether new worker pools may use the type. True is the default.
	// +optional
	Usable *bool `json:"usable,omitempty" protobuf:"varint,6,opt,name=usable"`
	// Architecture is the CPU architecture. "amd64" is the default if the profile declares no capabilities.
	// +optional
	Architecture *string `json:"architecture,omitempty" protobuf:"bytes,7,opt,name=architecture"`
	// Capabilities are the capabilities of the type. A capability that is not named has all declared values.
	// +optional
	Capabilities Capabilities `json:"capabilities,omitempty" protobuf:"bytes,8,rep,name=capabilities"`
	// MachineControllerManager overrides settings of the machine-controller-manager for machines of this type.
	// +optional
	MachineControllerManager *CloudProfileMachineControllerManagerSettings `json:"machineControllerManager,omitempty" protobuf:"bytes,9,opt,name=machineControllerManager"`
}

// CloudProfileMachineControllerManagerSettings override settings of the machine-controller-manager for a machine
// type.
type CloudProfileMachineControllerManagerSettings struct {
	// MachineCreationTimeout is how long the creation of a machine may take before it counts as failed.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty" protobuf:"bytes,1,opt,name=machineCreationTimeout"`
}

// MachineTypeStorage is the root disk of a machine type. Either size or minSize is set.
type MachineTypeStorage struct {
	// Class is the class of the disk, such as "standard" or "premium".
	Class string `json:"class" protobuf:"bytes,1,opt,name=class"`
	// StorageSize is the size of the disk, if it is given by the machine type.
	// +optional
	StorageSize *resource.Quantity `json:"size,omitempty" protobuf:"bytes,2,opt,name=size"`
	// Type is the volume type of the disk.
	Type string `json:"type" protobuf:"bytes,3,opt,name=type"`
	// MinSize is the smallest disk that can be requested.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty" protobuf:"bytes,4,opt,name=minSize"`
}

// Region is a region of an infrastructure.
type Region struct {
	// Name is the name of the region.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Zones are the availability zones in the region.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	Zones []AvailabilityZone `json:"zones,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=zones"`
	// Labels describe the region for programs that choose one.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,3,rep,name=labels"`
	// AccessRestrictions are the access restrictions that can be met in this region.
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty" protobuf:"bytes,4,rep,name=accessRestrictions"`
}

// AvailabilityZone is an availability zone of a region.
type AvailabilityZone struct {
	// Name is the name of the zone.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// UnavailableMachineTypes are the machine types of the profile that this zone does not have.
	// +optional
	UnavailableMachineTypes []string `json:"unavailableMachineTypes,omitempty" protobuf:"bytes,2,rep,name=unavailableMachineTypes"`
	// UnavailableVolumeTypes are the volume types of the profile that this zone does not have.
	// +optional
	UnavailableVolumeTypes []string `json:"unavailableVolumeTypes,omitempty" protobuf:"bytes,3,rep,name=unavailableVolumeTypes"`
}

// VolumeType is a type of volume.
type VolumeType struct {
	// Class is the class of the volume, such as "standard" or "premium"; quotas count by it.
	Class string `json:"class" protobuf:"bytes,1,opt,name=class"`
	// Name is the name of the type.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
	// Usable says whether new worker pools may use the type. True is the default.
	// +optional
	Usable *bool `json:"usable,omitempty" protobuf:"varint,3,opt,name=usable"`
	// MinSize is the smallest volume that can be requested.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty" protobuf:"bytes,4,opt,name=minSize"`
}

// Bastion is the machine and image for bastions.
type Bastion struct {
	// MachineImage is the image. Without it, the newest supported one is taken.
	// +optional
	MachineImage *BastionMachineImage `json:"machineImage,omitempty" protobuf:"bytes,1,opt,name=machineImage"`
	// MachineType is the machine type. Without it, the smallest fitting one is taken.
	// +optional
	MachineType *BastionMachineType `json:"machineType,omitempty" protobuf:"bytes,2,opt,name=machineType"`
}

// BastionMachineImage is the image of bastions.
type BastionMachineImage struct {
	// Name is the name of a machine image of the profile.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Version is its version. The newest supported one if unset.
	// +optional
	Version *string `json:"version,omitempty" protobuf:"bytes,2,opt,name=version"`
}

// BastionMachineType is the machine type of bastions.
type BastionMachineType struct {
	// Name is the name of a machine type of the profile.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// Limits are upper bounds for shoots.
type Limits struct {
	// MaxNodesTotal is how many nodes a shoot may have at most, over all pools.
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty" protobuf:"varint,1,opt,name=maxNodesTotal"`
}

// CapabilityDefinition declares a capability and all its possible values.
type CapabilityDefinition struct {
	// Name is the name of the capability.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Values are its possible values.
	Values CapabilityValues `json:"values" protobuf:"bytes,2,opt,name=values"`
}

// CloudProfileStatus is the state of a profile's offer, which depends on time.
type CloudProfileStatus struct {
	// Kubernetes is the state of the Kubernetes versions.
	// +optional
	Kubernetes *KubernetesStatus `json:"kubernetes,omitempty" protobuf:"bytes,1,opt,name=kubernetes"`
	// MachineImages is the state of the machine images.
	// +optional
	MachineImages []MachineImageStatus `json:"machineImages,omitempty" protobuf:"bytes,2,rep,name=machineImages"`
}

// KubernetesStatus is the state of the offered Kubernetes versions.
type KubernetesStatus struct {
	// Versions are the versions and their present classification.
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty" protobuf:"bytes,1,rep,name=versions"`
}

// ExpirableVersionStatus is the present classification of a version.
type ExpirableVersionStatus struct {
	// Version is the version.
	Version string `json:"version" protobuf:"bytes,1,opt,name=version"`
	// Classification is what its lifecycle says for the present time. Written by the gardener-controller-manager.
	Classification VersionClassification `json:"classification" protobuf:"bytes,2,opt,name=classification,casttype=VersionClassification"`
}

// MachineImageStatus is the state of a machine image.
type MachineImageStatus struct {
	// Name is the name of the image.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Versions are its versions and their present classification.
	// +optional
	Versions []ExpirableVersionStatus `json:"versions,omitempty" protobuf:"bytes,2,rep,name=versions"`
}

// CloudProfileReference points to the profile that a shoot uses, or that a namespaced profile extends.
type CloudProfileReference struct {
	// Kind is "CloudProfile" or "NamespacedCloudProfile".
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Name is the name of the profile; a NamespacedCloudProfile is looked up in the namespace of the object.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
}
