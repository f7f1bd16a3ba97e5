package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// GardenletControllerConfiguration configures the controllers of a gardenlet.
type GardenletControllerConfiguration struct {
	// CacheSyncTimeout is how long a controller waits for its caches at the start. "2m" is the default.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// BackupBucket configures the controller for BackupBuckets.
	// +optional
	BackupBucket *BackupBucketControllerConfiguration `json:"backupBucket,omitempty"`
	// BackupEntry configures the controller for BackupEntries.
	// +optional
	BackupEntry *BackupEntryControllerConfiguration `json:"backupEntry,omitempty"`
	// Bastion configures the controller for Bastions.
	// +optional
	Bastion *BastionControllerConfiguration `json:"bastion,omitempty"`
	// ControllerInstallation configures the controller for ControllerInstallations.
	// +optional
	ControllerInstallation *ControllerInstallationControllerConfiguration `json:"controllerInstallation,omitempty"`
	// ControllerInstallationCare configures the health checks of ControllerInstallations.
	// +optional
	ControllerInstallationCare *ControllerInstallationCareControllerConfiguration `json:"controllerInstallationCare,omitempty"`
	// ControllerInstallationRequired configures the controller that finds out which extensions are needed.
	// +optional
	ControllerInstallationRequired *ControllerInstallationRequiredControllerConfiguration `json:"controllerInstallationRequired,omitempty"`
	// Gardenlet configures the controller for Gardenlets.
	// +optional
	Gardenlet *GardenletObjectControllerConfiguration `json:"gardenlet,omitempty"`
	// Seed configures the controller for the Seed.
	// +optional
	Seed *SeedControllerConfiguration `json:"seed,omitempty"`
	// SeedCare configures the health checks of the Seed.
	// +optional
	SeedCare *SeedCareControllerConfiguration `json:"seedCare,omitempty"`
	// Shoot configures the controller for Shoots.
	// +optional
	Shoot *ShootControllerConfiguration `json:"shoot,omitempty"`
	// ShootCare configures the health checks of Shoots.
	// +optional
	ShootCare *ShootCareControllerConfiguration `json:"shootCare,omitempty"`
	// ShootState configures the controller that saves the state of Shoots.
	// +optional
	ShootState *ShootStateControllerConfiguration `json:"shootState,omitempty"`
	// ShootStatus configures the controller for the status of Shoots.
	// +optional
	ShootStatus *ShootStatusControllerConfiguration `json:"shootStatus,omitempty"`
	// NetworkPolicy configures the controller for NetworkPolicies.
	// +optional
	NetworkPolicy *NetworkPolicyControllerConfiguration `json:"networkPolicy,omitempty"`
	// ManagedSeed configures the controller for ManagedSeeds.
	// +optional
	ManagedSeed *ManagedSeedControllerConfiguration `json:"managedSeed,omitempty"`
	// TokenRequestor configures the controller for service account tokens in the garden.
	// +optional
	TokenRequestor *TokenRequestorServiceAccountControllerConfiguration `json:"tokenRequestor,omitempty"`
	// TokenRequestorWorkloadIdentity configures the controller for tokens of WorkloadIdentities.
	// +optional
	TokenRequestorWorkloadIdentity *TokenRequestorWorkloadIdentityControllerConfiguration `json:"tokenRequestorWorkloadIdentity,omitempty"`
	// VPAEvictionRequirements configures the controller that says when pods of control planes may be evicted for
	// scaling.
	// +optional
	VPAEvictionRequirements *VPAEvictionRequirementsControllerConfiguration `json:"vpaEvictionRequirements,omitempty"`
}

// BackupBucketControllerConfiguration configures the controller for BackupBuckets.
type BackupBucketControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// BackupEntryControllerConfiguration configures the controller for BackupEntries.
type BackupEntryControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// DeletionGracePeriodHours is how long backups are kept after their shoot is gone, in hours. 0 is the default.
	// +optional
	DeletionGracePeriodHours *int `json:"deletionGracePeriodHours,omitempty"`
	// DeletionGracePeriodShootPurposes are the purposes of shoots for which the period counts. All if empty.
	// +optional
	DeletionGracePeriodShootPurposes []corev1beta1.ShootPurpose `json:"deletionGracePeriodShootPurposes,omitempty"`
}

