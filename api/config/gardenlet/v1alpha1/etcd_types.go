package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ETCDConfig configures etcd-druid.
type ETCDConfig struct {
	// ETCDController configures its controller for Etcds.
	// +optional
	ETCDController *ETCDController `json:"etcdController,omitempty"`
	// CustodianController configures its controller for the status of Etcds.
	// +optional
	CustodianController *CustodianController `json:"custodianController,omitempty"`
	// BackupCompactionController configures its controller that compacts backups.
	// +optional
	BackupCompactionController *BackupCompactionController `json:"backupCompactionController,omitempty"`
	// BackupLeaderElection configures which backup sidecar is the active one.
	// +optional
	BackupLeaderElection *ETCDBackupLeaderElection `json:"backupLeaderElection,omitempty"`
	// FeatureGates turn features of etcd-druid on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// DeltaSnapshotRetentionPeriod is how long delta snapshots are kept.
	// +optional
	DeltaSnapshotRetentionPeriod *metav1.Duration `json:"deltaSnapshotRetentionPeriod,omitempty"`
}

// ETCDController configures etcd-druid's controller for Etcds.
type ETCDController struct {
	// Workers is how many Etcds are worked on at once. 50 is the default.
	// +optional
	Workers *int64 `json:"workers,omitempty"`
}

// CustodianController configures etcd-druid's controller for the status of Etcds.
type CustodianController struct {
	// Workers is how many Etcds are worked on at once. 10 is the default.
	// +optional
	Workers *int64 `json:"workers,omitempty"`
}

// BackupCompactionController configures etcd-druid's controller that compacts backups.
type BackupCompactionController struct {
	// Workers is how many Etcds are worked on at once. 3 is the default.
	// +optional
	Workers *int64 `json:"workers,omitempty"`
	// EnableBackupCompaction turns compaction on. False is the default.
	// +optional
	EnableBackupCompaction *bool `json:"enableBackupCompaction,omitempty"`
	// EventsThreshold is after how many events backups are compacted. 1000000 is the default.
	// +optional
	EventsThreshold *int64 `json:"eventsThreshold,omitempty"`
	// ActiveDeadlineDuration is how long one compaction may take.
	// +optional
	ActiveDeadlineDuration *metav1.Duration `json:"activeDeadlineDuration,omitempty"`
	// MetricsScrapeWaitDuration is how long a compaction's pod stays, so that its metrics are scraped. "1m" is the
	// default.
	// +optional
	MetricsScrapeWaitDuration *metav1.Duration `json:"metricsScrapeWaitDuration,omitempty"`
}

// ETCDBackupLeaderElection configures which backup sidecar is the active one.
type ETCDBackupLeaderElection struct {
	// ReelectionPeriod is how often leadership is checked.
	// +optional
	ReelectionPeriod *metav1.Duration `json:"reelectionPeriod,omitempty"`
	// ETCDConnectionTimeout is how long connecting to etcd may take for it.
	// +optional
	ETCDConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`
}
