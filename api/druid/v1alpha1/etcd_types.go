package v1alpha1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcds,singular=etcd,scope=Namespaced
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.ready"
// +kubebuilder:printcolumn:name="Quorate",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="All Members Ready",type=string,JSONPath=`.status.conditions[?(@.type=="AllMembersReady")].status`
// +kubebuilder:printcolumn:name="Backup Ready",type=string,JSONPath=`.status.conditions[?(@.type=="BackupReady")].status`
// +kubebuilder:printcolumn:name="Cluster ID Mismatch",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterIDMismatch")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Cluster Size",type=integer,JSONPath=".spec.replicas",priority=1
// +kubebuilder:printcolumn:name="Current Replicas",type=integer,JSONPath=".status.currentReplicas",priority=1
// +kubebuilder:printcolumn:name="Ready Replicas",type=integer,JSONPath=".status.readyReplicas",priority=1

// Etcd is an etcd cluster of one or more members, with backups if a store is given.
type Etcd struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired cluster.
	// +optional
	Spec EtcdSpec `json:"spec,omitempty"`

	// Status says how the cluster is.
	// +optional
	Status EtcdStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// EtcdList is a list of Etcd objects.
type EtcdList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Etcd `json:"items"`
}

// EtcdSpec describes the desired etcd cluster.
// +kubebuilder:validation:XValidation:rule="has(self.memberNamePrefix) == has(oldSelf.memberNamePrefix)",message="memberNamePrefix can neither be added nor removed"
// +kubebuilder:validation:XValidation:rule="has(self.storageClass) == has(oldSelf.storageClass)",message="storageClass can neither be added nor removed"
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaimTemplate) == has(oldSelf.volumeClaimTemplate)",message="volumeClaimTemplate can neither be added nor removed"
type EtcdSpec struct {
	// Annotations are put on the pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Backup configures the backup-restore sidecar and where backups go.
	Backup BackupSpec `json:"backup"`

	// Etcd configures etcd itself.
	Etcd EtcdConfig `json:"etcd"`

	// Labels are put on the pods. They must match the selector.
	Labels map[string]string `json:"labels"`

	// MemberNamePrefix is what the names of the members start with, instead of the name of the Etcd, so that members of
	// two Etcds can form one cluster. Immutable.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="memberNamePrefix is immutable"
	// +optional
	MemberNamePrefix *string `json:"memberNamePrefix,omitempty"`

	// PriorityClassName is the PriorityClass of the pods.
	// +optional
	PriorityClassName *string `json:"priorityClassName,omitempty"`

	// Replicas is the number of members: odd, or 0 to stop the cluster. It never shrinks, other than to 0.
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= oldSelf",message="replicas can only be increased, or set to 0"
	Replicas int32 `json:"replicas"`

	// RunAsRoot makes the containers run as root. Needed for data that was written that way. Defaults to false.
	// +optional
	RunAsRoot *bool `json:"runAsRoot,omitempty"`

	// SchedulingConstraints say on which nodes the pods may run.
	// +optional
	SchedulingConstraints *SchedulingConstraints `json:"schedulingConstraints,omitempty"`

	// Selector selects the pods. Kept for compatibility; the pods are found by labels of etcd-druid.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// SharedConfig is configuration that etcd and backup-restore have in common.
	// +optional
	SharedConfig *SharedConfig `json:"sharedConfig,omitempty"`

	// StorageCapacity is the size of each member's volume. It may grow later.
	// +optional
	StorageCapacity *resource.Quantity `json:"storageCapacity,omitempty"`

	// StorageClass is the StorageClass of the volumes. Unset means the cluster's default. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageClass is immutable"
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`

	// VolumeClaimTemplate is the name of the volume claim template. Unset means the name of the Etcd. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="volumeClaimTemplate is immutable"
	// +optional
	VolumeClaimTemplate *string `json:"volumeClaimTemplate,omitempty"`

	// ExternallyManagedMemberAddresses are the addresses of members that are run by other means, for example as static pods.
	// When set, etcd-druid creates no StatefulSet.
	// +listType=set
	// +optional
	ExternallyManagedMemberAddresses []string `json:"externallyManagedMemberAddresses,omitempty"`
}

// BackupSpec configures backups and the backup-restore sidecar that makes them.
// +kubebuilder:validation:XValidation:rule="!has(self.deltaSnapshotPeriod) || !has(self.garbageCollectionPeriod) || duration(self.deltaSnapshotPeriod) < duration(self.garbageCollectionPeriod)",message="garbageCollectionPeriod must be longer than deltaSnapshotPeriod"
type BackupSpec struct {
	// Compression configures the compression of snapshots.
	// +optional
	Compression *CompressionSpec `json:"compression,omitempty"`

	// DeltaSnapshotMemoryLimit is how much memory the changes since the last snapshot may take before a delta snapshot is
	// made early.
	// +optional
	DeltaSnapshotMemoryLimit *resource.Quantity `json:"deltaSnapshotMemoryLimit,omitempty"`

	// DeltaSnapshotPeriod is the time between two delta snapshots, such as 5m. Unset, backup-restore takes 20s. Under 1s
	// there are none.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	DeltaSnapshotPeriod *metav1.Duration `json:"deltaSnapshotPeriod,omitempty"`

	// DeltaSnapshotRetentionPeriod is how long delta snapshots are kept after a full snapshot made them superfluous.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	DeltaSnapshotRetentionPeriod *metav1.Duration `json:"deltaSnapshotRetentionPeriod,omitempty"`

	// EnableProfiling makes backup-restore serve Go profiles.
	// +optional
	EnableProfiling *bool `json:"enableProfiling,omitempty"`

	// EtcdSnapshotTimeout is how long making a full snapshot may take.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	EtcdSnapshotTimeout *metav1.Duration `json:"etcdSnapshotTimeout,omitempty"`

	// FullSnapshotSchedule is when full snapshots are taken, as a cron expression.
	// +kubebuilder:validation:Pattern=`^(\*|[1-5]?[0-9]|[1-5]?[0-9]-[1-5]?[0-9]|(?:[1-9]|[1-4][0-9]|5[0-9])\/(?:[1-9]|[1-4][0-9]|5[0-9]|60)|\*\/(?:[1-9]|[1-4][0-9]|5[0-9]|60))\s+(\*|[0-9]|1[0-9]|2[0-3]|[0-9]-(?:[0-9]|1[0-9]|2[0-3])|1[0-9]-(?:1[0-9]|2[0-3])|2[0-3]-2[0-3]|(?:[1-9]|1[0-9]|2[0-3])\/(?:[1-9]|1[0-9]|2[0-4])|\*\/(?:[1-9]|1[0-9]|2[0-4]))\s+(\*|[1-9]|[12][0-9]|3[01]|[1-9]-(?:[1-9]|[12][0-9]|3[01])|[12][0-9]-(?:[12][0-9]|3[01])|3[01]-3[01]|(?:[1-9]|[12][0-9]|30)\/(?:[1-9]|[12][0-9]|3[01])|\*\/(?:[1-9]|[12][0-9]|3[01]))\s+(\*|[1-9]|1[0-2]|[1-9]-(?:[1-9]|1[0-2])|1[0-2]-1[0-2]|(?:[1-9]|1[0-2])\/(?:[1-9]|1[0-2])|\*\/(?:[1-9]|1[0-2]))\s+(\*|[1-7]|[1-6]-[1-7]|[1-6]\/[1-7]|\*\/[1-7])$`
	// +optional
	FullSnapshotSchedule *string `json:"fullSnapshotSchedule,omitempty"`

	// GarbageCollectionPeriod is the time between two clean-ups of old snapshots.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	GarbageCollectionPeriod *metav1.Duration `json:"garbageCollectionPeriod,omitempty"`

	// GarbageCollectionPolicy says which snapshots are kept: Exponential keeps fewer the older they are, LimitBased a
	// fixed number.
	// +kubebuilder:validation:Enum=Exponential;LimitBased
	// +optional
	GarbageCollectionPolicy *GarbageCollectionPolicy `json:"garbageCollectionPolicy,omitempty"`

	// Image is the image of backup-restore. Unset means the one of etcd-druid's image vector.
	// +optional
	Image *string `json:"image,omitempty"`

	// LeaderElection configures how the sidecars find out which of them makes the backups.
	// +optional
	LeaderElection *LeaderElectionSpec `json:"leaderElection,omitempty"`

	// MaxBackupsLimitBasedGC is the number of full snapshots that LimitBased keeps.
	// +optional
	MaxBackupsLimitBasedGC *int32 `json:"maxBackupsLimitBasedGC,omitempty"`

	// Port is the port of the sidecar's HTTP server. Unset means 8080.
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Resources are the resource requirements of the sidecar.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// SnapshotCompaction configures the job that merges delta snapshots into a full one.
	// +optional
	SnapshotCompaction *SnapshotCompactionSpec `json:"snapshotCompaction,omitempty"`

	// Store says where backups go. Unset means that there are none.
	// +optional
	Store *StoreSpec `json:"store,omitempty"`

	// TLS is the TLS configuration of the sidecar's server and of its clients. Unset means plain HTTP.
	// +optional
	TLS *TLSConfig `json:"tls,omitempty"`
}

// CompressionSpec configures the compression of snapshots.
type CompressionSpec struct {
	// Enabled switches compression on. Defaults to false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Policy is the algorithm: gzip, lzw or zlib. Unset means gzip.
	// +kubebuilder:validation:Enum=gzip;lzw;zlib
	// +optional
	Policy *CompressionPolicy `json:"policy,omitempty"`
}

// LeaderElectionSpec configures how the sidecars of a cluster find out which of them makes the backups.
type LeaderElectionSpec struct {
	// EtcdConnectionTimeout is how long asking etcd for its leader may take.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	EtcdConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`

	// ReelectionPeriod is how often a sidecar checks whether its etcd member is the leader.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	ReelectionPeriod *metav1.Duration `json:"reelectionPeriod,omitempty"`
}

