package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SeedSettings turn features on and off for a seed.
type SeedSettings struct {
	// ExcessCapacityReservation keeps room for new control planes by pods that give way.
	// +optional
	ExcessCapacityReservation *SeedSettingExcessCapacityReservation `json:"excessCapacityReservation,omitempty" protobuf:"bytes,1,opt,name=excessCapacityReservation"`
	// Scheduling says whether the scheduler considers the seed.
	// +optional
	Scheduling *SeedSettingScheduling `json:"scheduling,omitempty" protobuf:"bytes,2,opt,name=scheduling"`
	// LoadBalancerServices configure the load balancers of the seed.
	// +optional
	LoadBalancerServices *SeedSettingLoadBalancerServices `json:"loadBalancerServices,omitempty" protobuf:"bytes,4,opt,name=loadBalancerServices"`
	// VerticalPodAutoscaler says whether Gardener runs a vertical pod autoscaler in the seed.
	// +optional
	VerticalPodAutoscaler *SeedSettingVerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty" protobuf:"bytes,5,opt,name=verticalPodAutoscaler"`
	// DependencyWatchdog says which dependency watchdogs run.
	// +optional
	DependencyWatchdog *SeedSettingDependencyWatchdog `json:"dependencyWatchdog,omitempty" protobuf:"bytes,7,opt,name=dependencyWatchdog"`
	// TopologyAwareRouting keeps traffic in its zone where possible.
	// +optional
	TopologyAwareRouting *SeedSettingTopologyAwareRouting `json:"topologyAwareRouting,omitempty" protobuf:"bytes,8,opt,name=topologyAwareRouting"`
	// ZoneSelection says how the zones of a control plane relate to those of the shoot's workers.
	// +optional
	ZoneSelection *SeedSettingZoneSelection `json:"zoneSelection,omitempty" protobuf:"bytes,9,opt,name=zoneSelection"`
	// PersistentVolumeClaimAutoscaler says whether the volumes of control planes grow on demand.
	// +optional
	PersistentVolumeClaimAutoscaler *SeedSettingPersistentVolumeClaimAutoscaler `json:"persistentVolumeClaimAutoscaler,omitempty" protobuf:"bytes,10,opt,name=persistentVolumeClaimAutoscaler"`
}

// SeedSettingExcessCapacityReservation keeps room for new control planes by pods that give way.
type SeedSettingExcessCapacityReservation struct {
	// Enabled turns it on. It is on by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,1,opt,name=enabled"`
	// Configs are the pods to reserve with. One pod of 2 CPUs and 6Gi by default.
	// +optional
	Configs []SeedSettingExcessCapacityReservationConfig `json:"configs,omitempty" protobuf:"bytes,2,rep,name=configs"`
}

// SeedSettingExcessCapacityReservationConfig is one reserving pod.
type SeedSettingExcessCapacityReservationConfig struct {
	// Resources are what the pod requests.
	Resources corev1.ResourceList `json:"resources" protobuf:"bytes,1,rep,name=resources"`
	// NodeSelector is where the pod goes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"bytes,2,rep,name=nodeSelector"`
	// Tolerations are the node taints that the pod tolerates.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty" protobuf:"bytes,3,rep,name=tolerations"`
}

// SeedSettingScheduling says whether the scheduler considers a seed.
type SeedSettingScheduling struct {
	// Visible is whether new shoots are put on the seed. True is the default; shoots that name the seed themselves
	// are not concerned.
	Visible bool `json:"visible" protobuf:"varint,1,opt,name=visible"`
}

// SeedSettingLoadBalancerServices configure the load balancers of a seed.
type SeedSettingLoadBalancerServices struct {
	// Annotations are put on the services of type LoadBalancer.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,1,rep,name=annotations"`
	// ExternalTrafficPolicy is the policy of the services. "Cluster" counts if unset.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,2,opt,name=externalTrafficPolicy,casttype=k8s.io/api/core/v1.ServiceExternalTrafficPolicy"`
	// Zones are settings for single zones.
	// +optional
	Zones []SeedSettingLoadBalancerServicesZones `json:"zones,omitempty" protobuf:"bytes,3,rep,name=zones"`
	// ProxyProtocol says whether the load balancers use the proxy protocol.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty" protobuf:"bytes,4,opt,name=proxyProtocol"`
	// ZonalIngress says whether there is a load balancer for every zone.
	// +optional
	ZonalIngress *SeedSettingLoadBalancerServicesZonalIngress `json:"zonalIngress,omitempty" protobuf:"bytes,5,opt,name=zonalIngress"`
	// Class is the load balancer class of the services. Cannot be changed on an existing service.
	// +optional
	Class *string `json:"class,omitempty" protobuf:"bytes,6,opt,name=class"`
}

