package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Seed is a cluster that hosts the control planes of shoots. Its gardenlet registers it.
type Seed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec describes the seed.
	// +optional
	Spec SeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardenlet and the gardener-controller-manager last saw of the seed.
	// +optional
	Status SeedStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SeedList is a list of Seed objects.
type SeedList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []Seed `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// SeedTemplate is the part of a Seed that a gardenlet's configuration can hold.
type SeedTemplate struct {
	// ObjectMeta is the metadata of the Seed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec describes the seed.
	// +optional
	Spec SeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// SeedSpec describes a seed.
type SeedSpec struct {
	// Backup is where the etcd backups of the shoots are kept. Without it there are no backups.
	// +optional
	Backup *Backup `json:"backup,omitempty" protobuf:"bytes,1,opt,name=backup"`
	// DNS is which DNS zones and providers the seed uses.
	DNS SeedDNS `json:"dns" protobuf:"bytes,2,opt,name=dns"`
	// Networks are the networks of the seed.
	Networks SeedNetworks `json:"networks" protobuf:"bytes,3,opt,name=networks"`
	// Provider is the infrastructure of the seed.
	Provider SeedProvider `json:"provider" protobuf:"bytes,4,opt,name=provider"`
	// Taints keep away shoots that do not tolerate them.
	// +optional
	Taints []SeedTaint `json:"taints,omitempty" protobuf:"bytes,6,rep,name=taints"`
	// Volume are facts about volumes in the seed.
	// +optional
	Volume *SeedVolume `json:"volume,omitempty" protobuf:"bytes,7,opt,name=volume"`
	// Settings turn features on and off for the seed.
	// +optional
	Settings *SeedSettings `json:"settings,omitempty" protobuf:"bytes,8,opt,name=settings"`
	// Ingress is how ingress into the seed is set up. It cannot be removed, nor its domain changed.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty" protobuf:"bytes,9,opt,name=ingress"`
	// AccessRestrictions are the access restrictions that the seed meets.
	// +optional
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty" protobuf:"bytes,10,rep,name=accessRestrictions"`
	// Extensions requests extensions of the seed itself.
	// +optional
	Extensions []Extension `json:"extensions,omitempty" protobuf:"bytes,11,rep,name=extensions"`
	// Resources are objects in the "garden" namespace that the seed's extensions use.
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" protobuf:"bytes,12,rep,name=resources"`
}

// SeedTaint keeps away shoots that do not tolerate it.
type SeedTaint struct {
	// Key is the key of the taint. "seed.gardener.cloud/protected" keeps away shoots outside of the "garden"
	// namespace.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`
	// Value is the value of the taint.
	// +optional
	Value *string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`
}

// SeedProvider is the infrastructure of a seed.
type SeedProvider struct {
	// Type is the provider type of the infrastructure.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// ProviderConfig is passed to the provider extension.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Region is the region of the seed.
	Region string `json:"region" protobuf:"bytes,3,opt,name=region"`
	// Zones are the availability zones of the seed's nodes, for control planes that survive the failure of one.
	// +optional
	Zones []string `json:"zones,omitempty" protobuf:"bytes,4,rep,name=zones"`
}

// SeedNetworks are the networks of a seed. They must not overlap with those of shoots that run there.
type SeedNetworks struct {
	// Nodes is the range of the node addresses, as CIDR. Cannot be changed once set.
	// +optional
	Nodes *string `json:"nodes,omitempty" protobuf:"bytes,1,opt,name=nodes"`
	// Pods is the range of the pod addresses, as CIDR. Cannot be changed.
	Pods string `json:"pods" protobuf:"bytes,2,opt,name=pods"`
	// Services is the range of the service addresses, as CIDR. Cannot be changed.
	Services string `json:"services" protobuf:"bytes,3,opt,name=services"`
	// ShootDefaults are ranges for shoots that do not name theirs.
	// +optional
	ShootDefaults *ShootNetworks `json:"shootDefaults,omitempty" protobuf:"bytes,4,opt,name=shootDefaults"`
	// BlockCIDRs are ranges that no pod in the seed may reach, such as the metadata service of the infrastructure.
	// +optional
	BlockCIDRs []string `json:"blockCIDRs,omitempty" protobuf:"bytes,5,rep,name=blockCIDRs"`
	// IPFamilies are the IP families of the seed: [IPv4] (the default), [IPv6], or both. Cannot be changed.
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty" protobuf:"bytes,6,rep,name=ipFamilies,casttype=IPFamily"`
}