// SnapshotCompactionSpec configures the job that merges delta snapshots into a full one, so that a restore is quick.
type SnapshotCompactionSpec struct {
	// EventsThreshold is the number of changes since the last full snapshot from which on the job runs.
	// +optional
	EventsThreshold *int64 `json:"eventsThreshold,omitempty"`

	// Resources are the resource requirements of the job.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// TriggerFullSnapshotThreshold is the number of changes since the last full snapshot from which on the cluster is
	// requested to take a full snapshot instead of the job being run.
	// +optional
	TriggerFullSnapshotThreshold *int64 `json:"triggerFullSnapshotThreshold,omitempty"`
}

// StoreSpec says where backups are.
type StoreSpec struct {
	// Container is the name of the bucket.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9._-]{1,61}[a-zA-Z0-9]$`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Container *string `json:"container,omitempty"`

	// EndpointOverride is the URL of the object store, if it is not the usual one of the provider.
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="endpointOverride must be a URL"
	// +optional
	EndpointOverride *string `json:"endpointOverride,omitempty"`

	// Prefix is the path in the bucket below which the snapshots are.
	Prefix string `json:"prefix"`

	// Provider is the kind of object store, such as aws, azure, gcp, openstack, alicloud, stackit or local.
	// +optional
	Provider *StorageProvider `json:"provider,omitempty"`

	// SecretRef names the Secret with the credentials for the object store.
	// +optional
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
}

