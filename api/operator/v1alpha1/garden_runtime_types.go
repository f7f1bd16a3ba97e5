package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// RuntimeCluster describes the cluster that the garden runs in.
type RuntimeCluster struct {
	// Ingress is about domains and the ingress controller.
	Ingress Ingress `json:"ingress"`

	// Networking lists the networks of the cluster.
	Networking RuntimeNetworking `json:"networking"`

	// Provider says where the cluster is.
	Provider Provider `json:"provider"`

	// Settings are settings for components.
	// +optional
	Settings *Settings `json:"settings,omitempty"`

	// Volume is about the volumes of the cluster.
	// +optional
	Volume *Volume `json:"volume,omitempty"`
}

// Ingress is about the domains under which components of the runtime cluster are reachable.
type Ingress struct {
	// Domains are the domains. The first one is the main one.
	// +kubebuilder:validation:MinItems=1
	// +optional
	Domains []DNSDomain `json:"domains,omitempty"`

	// Controller is the ingress controller that is deployed.
	Controller corev1beta1.IngressController `json:"controller"`
}

// DNSDomain is a domain of the garden.
type DNSDomain struct {
	// Name is the domain.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Provider is the name of the DNS provider. Unset means the first one.
	// +optional
	Provider *string `json:"provider,omitempty"`
}

// RuntimeNetworking lists the networks of the runtime cluster. They cannot be found out, but network policies need
// them.
type RuntimeNetworking struct {
	// IPFamilies lists the IP families, the preferred one first. Unset means IPv4. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ipFamilies is immutable"
	// +optional
	IPFamilies []corev1beta1.IPFamily `json:"ipFamilies,omitempty"`

	// Nodes are the networks of nodes, as CIDRs.
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// Pods are the networks of pods, as CIDRs.
	// +kubebuilder:validation:MinItems=1
	Pods []string `json:"pods"`

	// Services are the networks of services, as CIDRs.
	// +kubebuilder:validation:MinItems=1
	Services []string `json:"services"`

	// BlockCIDRs are networks that pods of the garden may not talk to.
	// +optional
	BlockCIDRs []string `json:"blockCIDRs,omitempty"`
}

// Provider says where the runtime cluster is.
type Provider struct {
	// Region is the region of the cluster. Needed when backups are in a bucket whose region is not given.
	// +optional
	Region *string `json:"region,omitempty"`

	// Zones are the zones of the cluster. Pods are spread over them when the garden is highly available.
	// +optional
	Zones []string `json:"zones,omitempty"`
}

// Settings are settings for components of the runtime cluster.
type Settings struct {
	// LoadBalancerServices is about Services of type LoadBalancer.
	// +optional
	LoadBalancerServices *SettingLoadBalancerServices `json:"loadBalancerServices,omitempty"`

	// VerticalPodAutoscaler is about the vertical pod autoscaler.
	// +optional
	VerticalPodAutoscaler *SettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`

	// TopologyAwareRouting is about keeping traffic within a zone.
	// +optional
	TopologyAwareRouting *SettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty"`

	// PersistentVolumeClaimAutoscaler is about the autoscaler of volumes.
	// +optional
	PersistentVolumeClaimAutoscaler *SettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty"`
}

// SettingLoadBalancerServices is about Services of type LoadBalancer.
type SettingLoadBalancerServices struct {
	// Annotations are put on the Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// ExternalTrafficPolicy says whether traffic keeps its source address, Local, or may go through any node, Cluster.
	// Unset means Cluster.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// ProxyProtocol is about the PROXY protocol.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty"`
}

// LoadBalancerServicesProxyProtocol is about the PROXY protocol, with which load balancers pass on the client's
// address.
type LoadBalancerServicesProxyProtocol struct {
	// Allowed says whether it is accepted. Connections without it are accepted all the same. To be set only if load
	// balancers use it: otherwise clients could pretend to have any address.
	Allowed bool `json:"allowed"`
}

// SettingVerticalPodAutoscaler is about the vertical pod autoscaler.
type SettingVerticalPodAutoscaler struct {
	// Enabled says whether it is deployed. Set it to false when the cluster has one already. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// FeatureGates are feature gates of the vertical pod autoscaler.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// MaxAllowed is the most that it recommends for a container.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}

// SettingTopologyAwareRouting is about keeping traffic within a zone.
type SettingTopologyAwareRouting struct {
	// Enabled says whether traffic is kept within a zone where possible. Only for gardens that are highly available.
	Enabled bool `json:"enabled"`
}

// SettingPersistentVolumeClaimAutoscaler is about the autoscaler of volumes.
type SettingPersistentVolumeClaimAutoscaler struct {
	// Enabled says whether it is deployed.
	Enabled bool `json:"enabled"`
}

// Volume is about the volumes of the runtime cluster.
type Volume struct {
	// MinimumSize is the least size that volumes can have. Smaller requests are rounded up.
	// +optional
	MinimumSize *resource.Quantity `json:"minimumSize,omitempty"`
}
