package v1alpha1

// Finalizers that extensions put on the resources they are responsible for. Those for Extension resources end in the name of the
// controller, after FinalizerPrefix.
const (
	// FinalizerPrefix starts all of them.
	FinalizerPrefix = "extensions.gardener.cloud/"
	// BackupBucketFinalizer is for BackupBuckets.
	BackupBucketFinalizer = FinalizerPrefix + "backupbucket"
	// BackupEntryFinalizer is for BackupEntries.
	BackupEntryFinalizer = FinalizerPrefix + "backupentry"
	// BastionFinalizer is for Bastions.
	BastionFinalizer = FinalizerPrefix + "bastion"
	// ContainerRuntimeFinalizer is for ContainerRuntimes.
	ContainerRuntimeFinalizer = FinalizerPrefix + "containerruntime"
	// ControlPlaneFinalizer is for ControlPlanes.
	ControlPlaneFinalizer = FinalizerPrefix + "controlplane"
	// DNSRecordFinalizer is for DNSRecords.
	DNSRecordFinalizer = FinalizerPrefix + "dnsrecord"
	// InfrastructureFinalizer is for Infrastructures.
	InfrastructureFinalizer = FinalizerPrefix + "infrastructure"
	// NetworkFinalizer is for Networks.
	NetworkFinalizer = FinalizerPrefix + "network"
	// OperatingSystemConfigFinalizer is for OperatingSystemConfigs. It is the only one in the plural.
	OperatingSystemConfigFinalizer = FinalizerPrefix + "operatingsystemconfigs"
	// SelfHostedShootExposureFinalizer is for SelfHostedShootExposures.
	SelfHostedShootExposureFinalizer = FinalizerPrefix + "selfhostedshootexposure"
	// WorkerFinalizer is for Workers.
	WorkerFinalizer = FinalizerPrefix + "worker"
)