// TLSConfig says which certificates a server and its clients use.
type TLSConfig struct {
	// ClientTLSSecretRef names the Secret with the certificate of clients, in tls.crt and tls.key.
	// +optional
	ClientTLSSecretRef *corev1.SecretReference `json:"clientTLSSecretRef,omitempty"`

	// ServerTLSSecretRef names the Secret with the certificate of the server, in tls.crt and tls.key.
	ServerTLSSecretRef corev1.SecretReference `json:"serverTLSSecretRef"`

	// TLSCASecretRef names the Secret with the CAs that both trust.
	TLSCASecretRef SecretReference `json:"tlsCASecretRef"`
}

// PeerTLSConfig says which certificates the members of a cluster use among themselves.
type PeerTLSConfig struct {
	// The fields of TLSConfig belong here too.
	TLSConfig `json:",inline"`

	// SkipClientSANVerification makes members accept a peer certificate whose names do not match the address the
	// connection comes from. Needed when members are reached through a proxy or from another cluster.
	// +optional
	SkipClientSANVerification *bool `json:"skipClientSANVerification,omitempty"`
}

// SecretReference names a Secret and a key in it.
type SecretReference struct {
	// The fields of SecretReference belong here too.
	corev1.SecretReference `json:",inline"`

	// DataKey is the key. Unset means the key that is usual for the purpose, such as ca.crt.
	// +optional
	DataKey *string `json:"dataKey,omitempty"`
}

