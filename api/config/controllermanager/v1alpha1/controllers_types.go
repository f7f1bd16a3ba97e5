package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControllerManagerControllerConfiguration configures the controllers one by one. What is unset gets its defaults.
type ControllerManagerControllerConfiguration struct {
	// Bastion configures the controller that deletes Bastions that are not needed any more.
	// +optional
	Bastion *BastionControllerConfiguration `json:"bastion,omitempty"`

	// CertificateSigningRequest configures the controller that approves the certificates of gardenlets.
	// +optional
	CertificateSigningRequest *CertificateSigningRequestControllerConfiguration `json:"certificateSigningRequest,omitempty"`

	// CloudProfile configures the controller that keeps CloudProfiles while they are in use.
	// +optional
	CloudProfile *CloudProfileControllerConfiguration `json:"cloudProfile,omitempty"`

	// NamespacedCloudProfile configures the controller that merges NamespacedCloudProfiles with their parents.
	// +optional
	NamespacedCloudProfile *NamespacedCloudProfileControllerConfiguration `json:"namespacedCloudProfile,omitempty"`

	// ControllerDeployment configures the controller that keeps ControllerDeployments while they are in use.
	// +optional
	ControllerDeployment *ControllerDeploymentControllerConfiguration `json:"controllerDeployment,omitempty"`

	// ControllerDeploymentReference configures the controller that keeps Secrets while ControllerDeployments refer to
	// them.
	// +optional
	ControllerDeploymentReference *ControllerDeploymentReferenceControllerConfiguration `json:"controllerDeploymentReference,omitempty"`

	// ControllerRegistration configures the controllers that decide which extensions a seed needs.
	// +optional
	ControllerRegistration *ControllerRegistrationControllerConfiguration `json:"controllerRegistration,omitempty"`

	// Event configures the controller that deletes old events. Unset means that there is none.
	// +optional
	Event *EventControllerConfiguration `json:"event,omitempty"`

	// ExposureClass configures the controller that keeps ExposureClasses while they are in use.
	// +optional
	ExposureClass *ExposureClassControllerConfiguration `json:"exposureClass,omitempty"`

	// Plant configures the controller that checks the clusters of Plants.
	// +optional
	Plant *PlantControllerConfiguration `json:"plant,omitempty"`

	// Project configures the controllers for Projects.
	// +optional
	Project *ProjectControllerConfiguration `json:"project,omitempty"`

	// Quota configures the controller that keeps Quotas while they are in use.
	// +optional
	Quota *QuotaControllerConfiguration `json:"quota,omitempty"`

	// SecretBinding configures the controller that keeps SecretBindings, and what they refer to, while they are in use.
	// +optional
	SecretBinding *SecretBindingControllerConfiguration `json:"secretBinding,omitempty"`

	// CredentialsBinding configures the controller that keeps CredentialsBindings, and what they refer to, while they are
	// in use.
	// +optional
	CredentialsBinding *CredentialsBindingControllerConfiguration `json:"credentialsBinding,omitempty"`

	// Seed configures the controllers for Seeds.
	// +optional
	Seed *SeedControllerConfiguration `json:"seed,omitempty"`

	// SeedExtensionsCheck configures the controller that maintains the condition ExtensionsReady of Seeds.
	// +optional
	SeedExtensionsCheck *SeedExtensionsCheckControllerConfiguration `json:"seedExtensionsCheck,omitempty"`

	// SeedBackupBucketsCheck configures the controller that maintains the condition BackupBucketsReady of Seeds.
	// +optional
	SeedBackupBucketsCheck *SeedBackupBucketsCheckControllerConfiguration `json:"seedBackupBucketsCheck,omitempty"`

	// SeedReference configures the controller that keeps Secrets and ConfigMaps while Seeds refer to them.
	// +optional
	SeedReference *SeedReferenceControllerConfiguration `json:"seedReference,omitempty"`

	// ShootMaintenance configures the controller that maintains Shoots in their time windows.
	ShootMaintenance ShootMaintenanceControllerConfiguration `json:"shootMaintenance"`

	// ShootQuota configures the controller that deletes Shoots whose lifetime, as their quota sets it, is over.
	// +optional
	ShootQuota *ShootQuotaControllerConfiguration `json:"shootQuota,omitempty"`

	// ShootHibernation configures the controller that hibernates and wakes up Shoots on schedule.
	ShootHibernation ShootHibernationControllerConfiguration `json:"shootHibernation"`

	// ShootReference configures the controller that keeps Secrets and ConfigMaps while Shoots refer to them.
	// +optional
	ShootReference *ShootReferenceControllerConfiguration `json:"shootReference,omitempty"`

	// ShootRetry configures the controller that retries failed Shoots.
	// +optional
	ShootRetry *ShootRetryControllerConfiguration `json:"shootRetry,omitempty"`

	// ShootConditions configures the controller that copies conditions of Seeds to the Shoots they are created from.
	// +optional
	ShootConditions *ShootConditionsControllerConfiguration `json:"shootConditions,omitempty"`

	// ShootStatusLabel configures the controller that puts the overall status of Shoots in a label.
	// +optional
	ShootStatusLabel *ShootStatusLabelControllerConfiguration `json:"shootStatusLabel,omitempty"`

	// ShootMigration configures the controller that prepares Shoots for the move to another seed.
	// +optional
	ShootMigration *ShootMigrationControllerConfiguration `json:"shootMigration,omitempty"`

	// ManagedSeedSet configures the controller for ManagedSeedSets. Unset means the defaults too.
	// +optional
	ManagedSeedSet *ManagedSeedSetControllerConfiguration `json:"managedSeedSet,omitempty"`

	// ShootState configures the controller that keeps ShootStates while they are needed.
	// +optional
	ShootState *ShootStateControllerConfiguration `json:"shootState,omitempty"`

	// CacheSyncTimeout is how long a controller waits at its start until its caches are filled. Defaults to 2m0s.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
}

