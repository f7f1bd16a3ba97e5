package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Networking are the networks of a cluster. They must neither overlap with each other nor with those of the seed.
type Networking struct {
	// Type is the type of the network extension, such as "calico". Cannot be changed once set.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`
	// ProviderConfig is passed to the network extension.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Pods is the range of the pod addresses, as CIDR. That of the seed's defaults if unset. Cannot be changed once
	// set.
	// +optional
	Pods *string `json:"pods,omitempty" protobuf:"bytes,3,opt,name=pods"`
	// Nodes is the range of the node addresses, as CIDR. Depending on the infrastructure, filled by its extension.
	// +optional
	Nodes *string `json:"nodes,omitempty" protobuf:"bytes,4,opt,name=nodes"`
	// Services is the range of the service addresses, as CIDR. That of the seed's defaults if unset. Cannot be
	// changed once set.
	// +optional
	Services *string `json:"services,omitempty" protobuf:"bytes,5,opt,name=services"`
	// IPFamilies are the IP families of the cluster: [IPv4] (the default), [IPv6], or both. A second one can be added
	// later.
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty" protobuf:"bytes,6,rep,name=ipFamilies,casttype=IPFamily"`
}

// NetworkingStatus are the network ranges that the cluster really has.
type NetworkingStatus struct {
	// Pods are the ranges of the pod addresses, as CIDRs.
	// +optional
	Pods []string `json:"pods,omitempty" protobuf:"bytes,1,rep,name=pods"`
	// Nodes are the ranges of the node addresses, as CIDRs.
	// +optional
	Nodes []string `json:"nodes,omitempty" protobuf:"bytes,2,rep,name=nodes"`
	// Services are the ranges of the service addresses, as CIDRs.
	// +optional
	Services []string `json:"services,omitempty" protobuf:"bytes,3,rep,name=services"`
	// EgressCIDRs are the addresses, as CIDRs, that the cluster's traffic to the internet comes from, if they are
	// known and do not change.
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty" protobuf:"bytes,4,rep,name=egressCIDRs"`
}
