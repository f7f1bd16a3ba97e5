package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatingSystemConfigResource is the kind of the OperatingSystemConfig resource, as it is written in a ControllerRegistration.
const OperatingSystemConfigResource = "OperatingSystemConfig"

// OperatingSystemConfigSecretDataKey is the key in the Secret of CloudConfig that holds the user data.
const OperatingSystemConfigSecretDataKey = "cloud_config"

const (
	// OperatingSystemConfigFilePathKernelSettings is the file with the kernel settings that Kubernetes needs. Extensions may add
	// to it.
	OperatingSystemConfigFilePathKernelSettings = "/etc/sysctl.d/99-k8s-general.conf"
	// OperatingSystemConfigFilePathKubeletConfig is the configuration file of the kubelet.
	OperatingSystemConfigFilePathKubeletConfig = "/var/lib/kubelet/config/kubelet"
	// OperatingSystemConfigFilePathValitailConfig is the configuration file of valitail, the former log shipper of the nodes.
	OperatingSystemConfigFilePathValitailConfig = "/var/lib/valitail/config/config"
	// OperatingSystemConfigFilePathBinaries is the directory for binaries such as the kubelet.
	OperatingSystemConfigFilePathBinaries = "/opt/bin"
)

const (
	// OperatingSystemConfigUnitNameKubeletService is the systemd unit of the kubelet.
	OperatingSystemConfigUnitNameKubeletService = "kubelet.service"
	// OperatingSystemConfigUnitNameContainerDService is the systemd unit of containerd.
	OperatingSystemConfigUnitNameContainerDService = "containerd.service"
	// OperatingSystemConfigUnitNameValitailService is the systemd unit of valitail, the former log shipper of the nodes.
	OperatingSystemConfigUnitNameValitailService = "valitail.service"
)

// OperatingSystemConfigPurpose says at which point in the lifecycle of a machine a configuration is used.
type OperatingSystemConfigPurpose string

const (
	// OperatingSystemConfigPurposeProvision configurations are the user data of new machines. They bring as much as is needed to
	// start the gardener-node-agent.
	OperatingSystemConfigPurposeProvision OperatingSystemConfigPurpose = "provision"
	// OperatingSystemConfigPurposeReconcile configurations are applied by the gardener-node-agent, again and again.
	OperatingSystemConfigPurposeReconcile OperatingSystemConfigPurpose = "reconcile"
)

// UnitCommand is what shall happen to a systemd unit.
type UnitCommand string

const (
	// CommandStart starts the unit.
	CommandStart UnitCommand = "start"
	// CommandRestart restarts the unit. It is the default.
	CommandRestart UnitCommand = "restart"
	// CommandStop stops the unit.
	CommandStop UnitCommand = "stop"
)

// CRIName is the name of a container runtime interface.
type CRIName string

// CRINameContainerD is containerd, the only container runtime interface that is supported.
const CRINameContainerD CRIName = "containerd"

// CgroupDriverName is the name of the component that manages control groups.
type CgroupDriverName string

const (
	// CgroupDriverCgroupfs makes the kubelet and containerd write to the cgroup file system themselves.
	CgroupDriverCgroupfs CgroupDriverName = "cgroupfs"
	// CgroupDriverSystemd leaves control groups to systemd.
	CgroupDriverSystemd CgroupDriverName = "systemd"
)

// RegistryCapability is what the host of a registry can be used for.
type RegistryCapability string

const (
	// PullCapability hosts serve manifests and blobs by digest.
	PullCapability RegistryCapability = "pull"
	// ResolveCapability hosts can be trusted to turn tags into digests.
	ResolveCapability RegistryCapability = "resolve"
	// PushCapability hosts accept new content.
	PushCapability RegistryCapability = "push"
)

// PluginPathOperation is what shall happen at a path of containerd's plugin configuration.
type PluginPathOperation string

const (
	// AddPluginPathOperation sets the values at the path. It is the default.
	AddPluginPathOperation PluginPathOperation = "add"
	// RemovePluginPathOperation removes what is at the path.
	RemovePluginPathOperation PluginPathOperation = "remove"
)

// FileCodecID is the name of an encoding of file content.
type FileCodecID string

const (
	// PlainFileCodecID is content as it is.
	PlainFileCodecID FileCodecID = ""
	// B64FileCodecID is content in base64.
	B64FileCodecID FileCodecID = "b64"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=operatingsystemconfigs,singular=operatingsystemconfig,scope=Namespaced,shortName=osc
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Purpose",type=string,JSONPath=".spec.purpose"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// OperatingSystemConfig makes an extension turn units and files into what the operating
// system needs: user data for new machines, or additions that the gardener-node-agent applies.
type OperatingSystemConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what shall be on the machine.
	Spec OperatingSystemConfigSpec `json:"spec"`

	// Status holds what the extension made of it.
	// +optional
	Status OperatingSystemConfigStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// OperatingSystemConfigList is a list of OperatingSystemConfig objects.
type OperatingSystemConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []OperatingSystemConfig `json:"items"`
}