// SeedSettingLoadBalancerServicesZones are load balancer settings for one zone.
type SeedSettingLoadBalancerServicesZones struct {
	// Name is the zone, one of spec.provider.zones.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Annotations are put on the services of this zone.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,2,rep,name=annotations"`
	// ExternalTrafficPolicy is the policy of the services of this zone.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,3,opt,name=externalTrafficPolicy,casttype=k8s.io/api/core/v1.ServiceExternalTrafficPolicy"`
	// ProxyProtocol says whether the load balancers of this zone use the proxy protocol.
	// +optional
	ProxyProtocol *LoadBalancerServicesProxyProtocol `json:"proxyProtocol,omitempty" protobuf:"bytes,4,opt,name=proxyProtocol"`
}

// LoadBalancerServicesProxyProtocol says whether load balancers use the proxy protocol.
type LoadBalancerServicesProxyProtocol struct {
	// Allowed accepts the proxy protocol beside plain connections. Only safe if the pods can be reached only through the
	// load balancer.
	Allowed bool `json:"allowed" protobuf:"varint,1,opt,name=allowed"`
}

// SeedSettingLoadBalancerServicesZonalIngress says whether there is a load balancer for every zone.
type SeedSettingLoadBalancerServicesZonalIngress struct {
	// Enabled turns it on. True is the default.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,1,opt,name=enabled"`
}

// SeedSettingVerticalPodAutoscaler says whether Gardener runs a vertical pod autoscaler in a seed.
type SeedSettingVerticalPodAutoscaler struct {
	// Enabled turns it on. True is the default; false is for seeds that have one already, such as shoots.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
	// FeatureGates turn features of the autoscaler on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty" protobuf:"bytes,2,rep,name=featureGates"`
	// MaxAllowed is the most that the autoscaler recommends for a container.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty" protobuf:"bytes,3,rep,name=maxAllowed"`
}

// SeedSettingDependencyWatchdog says which dependency watchdogs run.
type SeedSettingDependencyWatchdog struct {
	// Weeder restarts pods that wait in vain for a dependency that is back.
	// +optional
	Weeder *SeedSettingDependencyWatchdogWeeder `json:"weeder,omitempty" protobuf:"bytes,3,opt,name=weeder"`
	// Prober scales down controllers of shoots whose API server or nodes cannot be reached.
	// +optional
	Prober *SeedSettingDependencyWatchdogProber `json:"prober,omitempty" protobuf:"bytes,4,opt,name=prober"`
}

// SeedSettingDependencyWatchdogWeeder is the watchdog that restarts pods after their dependency is back.
type SeedSettingDependencyWatchdogWeeder struct {
	// Enabled turns it on. True is the default.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
}

// SeedSettingDependencyWatchdogProber is the watchdog that scales down controllers of unreachable shoots.
type SeedSettingDependencyWatchdogProber struct {
	// Enabled turns it on. True is the default.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
}

// SeedSettingTopologyAwareRouting keeps traffic in its zone where possible.
type SeedSettingTopologyAwareRouting struct {
	// Enabled turns it on. False is the default.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
}

// SeedSettingZoneSelection says how the zones of a control plane relate to those of the shoot's workers.
type SeedSettingZoneSelection struct {
	// Mode is how strict it is.
	Mode ZoneSelectionMode `json:"mode" protobuf:"bytes,1,opt,name=mode,casttype=ZoneSelectionMode"`
}

// ZoneSelectionMode is how strict the zones of workers count for the control plane.
type ZoneSelectionMode string

const (
	// ZoneSelectionModePrefer takes a zone of the workers if the seed has it, and any other if not.
	ZoneSelectionModePrefer ZoneSelectionMode = "Prefer"
	// ZoneSelectionModeEnforce takes only zones of the workers.
	ZoneSelectionModeEnforce ZoneSelectionMode = "Enforce"
)

// SeedSettingPersistentVolumeClaimAutoscaler says whether the volumes of control planes grow on demand.
type SeedSettingPersistentVolumeClaimAutoscaler struct {
	// Enabled turns it on. False is the default.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
}
