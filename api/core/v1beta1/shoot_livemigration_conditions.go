package v1beta1

// Conditions of a move to another seed with a running control plane, in the order of the steps. The gardenlets of both
// seeds write them.
const (
	// ShootSourceEtcdPreparedForPeerJoin says whether the source's etcd is ready for members of the destination.
	ShootSourceEtcdPreparedForPeerJoin ConditionType = "SourceEtcdPreparedForPeerJoin"
	// ShootDestinationEtcdPeersJoined says whether the destination's members have joined etcd.
	ShootDestinationEtcdPeersJoined ConditionType = "DestinationEtcdPeersJoined"
	// ShootMigrateExtensionsNeededBeforeKubeAPIServer says whether the extensions that the API server needs have moved.
	ShootMigrateExtensionsNeededBeforeKubeAPIServer ConditionType = "MigrateExtensionsNeededBeforeKubeAPIServer"
	// ShootDestinationKubeAPIServerReady says whether the destination's API server answers requests.
	ShootDestinationKubeAPIServerReady ConditionType = "DestinationKubeAPIServerReady"
	// ShootMigrateDNSRecords says whether the DNS records point to the destination.
	ShootMigrateDNSRecords ConditionType = "MigrateDNSRecords"
	// ShootEtcdMigrationComplete says whether the source's members have left etcd.
	ShootEtcdMigrationComplete ConditionType = "EtcdMigrationComplete"
	// ShootSourceSeedCleanup says whether the source has nothing left of the shoot.
	ShootSourceSeedCleanup ConditionType = "SourceSeedCleanup"
	// ShootMigrationCompleted says whether the move is done.
	ShootMigrationCompleted ConditionType = "MigrationCompleted"
)