// OperatingSystemConfigSpec says what shall be on the machine.
type OperatingSystemConfigSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// CRIConfig configures the container runtime. Set for the purpose reconcile only.
	// +optional
	CRIConfig *CRIConfig `json:"criConfig,omitempty"`

	// Purpose says what the configuration is used for: provision for user data of new machines, reconcile for what the
	// gardener-node-agent applies. Immutable.
	Purpose OperatingSystemConfigPurpose `json:"purpose"`

	// Units are the systemd units, each with its own name.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Units []Unit `json:"units,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// Files are the files, each with its own path.
	// +patchMergeKey=path
	// +patchStrategy=merge
	// +optional
	Files []File `json:"files,omitempty" patchStrategy:"merge" patchMergeKey:"path"`

	// InPlaceUpdates describes what an in-place update shall bring. Set for pools that are updated in place.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
}

// Unit is a systemd unit: a new one, or one that exists and is changed.
type Unit struct {
	// Name is the file name of the unit, such as docker.service.
	Name string `json:"name"`

	// Command is what happens to the unit when it changed: start, restart or stop. Unset means restart.
	// +optional
	Command *UnitCommand `json:"command,omitempty"`

	// Enable says whether the unit starts at boot. Unset means true.
	// +optional
	Enable *bool `json:"enable,omitempty"`

	// Content is the unit file. Unset when the unit comes with the operating system.
	// +optional
	Content *string `json:"content,omitempty"`

	// DropIns are additions to the unit file, each with its own name.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	DropIns []DropIn `json:"dropIns,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// FilePaths lists files whose change restarts the unit. Each must be one of the files of the configuration.
	// +optional
	FilePaths []string `json:"filePaths,omitempty"`
}

// DropIn is an addition to a unit file.
type DropIn struct {
	// Name is the file name of the addition, ending in .conf.
	Name string `json:"name"`

	// Content is its content.
	Content string `json:"content"`
}

// File is a file on the machine.
type File struct {
	// Path is the absolute path of the file.
	Path string `json:"path"`

	// Permissions are the permission bits as a decimal number: 420 is 0644, the default.
	// +optional
	Permissions *uint32 `json:"permissions,omitempty"`

	// Content says where the content comes from.
	Content FileContent `json:"content"`

	// HostName restricts the file to the node with this host name. Unset means every node.
	// +optional
	HostName *string `json:"hostName,omitempty"`
}

// FileContent says where the content of a file comes from. Exactly one of secretRef, inline and imageRef is set.
type FileContent struct {
	// SecretRef takes the content from a Secret in the namespace of the OperatingSystemConfig.
	// +optional
	SecretRef *FileContentSecretRef `json:"secretRef,omitempty"`

	// Inline is the content itself.
	// +optional
	Inline *FileContentInline `json:"inline,omitempty"`

	// TransmitUnencoded makes the extension not encode the content in the user data, for content that is replaced on
	// the machine before it is used.
	// +optional
	TransmitUnencoded *bool `json:"transmitUnencoded,omitempty"`

	// ImageRef takes the content from a file in a container image.
	// +optional
	ImageRef *FileContentImageRef `json:"imageRef,omitempty"`
}

// FileContentSecretRef names a key of a Secret.
type FileContentSecretRef struct {
	// Name is the name of the Secret.
	Name string `json:"name"`

	// DataKey is the key in its data.
	DataKey string `json:"dataKey"`
}

// FileContentInline is content that is part of the object.
type FileContentInline struct {
	// Encoding says how data is encoded: b64 for base64, or empty for plain text.
	Encoding string `json:"encoding"`

	// Data is the content.
	Data string `json:"data"`
}

// FileContentImageRef names a file in a container image.
type FileContentImageRef struct {
	// Image is the reference of the image.
	Image string `json:"image"`

	// FilePathInImage is the absolute path of the file in the image.
	FilePathInImage string `json:"filePathInImage"`
}

// CRIConfig configures the container runtime.
type CRIConfig struct {
	// Name is the name of the container runtime interface. Only containerd is supported. Immutable.
	// +kubebuilder:validation:Enum=containerd
	Name CRIName `json:"name"`

	// CgroupDriver is what manages control groups for the kubelet and containerd: cgroupfs or systemd. The gardenlet sets
	// systemd.
	// +optional
	CgroupDriver *CgroupDriverName `json:"cgroupDriver,omitempty"`

	// Containerd configures containerd.
	// +optional
	Containerd *ContainerdConfig `json:"containerd,omitempty"`
}

