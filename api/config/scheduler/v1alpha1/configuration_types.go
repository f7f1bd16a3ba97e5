package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SchedulerConfiguration configures the gardener-scheduler.
type SchedulerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection says how the garden cluster is reached. qps defaults to 50, burst to 100.
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
	Server ServerConfiguration `json:"server"`

	// Debugging switches profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`

	// Schedulers configures the schedulers one by one.
	Schedulers SchedulerControllerConfiguration `json:"schedulers"`

	// FeatureGates are feature gates by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// ServerConfiguration says where the process listens.
type ServerConfiguration struct {
	// HealthProbes is the HTTP server for health probes. The port defaults to 10251.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 19251.
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

// SchedulerControllerConfiguration configures the schedulers one by one.
type SchedulerControllerConfiguration struct {
	// BackupBucket configures the scheduler that binds BackupBuckets to seeds.
	// +optional
	BackupBucket *BackupBucketSchedulerConfiguration `json:"backupBucket,omitempty"`

	// Shoot configures the scheduler that binds Shoots to seeds.
	// +optional
	Shoot *ShootSchedulerConfiguration `json:"shoot,omitempty"`
}

// BackupBucketSchedulerConfiguration configures the scheduler that binds BackupBuckets to seeds.
type BackupBucketSchedulerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 2.
	ConcurrentSyncs int `json:"concurrentSyncs"`
}

// ShootSchedulerConfiguration configures the scheduler that binds Shoots to seeds.
type ShootSchedulerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	ConcurrentSyncs int `json:"concurrentSyncs"`

	// Strategy says how seeds are chosen by region: SameRegion or MinimalDistance. Defaults to SameRegion.
	Strategy CandidateDeterminationStrategy `json:"candidateDeterminationStrategy"`
}

const (
	// SchedulerDefaultLockObjectNamespace is the namespace of the Lease for the leader election.
	SchedulerDefaultLockObjectNamespace = "garden"
	// SchedulerDefaultLockObjectName is the name of the Lease for the leader election.
	SchedulerDefaultLockObjectName = "gardener-scheduler-leader-election"
)

// CandidateDeterminationStrategy says how seeds are chosen by region.
type CandidateDeterminationStrategy string

const (
	// SameRegion takes seeds in the region of the Shoot only.
	SameRegion CandidateDeterminationStrategy = "SameRegion"
	// MinimalDistance takes seeds in the region of the Shoot or, if there is none, in the region closest to it.
	MinimalDistance CandidateDeterminationStrategy = "MinimalDistance"
)

// DefaultStrategy is the strategy that is used unless configured otherwise.
const DefaultStrategy = SameRegion

// Strategies are all strategies.
var Strategies = []CandidateDeterminationStrategy{SameRegion, MinimalDistance}