// EtcdConfig configures etcd.
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapWithExistingCluster) || has(oldSelf.bootstrapWithExistingCluster)",message="bootstrapWithExistingCluster can only be set when the Etcd is created"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapWithExistingCluster) || !has(oldSelf.bootstrapWithExistingCluster) || self.bootstrapWithExistingCluster == oldSelf.bootstrapWithExistingCluster",message="bootstrapWithExistingCluster cannot be changed, only removed"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalAdvertisePeerURLs) || self.additionalAdvertisePeerURLs.all(m, m.urls.all(u, isURL(u)))",message="additionalAdvertisePeerURLs must be URLs"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapWithExistingCluster) || self.bootstrapWithExistingCluster.clientEndpoints.all(u, isURL(u))",message="clientEndpoints of bootstrapWithExistingCluster must be URLs"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapWithExistingCluster) || self.bootstrapWithExistingCluster.members.all(m, m.peerUrls.all(u, isURL(u)))",message="peerUrls of bootstrapWithExistingCluster must be URLs"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapWithExistingCluster) || has(self.clientUrlTls) || self.bootstrapWithExistingCluster.clientEndpoints.all(u, u.startsWith('http://'))",message="a cluster without clientUrlTls can only join one with http client endpoints"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapWithExistingCluster) || has(self.peerUrlTls) || self.bootstrapWithExistingCluster.members.all(m, m.peerUrls.all(u, u.startsWith('http://')))",message="a cluster without peerUrlTls can only join one with http peer URLs"
type EtcdConfig struct {
	// AdditionalAdvertisePeerURLs are URLs under which members can be reached by peers, beyond those within the cluster.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=memberName
	// +optional
	AdditionalAdvertisePeerURLs []MemberPeerURLs `json:"additionalAdvertisePeerURLs,omitempty"`

	// AuthSecretRef names the Secret with user name and password for etcd's authentication.
	// +optional
	AuthSecretRef *corev1.SecretReference `json:"authSecretRef,omitempty"`

	// BackendBboltFreelistType is how the database keeps track of free pages: array or map.
	// +kubebuilder:validation:Enum=array;map
	// +optional
	BackendBboltFreelistType *FreelistType `json:"backendBboltFreelistType,omitempty"`

	// BootstrapWithExistingCluster makes the members join a running cluster instead of forming one of their own. Set only
	// when the Etcd is created.
	// +optional
	BootstrapWithExistingCluster *BootstrapWithExistingClusterSpec `json:"bootstrapWithExistingCluster,omitempty"`

	// ClientPort is the port for clients. Unset means 2379.
	// +optional
	ClientPort *int32 `json:"clientPort,omitempty"`

	// ClientService configures the Service for clients.
	// +optional
	ClientService *ClientService `json:"clientService,omitempty"`

	// ClientURLTLS is the TLS configuration for clients. Unset means plain HTTP.
	// +optional
	ClientURLTLS *TLSConfig `json:"clientUrlTls,omitempty"`

	// DefragmentationSchedule is when the database is defragmented, as a cron expression.
	// +kubebuilder:validation:Pattern=`^(\*|[1-5]?[0-9]|[1-5]?[0-9]-[1-5]?[0-9]|(?:[1-9]|[1-4][0-9]|5[0-9])\/(?:[1-9]|[1-4][0-9]|5[0-9]|60)|\*\/(?:[1-9]|[1-4][0-9]|5[0-9]|60))\s+(\*|[0-9]|1[0-9]|2[0-3]|[0-9]-(?:[0-9]|1[0-9]|2[0-3])|1[0-9]-(?:1[0-9]|2[0-3])|2[0-3]-2[0-3]|(?:[1-9]|1[0-9]|2[0-3])\/(?:[1-9]|1[0-9]|2[0-4])|\*\/(?:[1-9]|1[0-9]|2[0-4]))\s+(\*|[1-9]|[12][0-9]|3[01]|[1-9]-(?:[1-9]|[12][0-9]|3[01])|[12][0-9]-(?:[12][0-9]|3[01])|3[01]-3[01]|(?:[1-9]|[12][0-9]|30)\/(?:[1-9]|[12][0-9]|3[01])|\*\/(?:[1-9]|[12][0-9]|3[01]))\s+(\*|[1-9]|1[0-2]|[1-9]-(?:[1-9]|1[0-2])|1[0-2]-1[0-2]|(?:[1-9]|1[0-2])\/(?:[1-9]|1[0-2])|\*\/(?:[1-9]|1[0-2]))\s+(\*|[1-7]|[1-6]-[1-7]|[1-6]\/[1-7]|\*\/[1-7])$`
	// +optional
	DefragmentationSchedule *string `json:"defragmentationSchedule,omitempty"`

	// EnableGRPCGateway makes etcd serve JSON over HTTP too.
	// +optional
	EnableGRPCGateway *bool `json:"enableGRPCGateway,omitempty"`

	// EtcdDefragTimeout is how long a defragmentation may take.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	EtcdDefragTimeout *metav1.Duration `json:"etcdDefragTimeout,omitempty"`

	// HeartbeatDuration is the time between two heartbeats of the leader.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	HeartbeatDuration *metav1.Duration `json:"heartbeatDuration,omitempty"`

	// Image is the image of etcd. Unset means the one of etcd-druid's image vector.
	// +optional
	Image *string `json:"image,omitempty"`

	// Metrics is how detailed the metrics are: basic or extensive. Unset means basic.
	// +kubebuilder:validation:Enum=basic;extensive
	// +optional
	Metrics *MetricsLevel `json:"metrics,omitempty"`

	// PeerURLTLS is the TLS configuration among members. Unset means plain HTTP.
	// +optional
	PeerURLTLS *PeerTLSConfig `json:"peerUrlTls,omitempty"`

	// Quota is the size the database may grow to. Unset means 8Gi.
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`

	// Resources are the resource requirements of etcd.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// ServerPort is the port for peers. Unset means 2380.
	// +optional
	ServerPort *int32 `json:"serverPort,omitempty"`

	// SnapshotCount is the number of transactions after which etcd writes a snapshot of its own to disk.
	// +optional
	SnapshotCount *int64 `json:"snapshotCount,omitempty"`

	// WrapperPort is the port of the process that wraps etcd. Unset means 9095.
	// +optional
	WrapperPort *int32 `json:"wrapperPort,omitempty"`
}

// MemberPeerURLs lists the peer URLs of one member.
type MemberPeerURLs struct {
	// MemberName is the name of the member, which ends in a number.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?-[0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	MemberName string `json:"memberName"`

	// URLs are its URLs.
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=set
	URLs []string `json:"urls"`
}

// BootstrapWithExistingClusterSpec names the running cluster that members join.
type BootstrapWithExistingClusterSpec struct {
	// ClientEndpoints are URLs of the running cluster for clients.
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	ClientEndpoints []string `json:"clientEndpoints"`

	// Members are the members of the running cluster.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Members []ExistingMember `json:"members"`
}

// ExistingMember is a member of the cluster that was joined.
type ExistingMember struct {
	// Name is its name.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// PeerURLs are its URLs for peers.
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=set
	PeerURLs []string `json:"peerUrls"`
}

// ClientService configures the Service for clients.
type ClientService struct {
	// Annotations are put on the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels are put on the Service.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// TrafficDistribution is the preference of the Service for close endpoints: PreferSameZone, PreferSameNode or
	// PreferClose.
	// +kubebuilder:validation:Enum=PreferSameZone;PreferSameNode;PreferClose
	// +optional
	TrafficDistribution *string `json:"trafficDistribution,omitempty"`
}

// SchedulingConstraints say on which nodes the pods may run.
type SchedulingConstraints struct {
	// Affinity is the affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints are the topology spread constraints of the pods.
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// SharedConfig is configuration that etcd and backup-restore have in common.
type SharedConfig struct {
	// AutoCompactionMode says how old revisions are dropped: periodic by age, revision by number. Unset means periodic.
	// +kubebuilder:validation:Enum=periodic;revision
	// +optional
	AutoCompactionMode *CompactionMode `json:"autoCompactionMode,omitempty"`

	// AutoCompactionRetention is the age, such as 30m, or the number from which on revisions are dropped. Unset means 30m.
	// +optional
	AutoCompactionRetention *string `json:"autoCompactionRetention,omitempty"`
}

// EtcdStatus says how the cluster is. etcd-druid writes it.
type EtcdStatus struct {
	// BootstrapWithExistingCluster says which cluster the members joined, and when.
	// +optional
	BootstrapWithExistingCluster *BootstrapWithExistingClusterStatus `json:"bootstrapWithExistingCluster,omitempty"`

	// Conditions are the conditions of the cluster: Ready, AllMembersReady, AllMembersUpdated, BackupReady,
	// DataVolumesReady, ClusterIDMismatch, LastSnapshotCompactionSucceeded and BootstrappedWithExistingCluster.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`

	// CurrentReplicas is the number of pods with the current template.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// Etcd names the object that runs the members, a StatefulSet.
	// +optional
	Etcd *autoscalingv1.CrossVersionObjectReference `json:"etcd,omitempty"`

	// LabelSelector selects the pods. No longer written; see selector.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// LastErrors are the errors of the last reconciliation.
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty"`

	// LastOperation describes what etcd-druid did last.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`

	// Members describes the members one by one.
	// +optional
	Members []EtcdMemberStatus `json:"members,omitempty"`

	// ObservedGeneration is the metadata.generation that was acted on last.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// PeerURLTLSEnabled says whether all members talk TLS among themselves. Unset until it is known.
	// +optional
	PeerURLTLSEnabled *bool `json:"peerUrlTLSEnabled,omitempty"`

	// Ready says whether the cluster has a quorum and its backups work.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// ReadyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Replicas is the number of pods there shall be.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Selector selects the pods, in the form that the scale subresource needs.
	// +optional
	Selector *string `json:"selector,omitempty"`
}