// ContainerdConfig configures containerd.
type ContainerdConfig struct {
	// Registries configures how containerd reaches registries.
	// +optional
	Registries []RegistryConfig `json:"registries,omitempty"`

	// SandboxImage is the image of the container that holds the namespaces of a pod.
	SandboxImage string `json:"sandboxImage"`

	// Plugins are changes to the configuration of containerd's plugins.
	// +optional
	Plugins []PluginConfig `json:"plugins,omitempty"`
}

// RegistryConfig configures how containerd reaches a registry. It becomes a hosts.toml file.
type RegistryConfig struct {
	// Upstream is the registry as image references name it, such as docker.io.
	Upstream string `json:"upstream"`

	// Server is the URL to use when none of the hosts has the image. Unset means the upstream itself.
	// +optional
	Server *string `json:"server,omitempty"`

	// Hosts are used first, in this order.
	// +optional
	Hosts []RegistryHost `json:"hosts,omitempty"`

	// ReadinessProbe makes the gardener-node-agent wait with the configuration until all hosts answer.
	// +optional
	ReadinessProbe *bool `json:"readinessProbe,omitempty"`
}

// RegistryHost is a mirror of a registry.
type RegistryHost struct {
	// URL is the URL of the host, with scheme http or https.
	URL string `json:"url"`

	// Capabilities are what the host is used for: pull, resolve, push. Unset means pull and resolve.
	// +optional
	Capabilities []RegistryCapability `json:"capabilities,omitempty"`

	// CACerts are paths of files on the machine with the CAs that containerd trusts for the host.
	// +optional
	CACerts []string `json:"caCerts,omitempty"`

	// OverridePath says that the path of the URL already contains the API root, so that containerd does not add /v2.
	// +optional
	OverridePath *bool `json:"overridePath,omitempty"`
}

// PluginConfig is a change to the configuration of containerd's plugins.
type PluginConfig struct {
	// Op is what happens at the path: add or remove. Unset means add.
	// +optional
	Op *PluginPathOperation `json:"op,omitempty"`

	// Path leads to the place in the configuration, below "plugins".
	Path []string `json:"path"`

	// Values are what is set at the path. Not used for remove.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// InPlaceUpdates describes what an in-place update shall bring.
type InPlaceUpdates struct {
	// OperatingSystemVersion is the version of the operating system that machines shall have.
	OperatingSystemVersion string `json:"operatingSystemVersion"`

	// Kubelet is the version of the kubelet that machines shall have.
	Kubelet string `json:"kubelet"`

	// CredentialsRotation says which credentials were rotated, so that the kubelet must get new ones.
	// +optional
	CredentialsRotation *CredentialsRotation `json:"credentialsRotation,omitempty"`
}

// CredentialsRotation says when credentials were rotated.
type CredentialsRotation struct {
	// CertificateAuthorities is the rotation of the CAs.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`

	// ServiceAccountKey is about the key that signs service account tokens.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
}

// CARotation says when the rotation of CAs started last.
type CARotation struct {
	// LastInitiationTime is when it started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// ServiceAccountKeyRotation says when the rotation of the service account key started last.
type ServiceAccountKeyRotation struct {
	// LastInitiationTime is when it started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// OperatingSystemConfigStatus holds what the extension made of the configuration.
type OperatingSystemConfigStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// ExtensionUnits are units that the extension adds, or that replace units of the spec with the same name. Used
	// for the purpose reconcile.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	ExtensionUnits []Unit `json:"extensionUnits,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// ExtensionFiles are files that the extension adds, or that replace files of the spec with the same path. Used
	// for the purpose reconcile.
	// +patchMergeKey=path
	// +patchStrategy=merge
	// +optional
	ExtensionFiles []File `json:"extensionFiles,omitempty" patchStrategy:"merge" patchMergeKey:"path"`

	// CloudConfig says where the user data is. Set for the purpose provision.
	// +optional
	CloudConfig *CloudConfig `json:"cloudConfig,omitempty"`

	// InPlaceUpdates says how the operating system is updated in place.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
}

// CloudConfig says where the user data is.
type CloudConfig struct {
	// SecretRef names the Secret whose key cloud_config holds the user data.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// InPlaceUpdatesStatus says how the operating system is updated in place.
type InPlaceUpdatesStatus struct {
	// OSUpdate is the command that the gardener-node-agent runs.
	// +optional
	OSUpdate *OSUpdate `json:"osUpdate,omitempty"`
}

// OSUpdate is a command that updates the operating system.
type OSUpdate struct {
	// Command is the path of the executable.
	Command string `json:"command"`

	// Args are its arguments.
	// +optional
	Args []string `json:"args,omitempty"`
}
