package constants

// Operations that annotations request, and the tasks of shoots.
const (
	// OperationsSeparator separates operations in the annotation of a Shoot.
	OperationsSeparator = ";"
	// TasksSeparator separates the tasks in ShootTasks.
	TasksSeparator = ","
	// GardenerOperationReconcile reconciles the object.
	GardenerOperationReconcile = "reconcile"
	// GardenerOperationMigrate prepares the object to be moved to another seed.
	GardenerOperationMigrate = "migrate"
	// GardenerOperationRestore brings the object up from its saved state.
	GardenerOperationRestore = "restore"
	// GardenerOperationWaitForState makes the extension wait until the state is written.
	GardenerOperationWaitForState = "wait-for-state"
	// GardenerOperationKeepalive says that a Bastion is still needed.
	GardenerOperationKeepalive = "keepalive"
	// GardenerOperationRenewKubeconfig rotates the garden credentials of a gardenlet.
	GardenerOperationRenewKubeconfig = "renew-kubeconfig"
	// OperationForceRedeploy deploys the gardenlet of a Gardenlet from scratch.
	OperationForceRedeploy = "force-redeploy"
	// ShootOperationMaintain starts the maintenance of a Shoot now.
	ShootOperationMaintain = "maintain"
	// ShootOperationRetry tries a failed Shoot again.
	ShootOperationRetry = "retry"
	// ShootOperationForceInPlaceUpdate lets a change through although in-place updates are pending.
	ShootOperationForceInPlaceUpdate = "force-in-place-update"
	// OperationRotateCredentialsStart starts rotating all credentials.
	OperationRotateCredentialsStart = "rotate-credentials-start"
	// OperationRotateCredentialsStartWithoutWorkersRollout starts rotating all credentials without replacing
	// machines.
	OperationRotateCredentialsStartWithoutWorkersRollout = "rotate-credentials-start-without-workers-rollout"
	// OperationRotateCredentialsComplete completes rotating all credentials.
	OperationRotateCredentialsComplete = "rotate-credentials-complete"
	// OperationRotateCAStart starts the rotation of the CAs.
	OperationRotateCAStart = "rotate-ca-start"
	// OperationRotateCAStartWithoutWorkersRollout starts the rotation of the CAs without replacing
	// machines.
	OperationRotateCAStartWithoutWorkersRollout = "rotate-ca-start-without-workers-rollout"
	// OperationRotateCAComplete completes the rotation of the CAs.
	OperationRotateCAComplete = "rotate-ca-complete"
	// OperationRotateObservabilityCredentials rotates the passwords of monitoring and logging.
	OperationRotateObservabilityCredentials = "rotate-observability-credentials"
	// OperationRotateSSHKeypair rotates the SSH key pair.
	OperationRotateSSHKeypair = "rotate-ssh-keypair"
	// OperationRotateServiceAccountKeyStart starts the rotation of the key for service account tokens.
	OperationRotateServiceAccountKeyStart = "rotate-serviceaccount-key-start"
	// OperationRotateServiceAccountKeyStartWithoutWorkersRollout starts the rotation of the key for service account tokens
	// without replacing machines.
	OperationRotateServiceAccountKeyStartWithoutWorkersRollout = "rotate-serviceaccount-key-start-without-workers-rollout"
	// OperationRotateServiceAccountKeyComplete completes the rotation of the key for service account tokens.
	OperationRotateServiceAccountKeyComplete = "rotate-serviceaccount-key-complete"
	// OperationRotateETCDEncryptionKey rotates the encryption key of etcd in one go.
	OperationRotateETCDEncryptionKey = "rotate-etcd-encryption-key"
	// OperationRotateETCDEncryptionKeyStart starts the rotation of the encryption key of etcd.
	OperationRotateETCDEncryptionKeyStart = "rotate-etcd-encryption-key-start"
	// OperationRotateETCDEncryptionKeyComplete completes the rotation of the encryption key of etcd.
	OperationRotateETCDEncryptionKeyComplete = "rotate-etcd-encryption-key-complete"
	// OperationRotateRolloutWorkers replaces the machines of the pools that follow after "=", in the course of a
	// rotation.
	OperationRotateRolloutWorkers = "rotate-rollout-workers"
	// OperationRolloutWorkers replaces the machines of the pools that follow after "=".
	OperationRolloutWorkers = "rollout-workers"
	// OperationRotateWorkloadIdentityKeyStart starts the rotation of the key for tokens of WorkloadIdentities.
	OperationRotateWorkloadIdentityKeyStart = "rotate-workload-identity-key-start"
	// OperationRotateWorkloadIdentityKeyComplete completes the rotation of the key for tokens of WorkloadIdentities.
	OperationRotateWorkloadIdentityKeyComplete = "rotate-workload-identity-key-complete"
	// SeedOperationRenewGardenAccessSecrets renews all tokens for the garden in a seed.
	SeedOperationRenewGardenAccessSecrets = "renew-garden-access-secrets"
	// SeedOperationRenewWorkloadIdentityTokens renews all tokens of WorkloadIdentities in a seed.
	SeedOperationRenewWorkloadIdentityTokens = "renew-workload-identity-tokens"
	// KubeconfigSecretOperationRenew renews the kubeconfig in a gardenlet's Secret.
	KubeconfigSecretOperationRenew = "renew"
	// ShootTaskDeployInfrastructure deploys the infrastructure again.
	ShootTaskDeployInfrastructure = "deployInfrastructure"
	// ShootTaskDeployDNSRecordInternal deploys the internal DNS record again.
	ShootTaskDeployDNSRecordInternal = "deployDNSRecordInternal"
	// ShootTaskDeployDNSRecordExternal deploys the external DNS record again.
	ShootTaskDeployDNSRecordExternal = "deployDNSRecordExternal"
	// ShootTaskDeployDNSRecordIngress deploys the DNS record for ingress again.
	ShootTaskDeployDNSRecordIngress = "deployDNSRecordIngress"
	// ShootTaskRestartControlPlanePods restarts the pods of the control plane.
	ShootTaskRestartControlPlanePods = "restartControlPlanePods"
	// ShootTaskRestartCoreAddons restarts the system components.
	ShootTaskRestartCoreAddons = "restartCoreAddons"
	// ShootTaskUpdateGardenerNodeAgentSecretName gives nodes a new configuration Secret.
	ShootTaskUpdateGardenerNodeAgentSecretName = "updateGardenerNodeAgentSecretName"
)
