package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeAgentConfiguration configures the gardener-node-agent.
type NodeAgentConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection says how the API server of the Shoot is reached. contentType defaults to
	// application/vnd.kubernetes.protobuf, qps to 50, burst to 100.
	ClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"clientConnection"`

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

	// APIServer says where the API server is, for the time before there is a kubeconfig.
	APIServer APIServer `json:"apiServer"`

	// Bootstrap configures what is done once, when the machine is new.
	// +optional
	Bootstrap *BootstrapConfiguration `json:"bootstrap,omitempty"`

	// Controllers configures the controllers one by one.
	Controllers ControllerConfiguration `json:"controllers"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
	// HealthProbes is the HTTP server for health probes. The port defaults to 2751.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 2752.
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

// APIServer says where the API server is.
type APIServer struct {
	// Server is the URL of the API server.
	Server string `json:"server"`

	// CAFile is the path of the file with the CAs to trust.
	CAFile string `json:"caFile"`
}

// BootstrapConfiguration configures what is done once, when the machine is new.
type BootstrapConfiguration struct {
	// KubeletDataVolumeSize is the size in bytes of the data volume that the kubelet and the container runtime use. The
	// disk is found by it and formatted. Unset means that there is no such volume.
	// +optional
	KubeletDataVolumeSize *int64 `json:"kubeletDataVolumeSize,omitempty"`
}

// ControllerConfiguration configures the controllers one by one.
type ControllerConfiguration struct {
	// OperatingSystemConfig configures the controller that applies the operating system config.
	OperatingSystemConfig OperatingSystemConfigControllerConfig `json:"operatingSystemConfig"`

	// Token configures the controller that writes tokens to files.
	Token TokenControllerConfig `json:"token"`

	// SystemdUnitCheck configures the controller that checks the systemd units.
	SystemdUnitCheck SystemdUnitCheckControllerConfig `json:"systemdUnitCheck"`
}

// OperatingSystemConfigControllerConfig configures the controller that applies the operating system config.
type OperatingSystemConfigControllerConfig struct {
	// SyncPeriod is how often the operating system config is applied if nothing changed. Defaults to 10m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// SecretName is the name of the Secret in kube-system that holds the operating system config.
	SecretName string `json:"secretName"`

	// KubernetesVersion is the version of Kubernetes that the node shall have, such as 1.33.0.
	KubernetesVersion string `json:"kubernetesVersion"`
}

// TokenControllerConfig configures the controller that writes tokens to files.
type TokenControllerConfig struct {
	// SyncConfigs lists which Secrets are written to which files.
	// +optional
	SyncConfigs []TokenSecretSyncConfig `json:"syncConfigs,omitempty"`

	// SyncPeriod is how often files are written if nothing changed. Defaults to 1h0m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// TokenSecretSyncConfig says which Secret is written to which file.
type TokenSecretSyncConfig struct {
	// SecretName is the name of the Secret in kube-system with the key token.
	SecretName string `json:"secretName"`

	// Path is the absolute path of the file on the machine.
	Path string `json:"path"`
}

// SystemdUnitCheckControllerConfig configures the controller that checks the systemd units and maintains the
// condition SystemdUnitsReady of the Node.
type SystemdUnitCheckControllerConfig struct {
	// SyncPeriod is how often units are checked. Defaults to 1m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// StuckThreshold is how long a unit may be activating or deactivating before it counts as stuck. Defaults to 5m0s.
	// +optional
	StuckThreshold *metav1.Duration `json:"stuckThreshold,omitempty"`
}
