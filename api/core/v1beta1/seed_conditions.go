package v1beta1

// Conditions of Seeds.
const (
	// SeedGardenletReady says whether the gardenlet of the seed renews its Lease. The gardenlet sets it to True, the
	// gardener-controller-manager to Unknown when the Lease runs out.
	SeedGardenletReady ConditionType = "GardenletReady"
	// SeedBackupBucketsReady says whether the BackupBuckets of the seed are ready. Written by the
	// gardener-controller-manager.
	SeedBackupBucketsReady ConditionType = "BackupBucketsReady"
	// SeedExtensionsReady says whether the extensions that the seed needs are installed and healthy. Written by the
	// gardener-controller-manager.
	SeedExtensionsReady ConditionType = "ExtensionsReady"
	// SeedSystemComponentsHealthy says whether the components that Gardener runs in the seed are healthy. Written by the
	// gardenlet.
	SeedSystemComponentsHealthy ConditionType = "SeedSystemComponentsHealthy"
	// SeedEmergencyStopShootReconciliations says that the gardenlet does not reconcile shoots at the moment, because of an
	// annotation of the Seed. Written by the gardenlet.
	SeedEmergencyStopShootReconciliations ConditionType = "EmergencyStopShootReconciliations"
)