// ShootNetworks are network ranges for shoots that do not name theirs.
type ShootNetworks struct {
	// Pods is the range of the pod addresses, as CIDR.
	// +optional
	Pods *string `json:"pods,omitempty" protobuf:"bytes,1,opt,name=pods"`
	// Services is the range of the service addresses, as CIDR.
	// +optional
	Services *string `json:"services,omitempty" protobuf:"bytes,2,opt,name=services"`
}

// SeedVolume are facts about volumes in a seed.
type SeedVolume struct {
	// MinimumSize is the smallest volume; smaller claims are made this big.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty" protobuf:"bytes,1,opt,name=minimumSize"`
	// Providers names the volume provisioners by purpose.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	Providers []SeedVolumeProvider `json:"providers,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=providers"`
}

// SeedVolumeProvider is a volume provisioner for a purpose.
type SeedVolumeProvider struct {
	// Purpose is what it is for, such as "etcd-main". "default" means all that have no other.
	Purpose string `json:"purpose" protobuf:"bytes,1,opt,name=purpose"`
	// Name is the name of the provisioner.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
}

// Ingress is how ingress into a seed is set up.
type Ingress struct {
	// Domain is the domain below which the seed's own endpoints live. Cannot be changed.
	Domain string `json:"domain" protobuf:"bytes,1,opt,name=domain"`
	// Controller is the ingress controller.
	Controller IngressController `json:"controller" protobuf:"bytes,2,opt,name=controller"`
}

// IngressController is an ingress controller in a seed.
type IngressController struct {
	// Kind is its kind; only "nginx" is supported.
	// +kubebuilder:validation:Enum=nginx
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// ProviderConfig is passed to the ingress controller as its configuration.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// SeedStatus is what was last seen of a seed.
type SeedStatus struct {
	// Gardener is the gardenlet that last reconciled the seed.
	// +optional
	Gardener *Gardener `json:"gardener,omitempty" protobuf:"bytes,1,opt,name=gardener"`
	// KubernetesVersion is the Kubernetes version of the seed. Written by the gardenlet.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty" protobuf:"bytes,2,opt,name=kubernetesVersion"`
	// Conditions are the observations about the seed. GardenletReady is turned Unknown by the gardener-controller-
	// manager; the others are written by the gardenlet or by the care controllers named at their constants.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`
	// ObservedGeneration is the generation of the spec that the gardenlet last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,4,opt,name=observedGeneration"`
	// ClusterIdentity identifies the seed cluster and never changes. Written once by the gardenlet.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty" protobuf:"bytes,5,opt,name=clusterIdentity"`
	// Capacity is how much there is of each resource, most of all "shoots".
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty" protobuf:"bytes,6,rep,name=capacity"`
	// Allocatable is how much of it the scheduler may give away.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty" protobuf:"bytes,7,rep,name=allocatable"`
	// ClientCertificateExpirationTimestamp is when the client certificate of the gardenlet for the garden runs out.
	// +optional
	ClientCertificateExpirationTimestamp *metav1.Time `json:"clientCertificateExpirationTimestamp,omitempty" protobuf:"bytes,8,opt,name=clientCertificateExpirationTimestamp"`
	// LastOperation is the last operation of the gardenlet on the seed.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty" protobuf:"bytes,9,opt,name=lastOperation"`
}
