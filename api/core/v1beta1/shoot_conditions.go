package v1beta1

// Conditions of Shoots. They are written by the gardenlet's health checks.
const (
	// ShootAPIServerAvailable says whether the API server of the shoot answers requests.
	ShootAPIServerAvailable ConditionType = "APIServerAvailable"
	// ShootControlPlaneHealthy says whether the components of the control plane are healthy.
	ShootControlPlaneHealthy ConditionType = "ControlPlaneHealthy"
	// ShootObservabilityComponentsHealthy says whether the components for monitoring and logging are healthy.
	ShootObservabilityComponentsHealthy ConditionType = "ObservabilityComponentsHealthy"
	// ShootEveryNodeReady says whether all nodes are ready and there are as many as there should be.
	ShootEveryNodeReady ConditionType = "EveryNodeReady"
	// ShootSystemComponentsHealthy says whether the components that Gardener runs in the shoot are healthy.
	ShootSystemComponentsHealthy ConditionType = "SystemComponentsHealthy"
	// ShootGardenletReady says whether the gardenlet of a self-hosted shoot renews its Lease. Written by the
	// gardener-controller-manager when it does not.
	ShootGardenletReady ConditionType = "GardenletReady"
	// ShootBackupBucketsReady says whether the BackupBuckets of a self-hosted shoot are ready.
	ShootBackupBucketsReady ConditionType = "BackupBucketsReady"
)

// Constraints of Shoots: what prevents future operations.
const (
	// ShootHibernationPossible says whether the shoot can be hibernated.
	ShootHibernationPossible ConditionType = "HibernationPossible"
	// ShootMaintenancePreconditionsSatisfied says whether nothing prevents a maintenance, such as a webhook
	// that could keep nodes from joining.
	ShootMaintenancePreconditionsSatisfied ConditionType = "MaintenancePreconditionsSatisfied"
	// ShootCACertificateValiditiesAcceptable says whether all CAs are valid for at least a year more.
	ShootCACertificateValiditiesAcceptable ConditionType = "CACertificateValiditiesAcceptable"
	// ShootCRDsWithProblematicConversionWebhooks says whether there are resource definitions with conversion webhooks
	// that need a running node, which prevents waking up.
	ShootCRDsWithProblematicConversionWebhooks ConditionType = "CRDsWithProblematicConversionWebhooks"
	// ShootManualInPlaceWorkersUpdated says whether all pools with manual in-place updates are up to date.
	ShootManualInPlaceWorkersUpdated ConditionType = "ManualInPlaceWorkersUpdated"
	// ShootAutomaticCredentialsRotationPossible says whether credentials can be rotated automatically.
	ShootAutomaticCredentialsRotationPossible ConditionType = "AutomaticCredentialsRotationPossible"
	// ShootDNSServiceMigrationReady says whether the DNS service of the shoot can be changed over.
	ShootDNSServiceMigrationReady ConditionType = "DNSServiceMigrationReady"
	// ShootDualStackNodesMigrationReady says whether all nodes have addresses of both IP families, which the switch of the
	// control plane to dual-stack waits for.
	ShootDualStackNodesMigrationReady ConditionType = "DualStackNodesMigrationReady"
	// ShootReadyForMigration says whether the control plane can move to another seed.
	ShootReadyForMigration ConditionType = "ReadyForMigration"
	// ShootPreservedFailedMachinesAbsent says whether there are no failed machines that are kept for analysis.
	ShootPreservedFailedMachinesAbsent ConditionType = "PreservedFailedMachinesAbsent"
	// ShootUsesUnifiedHTTPProxyPort says whether the shoot reaches its control plane through the unified proxy port.
	ShootUsesUnifiedHTTPProxyPort ConditionType = "UsesUnifiedHTTPProxyPort"
	// ShootHasIgnoredManagedResources says whether there are ManagedResources that are not applied because of an annotation.
	ShootHasIgnoredManagedResources ConditionType = "HasIgnoredManagedResources"
)

// ReasonDestinationSeedInDeletion is the reason of the constraint ReadyForMigration if the other seed is being deleted. Written by the
// gardener-controller-manager, read by the gardenlet of the former seed.
const ReasonDestinationSeedInDeletion = "DestinationSeedInDeletion"
