package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OperatorConfiguration configures the gardener-operator.
type OperatorConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// RuntimeClientConnection says how the runtime cluster is reached. qps defaults to 100, burst to 130.
	RuntimeClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"runtimeClientConnection"`

	// VirtualClientConnection says how the virtual garden is reached. qps defaults to 100, burst to 130. The kubeconfig is
	// found by itself.
	VirtualClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"virtualClientConnection"`

	// LeaderElection configures how replicas find out which of them acts.
	LeaderElection componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection"`

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

	// Controllers configures the controllers one by one.
	Controllers ControllerConfiguration `json:"controllers"`

	// NodeToleration configures how long pods stay on nodes that are gone.
	// +optional
	NodeToleration *NodeTolerationConfiguration `json:"nodeToleration,omitempty"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server for webhooks. The port defaults to 2750.
	Webhooks Server `json:"webhooks"`

	// HealthProbes is the HTTP server for health probes. The port defaults to 2751.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 2752.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
}

// Server says where a server listens.
type Server struct {
	// BindAddress is the IP address to listen at. Empty means all of them.
	BindAddress string `json:"bindAddress"`

	// Port is the port to listen at.
	Port int `json:"port"`
}

// NodeTolerationConfiguration configures how long pods stay on nodes that are gone. What is unset follows the
// cluster's API server.
type NodeTolerationConfiguration struct {
	// DefaultNotReadyTolerationSeconds is for how many seconds pods tolerate a node that is not ready.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`

	// DefaultUnreachableTolerationSeconds is for how many seconds pods tolerate a node that is unreachable.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}

// ConditionThreshold says how long a condition stays Progressing before it turns False.
type ConditionThreshold struct {
	// Type is the type of the condition.
	Type string `json:"type"`

	// Duration is how long.
	Duration metav1.Duration `json:"duration"`
}

const (
	// DefaultLockObjectNamespace is the namespace of the Lease for the leader election.
	DefaultLockObjectNamespace = "garden"
	// DefaultLockObjectName is the name of the Lease for the leader election.
	DefaultLockObjectName = "gardener-operator-leader-election"
)
