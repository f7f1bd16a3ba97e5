package constants

// Annotations of objects in the garden.
const (
	// GardenerOperation requests an operation on the object. Allowed values depend on the kind; for Shoots several
	// can be separated by OperationsSeparator.
	GardenerOperation = "gardener.cloud/operation"
	// GardenerMaintenanceOperation requests an operation on a Shoot in its next maintenance time window.
	GardenerMaintenanceOperation = "maintenance.gardener.cloud/operation"
	// GardenerTimestamp is when an operation was requested by Gardener, so that writing the same operation twice is
	// a change.
	GardenerTimestamp = "gardener.cloud/timestamp"
	// GardenerDescription describes an object for users.
	GardenerDescription = "gardener.cloud/description"
	// GardenerWarning is a warning that user interfaces show with the object.
	GardenerWarning = "gardener.cloud/warning"
	// GardenCreatedBy is the user who created a Shoot. Written by the API server.
	GardenCreatedBy = "gardener.cloud/created-by"
	// ShootUIDAnnotation is the UID of the Shoot that an object in the seed belongs to.
	ShootUIDAnnotation = "shoot.gardener.cloud/uid"
	// ShootPurposeAnnotation is the purpose of the Shoot that a namespace in the seed belongs to.
	ShootPurposeAnnotation = "shoot.gardener.cloud/purpose"
	// ShootSyncPeriod overrides how often a Shoot is reconciled, if the gardenlet's configuration respects it. A
	// duration.
	ShootSyncPeriod = "shoot.gardener.cloud/sync-period"
	// ShootIgnore keeps the gardenlet from reconciling a Shoot when it is true, if the gardenlet's configuration
	// respects it.
	ShootIgnore = "shoot.gardener.cloud/ignore"
	// ShootDisableIstioTLSTermination keeps TLS connections to the API server of a Shoot from ending at the ingress
	// gateway.
	ShootDisableIstioTLSTermination = "shoot.gardener.cloud/disable-istio-tls-termination"
	// ShootAlphaControlPlaneScaleDownDisabled keeps the control plane of a Shoot from being scaled down.
	ShootAlphaControlPlaneScaleDownDisabled = "alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled"
	// ShootAlphaControlPlaneHAVPN turns the highly available VPN on or off, against what the control plane's failure
	// tolerance says.
	ShootAlphaControlPlaneHAVPN = "alpha.control-plane.shoot.gardener.cloud/high-availability-vpn"
	// ShootAlphaControlPlaneVPNVPAUpdateDisabled keeps the VPN pods from being evicted for vertical scaling.
	ShootAlphaControlPlaneVPNVPAUpdateDisabled = "alpha.control-plane.shoot.gardener.cloud/vpn-vpa-update-disabled"
	// ShootAlphaControlPlaneVPNAutoMTU lets the VPN find out the size of packets by itself.
	ShootAlphaControlPlaneVPNAutoMTU = "alpha.control-plane.shoot.gardener.cloud/vpn-auto-mtu"
	// ShootExpirationTimestamp is when a Shoot is deleted because of a Quota's lifetime. An RFC 3339 timestamp.
	ShootExpirationTimestamp = "shoot.gardener.cloud/expiration-timestamp"
	// FailedShootNeedsRetryOperation makes the next maintenance retry a failed Shoot.
	FailedShootNeedsRetryOperation = "maintenance.shoot.gardener.cloud/needs-retry-operation"
	// ShootTasks lists tasks that the next reconciliation of a Shoot does besides the usual ones, separated by
	// TasksSeparator.
	ShootTasks = "shoot.gardener.cloud/tasks"
	// ConfirmationDeletion must be true for an object to be deleted.
	ConfirmationDeletion = "confirmation.gardener.cloud/deletion"
	// ConfirmationForceDeletion makes the deletion of a Shoot go on without cleaning up what cannot be reached.
	ConfirmationForceDeletion = "confirmation.gardener.cloud/force-deletion"
	// DeletionConfirmedBy is the user who confirmed the deletion. Written by the API server.
	DeletionConfirmedBy = "deletion.gardener.cloud/confirmed-by"
	// VPAEvictionRequirementDownscaleRestriction says when pods may be evicted to scale them down. The values are EvictionRequirementNever and
	// EvictionRequirementInMaintenanceWindowOnly.
	VPAEvictionRequirementDownscaleRestriction = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
	// ShootMaintenanceWindow is the maintenance time window of the Shoot that an object in the seed belongs to.
	ShootMaintenanceWindow = "shoot.gardener.cloud/maintenance-window"
	// SchedulingCloudProfiles lists the CloudProfiles that a ConfigMap with distances between regions is for,
	// separated by commas.
	SchedulingCloudProfiles = "scheduling.gardener.cloud/cloudprofiles"
	// MigrationLiveMigrate makes a Shoot move to another seed with a running control plane.
	MigrationLiveMigrate = "migration.gardener.cloud/live-migrate"
	// MigrationInterRegionDistanceThreshold is how far apart the regions of the seeds may be when a Shoot moves.
	MigrationInterRegionDistanceThreshold = "migration.gardener.cloud/inter-region-distance-threshold"
	// MigrationAllowDistantRegions lets a Shoot move to a seed in a region that is farther away.
	MigrationAllowDistantRegions = "migration.gardener.cloud/allow-distant-regions"
	// ShootIgnoreAlerts keeps the alerts of a Shoot from being sent when it is true.
	ShootIgnoreAlerts = "shoot.gardener.cloud/ignore-alerts"
	// ShootSkipCleanup keeps the objects in a Shoot from being removed before it is deleted.
	ShootSkipCleanup = "shoot.gardener.cloud/skip-cleanup"
	// ShootSkipReadiness makes the reconciliation of a Shoot not wait for its components.
	ShootSkipReadiness = "shoot.gardener.cloud/skip-readiness"
	// ShootCleanupWebhooksFinalizeGracePeriodSeconds is after how many seconds webhooks in a deleted Shoot lose
	// their finalizers.
	ShootCleanupWebhooksFinalizeGracePeriodSeconds = "shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds"
	// ShootCleanupExtendedAPIsFinalizeGracePeriodSeconds is after how many seconds extended APIs in a deleted Shoot
	// lose their finalizers.
	ShootCleanupExtendedAPIsFinalizeGracePeriodSeconds = "shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds"
	// ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds is after how many seconds Kubernetes objects in a
	// deleted Shoot lose their finalizers.
	ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds = "shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds"
	// ShootCleanupKubernetesResourcesStartTime is when Kubernetes objects in a deleted Shoot began to be removed.
	ShootCleanupKubernetesResourcesStartTime = "shoot.gardener.cloud/cleanup-kubernetes-resources-start-time"
	// ShootCloudConfigExecutionMaxDelaySeconds is within how many seconds the nodes of a Shoot begin to apply a
	// new configuration: 0 means at once, 1800 is the highest possible value. Set by shoot owners, read by gardenlets.
	ShootCloudConfigExecutionMaxDelaySeconds = "shoot.gardener.cloud/cloud-config-execution-max-delay-seconds"
	// AuthenticationIssuer says which component serves the issuer of a Shoot's service account tokens.
	AuthenticationIssuer = "authentication.gardener.cloud/issuer"
	// PodSecurityEnforce is the pod security level of the namespace that an extension is installed in.
	PodSecurityEnforce = "security.gardener.cloud/pod-security-enforce"
	// ProjectSkipStaleCheck keeps a Project from being found unused.
	ProjectSkipStaleCheck = "project.gardener.cloud/skip-stale-check"
	// NamespaceProject is the UID of the Project that a namespace belongs to.
	NamespaceProject = "namespace.gardener.cloud/project"
	// NamespaceKeepAfterProjectDeletion keeps the namespace of a deleted Project.
	NamespaceKeepAfterProjectDeletion = "namespace.gardener.cloud/keep-after-project-deletion"
	// NamespaceCreatedByProjectController says that the namespace of a Project was created for it, and did not exist
	// before.
	NamespaceCreatedByProjectController = "namespace.gardener.cloud/created-by-project-controller"
	// BackupBucketGeneratedSecretNamespace is where the provider extension puts a generated Secret.
	BackupBucketGeneratedSecretNamespace = "backupbucket.extensions.gardener.cloud/generated-secret-namespace"
	// PrefixWaitForCSINode is the prefix of annotations that name CSI drivers a node must have before it counts as ready.
	PrefixWaitForCSINode = "node.gardener.cloud/wait-for-csi-node-"
	// NodeAgentReconciliationDelay is how long the agent of a node waits before it applies a new configuration.
	NodeAgentReconciliationDelay = "node-agent.gardener.cloud/reconciliation-delay"
	// NodeAgentSerialReconciliation makes the nodes of a pool apply a new configuration one after the other.
	NodeAgentSerialReconciliation = "reconciliation.osc.node-agent.gardener.cloud/serial"
	// EmergencyStopShootReconciliations makes the gardenlet of a Seed stop reconciling Shoots.
	EmergencyStopShootReconciliations = "shoot.gardener.cloud/emergency-stop-reconciliations"
	// StaticManifestsShootSelector selects the Shoots that static manifests are for.
	StaticManifestsShootSelector = "static-manifests.shoot.gardener.cloud/selector"
	// MigrationControllerDeploymentType keeps the type of a ControllerDeployment of version v1beta1 in version v1,
	// if it is not "helm".
	MigrationControllerDeploymentType = "migration.controllerdeployment.gardener.cloud/type"
	// MigrationControllerDeploymentProviderConfig keeps the provider configuration of a ControllerDeployment of
	// version v1beta1 in version v1, if its type is not "helm".
	MigrationControllerDeploymentProviderConfig = "migration.controllerdeployment.gardener.cloud/providerConfig"
	// BackupEntryForceDeletion deletes a BackupEntry without a grace period.
	BackupEntryForceDeletion = "backupentry.core.gardener.cloud/force-deletion"
	// BackupEntryCopiedFrom on a BackupEntry is the name of the BackupBucket that its backups are being copied from, since it names that of its new seed. The
	// gardenlet removes it when etcd is restored from them.
	BackupEntryCopiedFrom = "backupentry.core.gardener.cloud/copied-from"
	// BackupEntryNoFinalSnapshot on a BackupEntry is "true" if its backups end without a final snapshot, as its seed is lost: they are copied as they are. The
	// gardenlet removes it when etcd is restored from them.
	BackupEntryNoFinalSnapshot = "backupentry.core.gardener.cloud/no-final-snapshot"
	// BackupEntryRestoredAsOf on a BackupEntry is the time, in RFC 3339, of the latest backup of another seed that etcd was restored from last: what was written
	// after it is lost, unless that backup was the final one. The gardenlet sets it.
	BackupEntryRestoredAsOf = "backupentry.core.gardener.cloud/restored-as-of"
	// DNSProvider is the DNS provider of a domain Secret.
	DNSProvider = "dns.gardener.cloud/provider"
	// DNSDomain is the domain of a domain Secret.
	DNSDomain = "dns.gardener.cloud/domain"
	// DNSZone is the hosted zone of a domain Secret.
	DNSZone = "dns.gardener.cloud/zone"
	// DNSDefaultDomainPriority says which default domain goes first. The highest number does.
	DNSDefaultDomainPriority = "dns.gardener.cloud/domain-default-priority"
	// DNSIPStack says which IP families a DNSRecord's name is used with.
	DNSIPStack = "dns.gardener.cloud/ip-stack"
	// ProtectFromDeletion keeps a ManagedSeed of a ManagedSeedSet from being deleted when the set shrinks.
	ProtectFromDeletion = "seedmanagement.gardener.cloud/protect-from-deletion"
	// ReferencePrefix is the prefix of annotations that name Secrets and ConfigMaps an object uses.
	ReferencePrefix = "reference.resources.gardener.cloud/"
	// QuotaConfigMapsPerShoot is how much the ResourceQuota of a Project grows with each Shoot, in ConfigMaps.
	QuotaConfigMapsPerShoot = "quota.gardener.cloud/configmaps-per-shoot"
	// QuotaSecretsPerShoot is how much the ResourceQuota of a Project grows with each Shoot, in Secrets.
	QuotaSecretsPerShoot = "quota.gardener.cloud/secrets-per-shoot"
	// RestartedAt is when a component was last restarted on purpose.
	RestartedAt = "gardener.cloud/restarted-at"
	// DependencyWatchdogMeltdownProtectionActive says that the dependency watchdog scaled a component down.
	DependencyWatchdogMeltdownProtectionActive = "dependency-watchdog.gardener.cloud/meltdown-protection-active"
)