// BastionControllerConfiguration configures the controller that deletes Bastions that are not needed any more.
type BastionControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// MaxLifetime is how old a Bastion may become, however often its heartbeat is renewed. Defaults to 24h0m0s.
	// +optional
	MaxLifetime *metav1.Duration `json:"maxLifetime,omitempty"`
}

// CertificateSigningRequestControllerConfiguration configures the controller that approves the certificates of
// gardenlets.
type CertificateSigningRequestControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// CloudProfileControllerConfiguration configures the controller that keeps CloudProfiles while they are in use.
type CloudProfileControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// NamespacedCloudProfileControllerConfiguration configures the controller that merges NamespacedCloudProfiles with
// their parents.
type NamespacedCloudProfileControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ControllerDeploymentControllerConfiguration configures the controller that keeps ControllerDeployments while they
// are in use.
type ControllerDeploymentControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ControllerDeploymentReferenceControllerConfiguration configures the controller that keeps Secrets while
// ControllerDeployments refer to them.
type ControllerDeploymentReferenceControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ControllerRegistrationControllerConfiguration configures the controllers that decide which extensions a seed needs.
type ControllerRegistrationControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// EventControllerConfiguration configures the controller that deletes old events.
type EventControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// TTLNonShootEvents is how long events are kept that are not about Shoots. Defaults to 1h0m0s.
	// +optional
	TTLNonShootEvents *metav1.Duration `json:"ttlNonShootEvents,omitempty"`
}

// ExposureClassControllerConfiguration configures the controller that keeps ExposureClasses while they are in use.
type ExposureClassControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// PlantControllerConfiguration configures the controller that checks the clusters of Plants.
type PlantControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each cluster is checked. Defaults to 30s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// AllowCIDRs are private networks in which the API servers of clusters may be. Without them, only public addresses are connected to: the members of
	// projects choose the addresses. Those of this process itself, link-local ones and metadata services are never connected to.
	// +optional
	AllowCIDRs []string `json:"allowCIDRs,omitempty"`
}

// ProjectControllerConfiguration configures the controllers for Projects.
type ProjectControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// MinimumLifetimeDays is how many days old a Project must be before it can count as stale. Defaults to 30.
	// +optional
	MinimumLifetimeDays *int `json:"minimumLifetimeDays,omitempty"`

	// Quotas are resource quotas for the namespaces of Projects. The first one that matches a Project counts.
	// +optional
	Quotas []QuotaConfiguration `json:"quotas,omitempty"`

	// StaleGracePeriodDays is how many days a Project must have been unused before it counts as stale. Defaults to 14.
	// +optional
	StaleGracePeriodDays *int `json:"staleGracePeriodDays,omitempty"`

	// StaleExpirationTimeDays is how many days a Project stays stale before it is deleted. Defaults to 90.
	// +optional
	StaleExpirationTimeDays *int `json:"staleExpirationTimeDays,omitempty"`

	// StaleSyncPeriod is how often Projects are checked for being stale. Defaults to 12h0m0s.
	// +optional
	StaleSyncPeriod *metav1.Duration `json:"staleSyncPeriod,omitempty"`
}