// BastionControllerConfiguration configures the controller for Bastions.
type BastionControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ControllerInstallationControllerConfiguration configures the controller for ControllerInstallations.
type ControllerInstallationControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ControllerInstallationCareControllerConfiguration configures the health checks of ControllerInstallations.
type ControllerInstallationCareControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is how often the health is checked. "30s" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ControllerInstallationRequiredControllerConfiguration configures the controller that finds out which extensions
// are needed.
type ControllerInstallationRequiredControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 1 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// GardenletObjectControllerConfiguration configures the controller for Gardenlets.
type GardenletObjectControllerConfiguration struct {
	// SyncPeriod is how often an unchanged object is reconciled. "1h" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// SeedControllerConfiguration configures the controller for the Seed.
type SeedControllerConfiguration struct {
	// SyncPeriod is how often an unchanged Seed is reconciled. "1m" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// LeaseResyncSeconds is how often the gardenlet renews its Lease, in seconds. 2 is the default.
	// +optional
	LeaseResyncSeconds *int32 `json:"leaseResyncSeconds,omitempty"`
	// LeaseResyncMissThreshold is how many renewals may fail before the gardenlet counts as unhealthy. 10 is the
	// default.
	// +optional
	LeaseResyncMissThreshold *int32 `json:"leaseResyncMissThreshold,omitempty"`
}

// SeedCareControllerConfiguration configures the health checks of the Seed.
type SeedCareControllerConfiguration struct {
	// SyncPeriod is how often the health is checked. "30s" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ConditionThresholds are how long a condition may be Progressing before it is False.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ConditionThreshold is how long a condition may be Progressing before it is False.
type ConditionThreshold struct {
	// Type is the type of the condition.
	Type string `json:"type"`
	// Duration is the time.
	Duration metav1.Duration `json:"duration"`
}

// ShootControllerConfiguration configures the controller for Shoots.
type ShootControllerConfiguration struct {
	// ConcurrentSyncs is how many shoots are worked on at once. 20 is the default. Those of one project are at most three quarters of them, unless it has the
	// namespace garden, or there is only one worker.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// ProgressReportPeriod is how often progress is written to the status. Whenever it changes if unset.
	// +optional
	ProgressReportPeriod *metav1.Duration `json:"progressReportPeriod,omitempty"`
	// ReconcileInMaintenanceOnly reconciles unchanged shoots only in their maintenance time window. False is the
	// default.
	// +optional
	ReconcileInMaintenanceOnly *bool `json:"reconcileInMaintenanceOnly,omitempty"`
	// RespectSyncPeriodOverwrite lets users set the period with an annotation of the shoot. False is the default.
	// +optional
	RespectSyncPeriodOverwrite *bool `json:"respectSyncPeriodOverwrite,omitempty"`
	// RetryDuration is how long an operation is tried before it counts as failed. "12h" is the default.
	// +optional
	RetryDuration *metav1.Duration `json:"retryDuration,omitempty"`
	// SyncPeriod is how often an unchanged shoot is reconciled. "1h" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// DNSEntryTTLSeconds is the time to live of DNS records, in seconds. 120 is the default.
	// +optional
	DNSEntryTTLSeconds *int64 `json:"dnsEntryTTLSeconds,omitempty"`
}

// ShootCareControllerConfiguration configures the health checks of Shoots.
type ShootCareControllerConfiguration struct {
	// ConcurrentSyncs is how many shoots are checked at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is how often the health is checked. "1m" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// StaleExtensionHealthChecks says how old a health report of an extension may be.
	// +optional
	StaleExtensionHealthChecks *StaleExtensionHealthChecks `json:"staleExtensionHealthChecks,omitempty"`
	// ManagedResourceProgressingThreshold is how long a ManagedResource may be progressing before it counts as stuck.
	// +optional
	ManagedResourceProgressingThreshold *metav1.Duration `json:"managedResourceProgressingThreshold,omitempty"`
	// ConditionThresholds are how long a condition may be Progressing before it is False.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
	// WebhookRemediatorEnabled repairs webhooks in shoots that could harm the cluster.
	// +optional
	WebhookRemediatorEnabled *bool `json:"webhookRemediatorEnabled,omitempty"`
}

// StaleExtensionHealthChecks says how old a health report of an extension may be.
type StaleExtensionHealthChecks struct {
	// Enabled turns the check on. True is the default.
	Enabled bool `json:"enabled"`
	// Threshold is the greatest age. "5m" is the default.
	// +optional
	Threshold *metav1.Duration `json:"threshold,omitempty"`
}

// ShootStateControllerConfiguration configures the controller that saves the state of Shoots.
type ShootStateControllerConfiguration struct {
	// ConcurrentSyncs is how many shoots are saved at once. 5 is the default; 0 turns it off.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is how often the state is saved. "6h" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ShootStatusControllerConfiguration configures the controller for the status of Shoots.
type ShootStatusControllerConfiguration struct {
	// ConcurrentSyncs is how many shoots are worked on at once.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// NetworkPolicyControllerConfiguration configures the controller for NetworkPolicies.
type NetworkPolicyControllerConfiguration struct {
	// ConcurrentSyncs is how many namespaces are worked on at once. 5 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// AdditionalNamespaceSelectors select namespaces that are handled besides those that Gardener created.
	// +optional
	AdditionalNamespaceSelectors []metav1.LabelSelector `json:"additionalNamespaceSelectors,omitempty"`
}

// ManagedSeedControllerConfiguration configures the controller for ManagedSeeds.
type ManagedSeedControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 20 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is how often an unchanged object is reconciled. "1h" is the default.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// WaitSyncPeriod is how often an object is checked that waits for its shoot. "15s" is the default.
	// +optional
	WaitSyncPeriod *metav1.Duration `json:"waitSyncPeriod,omitempty"`
	// SyncJitterPeriod is the time over which reconciliations are spread after a start. "5m" is the default.
	// +optional
	SyncJitterPeriod *metav1.Duration `json:"syncJitterPeriod,omitempty"`
	// JitterUpdates spreads reconciliations after changes too. False is the default.
	// +optional
	JitterUpdates *bool `json:"jitterUpdates,omitempty"`
}

// TokenRequestorServiceAccountControllerConfiguration configures the controller for service account tokens in the
// garden.
type TokenRequestorServiceAccountControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 5 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// TokenRequestorWorkloadIdentityControllerConfiguration configures the controller for tokens of
// WorkloadIdentities.
type TokenRequestorWorkloadIdentityControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 5 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// TokenExpirationDuration is the requested lifetime of tokens. "6h" is the default.
	// +optional
	TokenExpirationDuration *metav1.Duration `json:"tokenExpirationDuration,omitempty"`
}

// VPAEvictionRequirementsControllerConfiguration configures the controller that says when pods of control planes
// may be evicted for scaling.
type VPAEvictionRequirementsControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at once. 5 is the default.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}
