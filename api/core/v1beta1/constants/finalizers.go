package constants

// Finalizers and taints.
const (
	// FinalizerGardener guards objects that others use.
	FinalizerGardener = "gardener.cloud/gardener"
	// FinalizerGardenerName guards the main objects of the API, such as Shoots.
	FinalizerGardenerName = "gardener"
	// FinalizerReferenceProtection guards Secrets and ConfigMaps that others use.
	FinalizerReferenceProtection = "gardener.cloud/reference-protection"
	// FinalizerControllerDeployment guards a ControllerDeployment that is in use.
	FinalizerControllerDeployment = "core.gardener.cloud/controllerdeployment"
	// FinalizerControllerRegistration guards a ControllerRegistration that has installations.
	FinalizerControllerRegistration = "core.gardener.cloud/controllerregistration"
	// FinalizerControllerInstallation guards a ControllerInstallation until it is uninstalled.
	FinalizerControllerInstallation = "core.gardener.cloud/controllerinstallation"
	// FinalizerCredentialsBinding guards the credentials of a CredentialsBinding.
	FinalizerCredentialsBinding = "gardener.cloud/credentialsbinding"
	// FinalizerSecretBinding guards the Secret of a SecretBinding.
	FinalizerSecretBinding = "gardener.cloud/secretbinding"
	// FinalizerShootState guards a ShootState that is needed.
	FinalizerShootState = "core.gardener.cloud/shootstate"
	// FinalizerBackupBucket guards the Secret of a BackupBucket.
	FinalizerBackupBucket = "core.gardener.cloud/backupbucket"
	// TaintNodeCriticalComponentsNotReady keeps pods off a new node until what it needs is ready.
	TaintNodeCriticalComponentsNotReady = "node.gardener.cloud/critical-components-not-ready"
	// SeedTaintProtected keeps shoots of other namespaces than "garden" off a seed.
	SeedTaintProtected = "seed.gardener.cloud/protected"
)
