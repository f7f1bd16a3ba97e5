package v1alpha1

const (
	// BaseDir is the directory of the gardener-node-agent on the machine.
	BaseDir = "/var/lib/gardener-node-agent"
	// CredentialsDir is the directory for credentials.
	CredentialsDir = BaseDir + "/credentials"
	// TempDir is the directory for files that do not matter after a restart.
	TempDir = BaseDir + "/tmp"
	// BinaryDir is the directory that binaries are installed into.
	BinaryDir = "/opt/bin"
	// PathBinary is where the gardener-node-agent itself is installed.
	PathBinary = BinaryDir + "/gardener-node-agent"
	// PathInitScript is the script that installs the gardener-node-agent on a new machine.
	PathInitScript = BaseDir + "/init.sh"
	// BootstrapTokenFilePath is the file with the token that a new machine requests its first certificate with.
	BootstrapTokenFilePath = CredentialsDir + "/bootstrap-token"
	// TokenFilePath is the file with the token of the gardener-node-agent. It is replaced by the kubeconfig with a certificate.
	TokenFilePath = CredentialsDir + "/token"
	// KubeconfigFilePath is the file with the kubeconfig of the gardener-node-agent.
	KubeconfigFilePath = CredentialsDir + "/kubeconfig"
	// ClusterCAFilePath is the file with the CA certificates of the Shoot.
	ClusterCAFilePath = BaseDir + "/cluster-ca.crt"
	// MachineNameFilePath is the file with the name of the machine.
	MachineNameFilePath = BaseDir + "/machine-name"
	// ZoneFilePath is the file with the zone of the machine.
	ZoneFilePath = BaseDir + "/zone"
	// LastAppliedOperatingSystemConfigFilePath is the file with the operating system config that was applied last.
	LastAppliedOperatingSystemConfigFilePath = BaseDir + "/last-applied-osc.yaml"
	// UnitName is the systemd unit of the gardener-node-agent.
	UnitName = "gardener-node-agent.service"
	// InitUnitName is the systemd unit that runs PathInitScript.
	InitUnitName = "gardener-node-init.service"
	// DataKeyOperatingSystemConfig is the key in the Secret that holds the operating system config.
	DataKeyOperatingSystemConfig = "osc.yaml"
	// NodeLeasePrefix is what the name of the gardener-node-agent's Lease starts with. The name of the Node follows.
	NodeLeasePrefix = "gardener-node-agent-"
)

const (
	// AnnotationKeyChecksumDownloadedOperatingSystemConfig is the checksum of the operating system config, put on the Secret.
	AnnotationKeyChecksumDownloadedOperatingSystemConfig = "checksum/data-script"
	// AnnotationKeyChecksumAppliedOperatingSystemConfig is the checksum of the operating system config that was applied last, put on
	// the Node.
	AnnotationKeyChecksumAppliedOperatingSystemConfig = "checksum/cloud-config-data"
	// AnnotationUpdatingOperatingSystemVersion is the version of the operating system that the Node is being updated to.
	AnnotationUpdatingOperatingSystemVersion = "node-agent.gardener.cloud/updating-operating-system-version"
	// AnnotationRestartSystemdServices on the Node names, separated by commas, systemd units to restart.
	AnnotationRestartSystemdServices = "worker.gardener.cloud/restart-systemd-services"
	// ConditionTypeSystemdUnitsReady is the condition of the Node that says whether the systemd units run.
	ConditionTypeSystemdUnitsReady = "SystemdUnitsReady"
)
