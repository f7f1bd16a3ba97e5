package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProviderLocalConfiguration configures provider-local.
type ProviderLocalConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection says how the seed cluster is reached. qps defaults to 100, burst to 130.
	// +optional
	ClientConnection *componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"clientConnection,omitempty"`

	// LeaderElection configures how replicas find out which of them acts.
	// +optional
	LeaderElection *componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection,omitempty"`

	// LogLevel is info, debug or error. Defaults to info.
	// +optional
	LogLevel string `json:"logLevel,omitempty"`

	// LogFormat is json or text. Defaults to json.
	// +optional
	LogFormat string `json:"logFormat,omitempty"`

	// Server says where the process listens.
	// +optional
	Server ServerConfiguration `json:"server"`

	// Debugging switches profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`

	// Namespace is where the process runs. Its heartbeat is there, and the Secrets that it generates. Required.
	Namespace string `json:"namespace"`

	// ExtensionClasses are the values of spec.class of the extension resources that the process reconciles: shoot, seed or garden. One without
	// a class is of class shoot. Defaults to shoot and seed. The process that a garden has in its runtime cluster has garden. The flag
	// --extension-classes takes precedence.
	// +optional
	// +listType=set
	ExtensionClasses []extensionsv1alpha1.ExtensionClass `json:"extensionClasses,omitempty"`

	// DNS configures the server that answers for the DNSRecords.
	DNS DNSConfiguration `json:"dns"`

	// Backup says where buckets are.
	// +optional
	Backup BackupConfiguration `json:"backup"`

	// Machines configures the machines of shoots.
	// +optional
	Machines MachinesConfiguration `json:"machines"`

	// Images are the references of images that are deployed into control plane namespaces.
	// +optional
	Images ImagesConfiguration `json:"images"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
	// HealthProbes is the HTTP server for health probes. The port defaults to 8081.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 8080.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`

	// Webhooks is the HTTPS server for webhooks, which a process with the class shoot has. The port defaults to 8443.
	// +optional
	Webhooks *WebhookServer `json:"webhooks,omitempty"`
}

// WebhookServer says where the HTTPS server of the webhooks listens, and how the kube-apiserver of the seed connects to it.
type WebhookServer struct {
	Server `json:",inline"`

	// Service is the name of the Service in front of it, with the port 443, in the namespace of the process. Defaults to provider-local-webhook.
	// +optional
	Service string `json:"service,omitempty"`

	// URL is the address as host:port instead, for a process that runs outside of the seed.
	// +optional
	URL string `json:"url,omitempty"`
}

// Server says where an HTTP server listens.
type Server struct {
	// BindAddress is the IP address to listen at. Empty means all of them.
	BindAddress string `json:"bindAddress"`

	// Port is the port to listen at.
	Port int `json:"port"`
}

// DNSConfiguration configures the server that answers for the DNSRecords.
type DNSConfiguration struct {
	// BindAddress is the IP address to listen at, for UDP and TCP. Empty means all of them.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// Port is the port to listen at. Defaults to 8053.
	// +optional
	Port int `json:"port,omitempty"`

	// Zones are the domains that the server answers for, such as local.gardener.cloud. The names of DNSRecords have to be in one of
	// them. At least one.
	Zones []string `json:"zones"`
}

// BackupConfiguration says where buckets are. Each is a directory on the node.
type BackupConfiguration struct {
	// Directory is where the process sees them. Defaults to /backups.
	// +optional
	Directory string `json:"directory,omitempty"`

	// HostPath is where they are on the node. Defaults to /etc/gardener/local-backupbuckets.
	// +optional
	HostPath string `json:"hostPath,omitempty"`
}

// MachinesConfiguration configures the machines of shoots.
type MachinesConfiguration struct {
	// Registries are the registries from which machines pull images first.
	// +optional
	// +listType=map
	// +listMapKey=host
	Registries []localv1alpha1.MachineRegistry `json:"registries,omitempty"`

	// IPv6Network has the IPv6 addresses of pods of the seed, in CIDR notation. Machines have them too, so that shoots can be dual-stack. Empty if pods
	// have none.
	// +optional
	IPv6Network string `json:"ipv6Network,omitempty"`
}

// ImagesConfiguration are references of images.
type ImagesConfiguration struct {
	// Gardener is the image with all processes of Gardener, the machine-controller-manager among them.
	// +optional
	Gardener string `json:"gardener,omitempty"`

	// Flannel is the image of flannel, with the CNI plugin and the program that installs it.
	// +optional
	Flannel string `json:"flannel,omitempty"`

	// Crun is the image with crun, and with the program that installs it on nodes.
	// +optional
	Crun string `json:"crun,omitempty"`

	// LocalStorage is the image that provisions volumes of shoots as directories of their nodes. Without it, shoots have no StorageClass.
	// +optional
	LocalStorage string `json:"localStorage,omitempty"`
}

const (
	// DefaultLockObjectName is the name of the Lease for the leader election, which is in the namespace of the process.
	DefaultLockObjectName = "provider-local-leader-election"
	// DefaultHostPath is where buckets are on the node.
	DefaultHostPath = "/etc/gardener/local-backupbuckets"
)
