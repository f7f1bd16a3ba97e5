package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdDruidConfiguration configures etcd-druid.
type EtcdDruidConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection says how the cluster is reached. qps defaults to 50, burst to 100.
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
	Server ServerConfiguration `json:"server,omitempty"`

	// Debugging switches profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`

	// Images are the images of what etcd-druid deploys.
	Images Images `json:"images"`

	// Controllers configures the controllers one by one.
	// +optional
	Controllers ControllersConfiguration `json:"controllers,omitempty"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
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

// Images are the images of what etcd-druid deploys, where an Etcd names no other.
type Images struct {
	// Etcd is the image with /usr/local/bin/etcd.
	Etcd string `json:"etcd"`

	// BackupRestore is the image whose entry point takes etcd-backup-restore as its first argument.
	BackupRestore string `json:"backupRestore"`
}

// ControllersConfiguration configures the controllers one by one.
type ControllersConfiguration struct {
	// Etcd configures the controller for Etcds.
	// +optional
	Etcd EtcdControllerConfiguration `json:"etcd,omitempty"`

	// EtcdCopyBackupsTask configures the controller for EtcdCopyBackupsTasks.
	// +optional
	EtcdCopyBackupsTask EtcdCopyBackupsTaskControllerConfiguration `json:"etcdCopyBackupsTask,omitempty"`
}

// EtcdControllerConfiguration configures the controller for Etcds.
type EtcdControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 50.
	// +optional
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`

	// EnableEtcdSpecAutoReconcile acts on a changed spec at once. Otherwise it waits for the annotation
	// druid.gardener.cloud/operation=reconcile, which is how owners choose the time of a disturbance.
	// +optional
	EnableEtcdSpecAutoReconcile bool `json:"enableEtcdSpecAutoReconcile,omitempty"`

	// MemberUnknownAfter is after what time without a renewed Lease a member is Unknown. Defaults to 1m.
	// +optional
	MemberUnknownAfter *metav1.Duration `json:"memberUnknownAfter,omitempty"`

	// MemberNotReadyAfter is after what time without a renewed Lease a member is NotReady. Defaults to 5m.
	// +optional
	MemberNotReadyAfter *metav1.Duration `json:"memberNotReadyAfter,omitempty"`
}

// EtcdCopyBackupsTaskControllerConfiguration configures the controller for EtcdCopyBackupsTasks.
type EtcdCopyBackupsTaskControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 3.
	// +optional
	ConcurrentSyncs int `json:"concurrentSyncs,omitempty"`
}

const (
	// DefaultLockObjectNamespace is the namespace of the Lease for the leader election.
	DefaultLockObjectNamespace = "garden"
	// DefaultLockObjectName is the name of the Lease for the leader election.
	DefaultLockObjectName = "druid-leader-election"
)
