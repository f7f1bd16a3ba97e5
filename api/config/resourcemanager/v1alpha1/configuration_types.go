package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceManagerConfiguration configures the gardener-resource-manager.
type ResourceManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// SourceClientConnection says how the cluster with the ManagedResources is reached.
	// +optional
	SourceClientConnection ClientConnection `json:"sourceClientConnection,omitempty"`

	// TargetClientConnection says how the cluster is reached that the objects are applied to. Unset means that it is the
	// same one.
	// +optional
	TargetClientConnection *ClientConnection `json:"targetClientConnection,omitempty"`

	// LeaderElection configures how replicas find out which of them acts.
	LeaderElection componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection"`

	// Server says where the process listens.
	Server ServerConfiguration `json:"server"`

	// Debugging switches profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`

	// LogLevel is info, debug or error. Defaults to info.
	LogLevel string `json:"logLevel"`

	// LogFormat is json or text. Defaults to json.
	LogFormat string `json:"logFormat"`

	// Controllers configures the controllers one by one.
	Controllers ResourceManagerControllerConfiguration `json:"controllers"`

	// Webhooks configures the webhooks one by one.
	Webhooks ResourceManagerWebhookConfiguration `json:"webhooks"`
}

// ClientConnection says how a cluster is reached. qps defaults to 100, burst to 130.
type ClientConnection struct {
	// The fields of ClientConnectionConfiguration belong here too.
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`

	// Namespaces are the namespaces that objects are watched in. Unset means all of them.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// CacheResyncPeriod is how often every object of the caches is checked again. Defaults to 24h0m0s.
	// +optional
	CacheResyncPeriod *metav1.Duration `json:"cacheResyncPeriod,omitempty"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server for webhooks. The port defaults to 9449.
	Webhooks HTTPSServer `json:"webhooks"`

	// HealthProbes is the HTTP server for health probes. The port defaults to 8081.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 8080.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
}

// Server says where an HTTP server listens.
type Server struct {
	// BindAddress is the IP address to listen at. Empty means all of them.
	BindAddress string `json:"bindAddress"`

	// Port is the port to listen at.
	Port int `json:"port"`
}

// HTTPSServer says where an HTTPS server listens.
type HTTPSServer struct {
	// The fields of Server belong here too.
	Server `json:",inline"`

	// TLS says where its certificate is.
	TLS TLSServer `json:"tls"`
}

// TLSServer says where the certificate of a server is.
type TLSServer struct {
	// ServerCertDir is the directory with tls.crt and tls.key.
	ServerCertDir string `json:"serverCertDir"`
}
