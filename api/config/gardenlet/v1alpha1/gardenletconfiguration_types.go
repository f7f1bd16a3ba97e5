package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GardenletConfiguration configures a gardenlet.
type GardenletConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// GardenClientConnection is the connection to the garden cluster.
	// +optional
	GardenClientConnection *GardenClientConnection `json:"gardenClientConnection,omitempty"`
	// SeedClientConnection is the connection to the seed cluster.
	// +optional
	SeedClientConnection *SeedClientConnection `json:"seedClientConnection,omitempty"`
	// ShootClientConnection is the connection to the shoot clusters.
	// +optional
	ShootClientConnection *ShootClientConnection `json:"shootClientConnection,omitempty"`
	// Controllers configures the controllers.
	// +optional
	Controllers *GardenletControllerConfiguration `json:"controllers,omitempty"`
	// Resources are how many objects of a kind the seed has room for.
	// +optional
	Resources *ResourcesConfiguration `json:"resources,omitempty"`
	// LeaderElection configures which replica is the active one.
	// +optional
	LeaderElection *componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection,omitempty"`
	// LogLevel is the level of the log: "debug", "info" or "error". "info" is the default.
	LogLevel string `json:"logLevel"`
	// LogFormat is the format of the log: "json" or "text". "json" is the default.
	LogFormat string `json:"logFormat"`
	// Server configures the endpoints that the gardenlet serves.
	Server ServerConfiguration `json:"server"`
	// Debugging turns profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`
	// FeatureGates turn features on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// SeedConfig is the Seed that the gardenlet registers.
	// +optional
	SeedConfig *SeedConfig `json:"seedConfig,omitempty"`
	// Logging configures the logging stack of the seed.
	// +optional
	Logging *Logging `json:"logging,omitempty"`
	// SNI configures how the API servers of shoots are exposed.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
	// ETCDConfig configures etcd-druid.
	// +optional
	ETCDConfig *ETCDConfig `json:"etcdConfig,omitempty"`
	// ExposureClassHandlers are further ways to expose API servers, which ExposureClasses refer to.
	// +optional
	ExposureClassHandlers []ExposureClassHandler `json:"exposureClassHandlers,omitempty"`
	// Monitoring configures the monitoring stack.
	// +optional
	Monitoring *MonitoringConfig `json:"monitoring,omitempty"`
	// NodeToleration are the default tolerations of pods for failed nodes.
	// +optional
	NodeToleration *NodeToleration `json:"nodeToleration,omitempty"`
}

// ResourcesConfiguration are how many objects of a kind a seed has room for.
type ResourcesConfiguration struct {
	// Capacity is how many there can be, such as "shoots: 250".
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Reserved is how many of them are kept free by the scheduler.
	// +optional
	Reserved corev1.ResourceList `json:"reserved,omitempty"`
}

// ServerConfiguration configures the endpoints that a gardenlet serves.
type ServerConfiguration struct {
	// HealthProbes is the endpoint for health probes.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics is the endpoint for metrics.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
}

// Server is an address to listen on.
type Server struct {
	// BindAddress is the IP address. All if empty.
	BindAddress string `json:"bindAddress"`
	// Port is the port.
	Port int `json:"port"`
}

// SeedConfig is the Seed that a gardenlet registers.
type SeedConfig struct {
	// SeedTemplate is the metadata and the spec of the Seed.
	corev1beta1.SeedTemplate `json:",inline"`
}

// ExposureClassHandler is a way to expose API servers of shoots.
type ExposureClassHandler struct {
	// Name is its name, which ExposureClasses refer to. A DNS label of at most 34 characters.
	Name string `json:"name"`
	// LoadBalancerService configures the load balancer of this handler.
	LoadBalancerService LoadBalancerServiceConfig `json:"loadBalancerService"`
	// SNI configures the ingress gateway of this handler.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
}

// LoadBalancerServiceConfig configures a load balancer.
type LoadBalancerServiceConfig struct {
	// Annotations are put on the service.
	Annotations map[string]string `json:"annotations"`
	// Class is the load balancer class of the service.
	// +optional
	Class *string `json:"class,omitempty"`
}

// NodeToleration are the default tolerations of pods for failed nodes.
type NodeToleration struct {
	// DefaultNotReadyTolerationSeconds is how long pods stay on a node that is not ready, in seconds.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is how long pods stay on a node that cannot be reached, in seconds.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}
