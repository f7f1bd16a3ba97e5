package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MemberPlaceholder stands for the name of a member in MemberURLs.
const MemberPlaceholder = "{member}"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BackupRestoreConfiguration configures the etcd-backup-restore beside each member of an etcd cluster.
type BackupRestoreConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// DataDir is the data directory of etcd. Next to it there must be room for a second one while a backup is restored.
	DataDir string `json:"dataDir"`

	// Etcd says how etcd is started and reached.
	Etcd Etcd `json:"etcd"`

	// Cluster describes the members.
	Cluster Cluster `json:"cluster"`

	// Server configures the HTTP server.
	// +optional
	Server Server `json:"server,omitempty"`

	// Store says where snapshots go. Unset means that none are taken.
	// +optional
	Store *Store `json:"store,omitempty"`

	// Snapshots says when snapshots are taken.
	// +optional
	Snapshots Snapshots `json:"snapshots,omitempty"`

	// GarbageCollection says which snapshots are kept.
	// +optional
	GarbageCollection GarbageCollection `json:"garbageCollection,omitempty"`

	// Defragmentation says when databases are defragmented. Unset means never.
	// +optional
	Defragmentation *Defragmentation `json:"defragmentation,omitempty"`

	// LeaderElection says how a member learns that it leads.
	// +optional
	LeaderElection LeaderElection `json:"leaderElection,omitempty"`

	// Leases names the Leases with the state of members and backups for etcd-druid. Unset means that there are none, which
	// is possible for clusters of one member only: they say whether a member has data.
	// +optional
	Leases *Leases `json:"leases,omitempty"`
}

// Etcd says how etcd is started and reached.
type Etcd struct {
	// ConfigFile is where the configuration file of etcd is written before etcd starts.
	ConfigFile string `json:"configFile"`

	// Config is what goes in there beside what differs from member to member, in the form that etcd defines.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`

	// ClientTLS are the credentials for talking to etcd. Unset means that it talks plain HTTP.
	// +optional
	ClientTLS *TLS `json:"clientTLS,omitempty"`

	// RequestTimeout is how long a request to etcd may take, snapshots and defragmentations aside. Defaults to 10s.
	// +optional
	RequestTimeout *metav1.Duration `json:"requestTimeout,omitempty"`
}

// TLS are credentials in files.
type TLS struct {
	// CAFile has the CA bundle to trust.
	CAFile string `json:"caFile"`

	// CertFile has the own certificate.
	// +optional
	CertFile string `json:"certFile,omitempty"`

	// KeyFile has its key.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
}

// Cluster describes the members.
type Cluster struct {
	// Token keeps clusters from taking each other's members for their own.
	Token string `json:"token"`

	// BootstrapMember is the name of the member that forms a new cluster; the others join it. It also is the one that
	// restores a backup if no member has data.
	BootstrapMember string `json:"bootstrapMember"`

	// ClientEndpoint is the URL of whichever member is ready, for a member that joins.
	ClientEndpoint string `json:"clientEndpoint"`

	// PeerURL is the URL of a member for its peers, with {member} for its name.
	PeerURL string `json:"peerURL"`

	// AdditionalPeerURLs are further URLs of members for their peers, by the name of the member.
	// +optional
	AdditionalPeerURLs map[string][]string `json:"additionalPeerURLs,omitempty"`

	// ClientURL is the URL of a member for clients, with {member} for its name.
	ClientURL string `json:"clientURL"`

	// BackupURL is the URL of the etcd-backup-restore beside a member, with {member} for its name.
	BackupURL string `json:"backupURL"`
}

// Server configures the HTTP server.
type Server struct {
	// BindAddress is the address it listens on. Defaults to all.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// Port is the port it listens on. Defaults to 8080.
	// +optional
	Port int32 `json:"port,omitempty"`

	// TLS has its certificate, and the CA bundle for clients that may request snapshots. Unset means plain
	// HTTP for any client.
	// +optional
	TLS *TLS `json:"tls,omitempty"`

	// ClientTLS has the certificate for asking the etcd-backup-restore of another member.
	// +optional
	ClientTLS *TLS `json:"clientTLS,omitempty"`

	// EnableProfiling makes it serve Go profiles.
	// +optional
	EnableProfiling bool `json:"enableProfiling,omitempty"`
}

