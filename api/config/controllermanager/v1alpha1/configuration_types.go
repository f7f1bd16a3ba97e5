package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerManagerConfiguration configures the gardener-controller-manager.
type ControllerManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// GardenClientConnection says how the garden cluster is reached. qps defaults to 50, burst to 100.
	GardenClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"gardenClientConnection"`

	// Controllers configures the controllers one by one.
	Controllers ControllerManagerControllerConfiguration `json:"controllers"`

	// LeaderElection configures how replicas find out which of them acts.
	// +optional
	LeaderElection *componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection,omitempty"`

	// LogLevel is info, debug or error. Defaults to info.
	LogLevel string `json:"logLevel"`

	// LogFormat is json or text. Defaults to json.
	LogFormat string `json:"logFormat"`

	// Server says where the process listens.
	Server ServerConfiguration `json:"server"`

	// Debugging switches profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`

	// FeatureGates are feature gates by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
	// HealthProbes is the HTTP server for health probes. The port defaults to 2718.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 2719.
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

// ConditionThreshold says how long a condition stays Progressing before it turns False.
type ConditionThreshold struct {
	// Type is the type of the condition.
	Type string `json:"type"`

	// Duration is how long.
	Duration metav1.Duration `json:"duration"`
}

const (
	// ControllerManagerDefaultLockObjectNamespace is the namespace of the Lease for the leader election.
	ControllerManagerDefaultLockObjectNamespace = "garden"
	// ControllerManagerDefaultLockObjectName is the name of the Lease for the leader election.
	ControllerManagerDefaultLockObjectName = "gardener-controller-manager-leader-election"
	// DefaultControllerConcurrentSyncs is how many objects a controller works on at the same time unless configured otherwise.
	DefaultControllerConcurrentSyncs = 5
)