// QuotaConfiguration is a resource quota for the namespaces of Projects.
type QuotaConfiguration struct {
	// Config is the ResourceQuota that is created in the namespace.
	Config corev1.ResourceQuota `json:"config"`

	// ProjectSelector selects the Projects. Unset selects none, the empty selector all of them.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// QuotaControllerConfiguration configures the controller that keeps Quotas while they are in use.
type QuotaControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// SecretBindingControllerConfiguration configures the controller that keeps SecretBindings, and what they refer to,
// while they are in use.
type SecretBindingControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// CredentialsBindingControllerConfiguration configures the controller that keeps CredentialsBindings, and what they
// refer to, while they are in use.
type CredentialsBindingControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// SeedControllerConfiguration configures the controllers for Seeds.
type SeedControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// MonitorPeriod is how long a gardenlet may go without renewing its Lease before its Seed's condition GardenletReady
	// turns Unknown. Defaults to 40s.
	// +optional
	MonitorPeriod *metav1.Duration `json:"monitorPeriod,omitempty"`

	// ShootMonitorPeriod is how long it may go without before the conditions of its Shoots turn Unknown too. Defaults to
	// five times monitorPeriod.
	// +optional
	ShootMonitorPeriod *metav1.Duration `json:"shootMonitorPeriod,omitempty"`

	// SyncPeriod is how often a Seed's Lease is checked. Defaults to 10s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// SeedExtensionsCheckControllerConfiguration configures the controller that maintains the condition ExtensionsReady of
// Seeds.
type SeedExtensionsCheckControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each Seed is checked. Defaults to 30s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// ConditionThresholds say how long conditions stay Progressing before they turn False.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// SeedBackupBucketsCheckControllerConfiguration configures the controller that maintains the condition
// BackupBucketsReady of Seeds.
type SeedBackupBucketsCheckControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each Seed is checked. Defaults to 30s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// ConditionThresholds say how long conditions stay Progressing before they turn False.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// SeedReferenceControllerConfiguration configures the controller that keeps Secrets and ConfigMaps while Seeds refer
// to them.
type SeedReferenceControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ShootMaintenanceControllerConfiguration configures the controller that maintains Shoots in their time windows.
type ShootMaintenanceControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// EnableShootControlPlaneRestarter says whether some control plane pods are restarted in every time window. Defaults
	// to true.
	// +optional
	EnableShootControlPlaneRestarter *bool `json:"enableShootControlPlaneRestarter,omitempty"`

	// EnableShootCoreAddonRestarter says whether some pods in the Shoot are restarted in every time window. Defaults to
	// false.
	// +optional
	EnableShootCoreAddonRestarter *bool `json:"enableShootCoreAddonRestarter,omitempty"`
}

// ShootQuotaControllerConfiguration configures the controller that deletes Shoots whose lifetime, as their quota sets
// it, is over.
type ShootQuotaControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each Shoot is checked. Defaults to 1h0m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ShootHibernationControllerConfiguration configures the controller that hibernates and wakes up Shoots on schedule.
type ShootHibernationControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// TriggerDeadlineDuration is how late an appointment of a schedule may be kept, if it was missed because the
	// controller did not run. Defaults to 2h0m0s.
	// +optional
	TriggerDeadlineDuration *metav1.Duration `json:"triggerDeadlineDuration,omitempty"`
}

// ShootReferenceControllerConfiguration configures the controller that keeps Secrets and ConfigMaps while Shoots refer
// to them.
type ShootReferenceControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ShootRetryControllerConfiguration configures the controller that retries failed Shoots.
type ShootRetryControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// RetryPeriod is how long after the failure a Shoot is retried. Defaults to 10m0s.
	// +optional
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`

	// RetryJitterPeriod is the most that is added to retryPeriod by chance, so that many Shoots are not retried at once.
	// Defaults to 5m0s.
	// +optional
	RetryJitterPeriod *metav1.Duration `json:"retryJitterPeriod,omitempty"`
}

// ShootConditionsControllerConfiguration configures the controller that copies conditions of Seeds to the Shoots they
// are created from.
type ShootConditionsControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ShootStatusLabelControllerConfiguration configures the controller that puts the overall status of Shoots in a label.
type ShootStatusLabelControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ShootMigrationControllerConfiguration configures the controller that prepares Shoots for the move to another seed.
type ShootMigrationControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ManagedSeedSetControllerConfiguration configures the controller for ManagedSeedSets.
type ManagedSeedSetControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// MaxShootRetries is how often a failed Shoot of a set is retried. Defaults to 3.
	// +optional
	MaxShootRetries *int `json:"maxShootRetries,omitempty"`

	// SyncPeriod is how often each set is checked. Defaults to 30m if managedSeedSet is unset.
	SyncPeriod metav1.Duration `json:"syncPeriod"`
}

// ShootStateControllerConfiguration configures the controller that keeps ShootStates while they are needed.
type ShootStateControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}