// StoreProviders are the kinds of object stores.
var StoreProviders = []string{"ABS", "ECS", "GCS", "Local", "OCS", "OSS", "S3", "Swift"}

// Store says where snapshots are.
type Store struct {
	// Provider is the kind of object store: ABS, ECS, GCS, Local, OCS, OSS, S3 or Swift.
	Provider string `json:"provider"`

	// Container is the name of the bucket; for Local, the path of a directory.
	Container string `json:"container"`

	// Prefix is the path in the bucket below which the snapshots are.
	Prefix string `json:"prefix"`

	// CredentialsDir is a directory with the keys of the Secret with the credentials as files.
	// +optional
	CredentialsDir string `json:"credentialsDir,omitempty"`

	// Endpoint is the URL of the object store, if it is not the usual one of the provider.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// Snapshots says when snapshots are taken.
type Snapshots struct {
	// FullSchedule is when full snapshots are taken, as a cron expression in UTC. Defaults to "0 0 * * *", once a day.
	// +optional
	FullSchedule string `json:"fullSchedule,omitempty"`

	// FullTimeout is how long a full snapshot may take. Defaults to 15m.
	// +optional
	FullTimeout *metav1.Duration `json:"fullTimeout,omitempty"`

	// DeltaPeriod is the time between two delta snapshots. Under 1s there are none. Defaults to 20s.
	// +optional
	DeltaPeriod *metav1.Duration `json:"deltaPeriod,omitempty"`

	// DeltaMemoryLimit is the number of bytes of changes from which on a delta snapshot is taken early. Defaults to 10 MiB.
	// +optional
	DeltaMemoryLimit int64 `json:"deltaMemoryLimit,omitempty"`

	// Compression is gzip, lzw, zlib or zstd. Unset means none.
	// +optional
	Compression string `json:"compression,omitempty"`
}

// GarbageCollection says which snapshots are kept.
type GarbageCollection struct {
	// Period is the time between two clean-ups. Defaults to 12h.
	// +optional
	Period *metav1.Duration `json:"period,omitempty"`

	// Policy is Exponential or LimitBased. Defaults to Exponential.
	// +optional
	Policy string `json:"policy,omitempty"`

	// MaxFull is how many full snapshots LimitBased keeps. Defaults to 7.
	// +optional
	MaxFull int32 `json:"maxFull,omitempty"`

	// DeltaRetention is how long delta snapshots are kept after a full snapshot made them superfluous.
	// +optional
	DeltaRetention *metav1.Duration `json:"deltaRetention,omitempty"`
}

// Defragmentation says when databases are defragmented.
type Defragmentation struct {
	// Schedule is a cron expression in UTC.
	Schedule string `json:"schedule"`

	// Timeout is how long it may take for one member. Defaults to 15m.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// LeaderElection says how a member learns that it leads.
type LeaderElection struct {
	// Period is how often the etcd of the member is checked. Defaults to 5s.
	// +optional
	Period *metav1.Duration `json:"period,omitempty"`

	// Timeout is how long the answer may take. Defaults to 5s.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Leases names the Leases with the state of members and backups for etcd-druid.
type Leases struct {
	// Kubeconfig is the path of a kubeconfig. Unset means the credentials of the pod.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`

	// Namespace is the namespace of all of them. Members' Leases have the name of the member.
	Namespace string `json:"namespace"`

	// MemberSelector selects the Leases of the members by their labels.
	MemberSelector map[string]string `json:"memberSelector"`

	// HeartbeatPeriod is how often the Lease of a member is renewed. Defaults to 10s.
	// +optional
	HeartbeatPeriod *metav1.Duration `json:"heartbeatPeriod,omitempty"`

	// FullSnapshot is the name of the Lease that has the revision of the last full snapshot as its holder.
	// +optional
	FullSnapshot string `json:"fullSnapshot,omitempty"`

	// DeltaSnapshot is the same for delta snapshots.
	// +optional
	DeltaSnapshot string `json:"deltaSnapshot,omitempty"`
}