// BootstrapWithExistingClusterStatus says which cluster the members joined.
type BootstrapWithExistingClusterStatus struct {
	// JoinedAt is when they did.
	JoinedAt metav1.Time `json:"joinedAt"`

	// Members are the members that cluster had.
	Members []ExistingMember `json:"members"`
}

// GarbageCollectionPolicy says which snapshots are kept.
type GarbageCollectionPolicy string

const (
	// GarbageCollectionPolicyExponential keeps fewer snapshots the older they are.
	GarbageCollectionPolicyExponential GarbageCollectionPolicy = "Exponential"
	// GarbageCollectionPolicyLimitBased keeps a fixed number of snapshots.
	GarbageCollectionPolicyLimitBased GarbageCollectionPolicy = "LimitBased"
)

// CompressionPolicy is a compression algorithm.
type CompressionPolicy string

const (
	// GzipCompression is gzip, the default.
	GzipCompression CompressionPolicy = "gzip"
	// LzwCompression is Lempel-Ziv-Welch.
	LzwCompression CompressionPolicy = "lzw"
	// ZlibCompression is zlib.
	ZlibCompression CompressionPolicy = "zlib"
)

// StorageProvider is a kind of object store.
type StorageProvider string

// FreelistType is how the database keeps track of free pages.
type FreelistType string

const (
	// FreelistTypeArray keeps a sorted array.
	FreelistTypeArray FreelistType = "array"
	// FreelistTypeMap keeps a hash map, which is faster for large databases.
	FreelistTypeMap FreelistType = "map"
)

// MetricsLevel is how detailed the metrics of etcd are.
type MetricsLevel string

const (
	// MetricsBasic is the default.
	MetricsBasic MetricsLevel = "basic"
	// MetricsExtensive adds histograms of gRPC calls.
	MetricsExtensive MetricsLevel = "extensive"
)

// CompactionMode says how old revisions are dropped.
type CompactionMode string

const (
	// CompactionModePeriodic drops them by age.
	CompactionModePeriodic CompactionMode = "periodic"
	// CompactionModeRevision drops them by number.
	CompactionModeRevision CompactionMode = "revision"
)
