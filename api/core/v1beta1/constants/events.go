package constants

// Reasons and actions of events.
const (
	// EventResourceReferenced says that an object cannot be deleted because others use it.
	EventResourceReferenced = "ResourceReferenced"
	// EventReconciling says that a reconciliation began.
	EventReconciling = "Reconciling"
	// EventReconciled says that a reconciliation succeeded.
	EventReconciled = "Reconciled"
	// EventReconcileError says that a reconciliation failed.
	EventReconcileError = "ReconcileError"
	// EventDeleting says that a deletion began.
	EventDeleting = "Deleting"
	// EventDeleted says that a deletion succeeded.
	EventDeleted = "Deleted"
	// EventDeleteError says that a deletion failed.
	EventDeleteError = "DeleteError"
	// EventPrepareMigration says that the move to another seed is being prepared.
	EventPrepareMigration = "PrepareMigration"
	// EventMigrationPrepared says that the move to another seed is prepared.
	EventMigrationPrepared = "MigrationPrepared"
	// EventMigrationPreparationFailed says that the move to another seed could not be prepared.
	EventMigrationPreparationFailed = "MigrationPreparationFailed"
	// EventProjectNamespaceReconcileFailed says that the namespace of a Project could not be prepared.
	EventProjectNamespaceReconcileFailed = "NamespaceReconcileFailed"
	// EventProjectNamespaceReconcileSuccessful says that the namespace of a Project is prepared.
	EventProjectNamespaceReconcileSuccessful = "NamespaceReconcileSuccessful"
	// EventProjectNamespaceNotEmpty says that a Project cannot be deleted because it has shoots.
	EventProjectNamespaceNotEmpty = "NamespaceNotEmpty"
	// EventProjectNamespaceDeletionFailed says that the namespace of a Project could not be deleted.
	EventProjectNamespaceDeletionFailed = "NamespaceDeletionFailed"
	// EventProjectNamespaceMarkedForDeletion says that the namespace of a Project is being deleted.
	EventProjectNamespaceMarkedForDeletion = "NamespaceMarkedForDeletion"
	// EventShootMaintenanceFailed says that the maintenance of a Shoot failed.
	EventShootMaintenanceFailed = "MaintenanceFailed"
	// EventShootImageVersionMaintenance says that maintenance changed a machine image.
	EventShootImageVersionMaintenance = "MachineImageVersionMaintenance"
	// EventShootKubernetesVersionMaintenance says that maintenance changed the Kubernetes version.
	EventShootKubernetesVersionMaintenance = "KubernetesVersionMaintenance"
	// EventShootHibernationEnabled says that a schedule hibernated a Shoot.
	EventShootHibernationEnabled = "Hibernated"
	// EventShootHibernationDisabled says that a schedule woke a Shoot up.
	EventShootHibernationDisabled = "WokenUp"
	// EventSchedulingSuccessful says that a seed was found.
	EventSchedulingSuccessful = "SchedulingSuccessful"
	// EventSchedulingFailed says that no seed was found.
	EventSchedulingFailed = "SchedulingFailed"
	// EventActionReconcile is the action of events about reconciliation.
	EventActionReconcile = "Reconcile"
	// EventActionDelete is the action of events about deletion.
	EventActionDelete = "Delete"
	// EventActionMigrate is the action of events about moves to another seed.
	EventActionMigrate = "Migrate"
	// EventActionHealthCheck is the action of events about health checks.
	EventActionHealthCheck = "HealthCheck"
)
