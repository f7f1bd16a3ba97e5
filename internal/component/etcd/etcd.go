// Package etcd deploys the etcd clusters of a control plane as Etcd resources for etcd-druid: one for events, and one for everything else, which
// is backed up.
package etcd

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/secrets"
)

// Role is the role of an etcd cluster.
type Role string

const (
	// Main stores everything but events.
	Main Role = "main"
	// Events stores events.
	Events Role = "events"
)

const (
	// PortClient is the port for clients.
	PortClient int32 = 2379
	// PortBackup is the port of etcd-backup-restore, at the same Service.
	PortBackup int32 = 8080
	portPeer   int32 = 2380
	// portMetrics is the port of health and metrics, without TLS.
	portMetrics int32 = 9095
)

const (
	// labelRole and application are in the labels that select the pods of one role.
	labelRole, application = "role", "etcd-statefulset"
)

// defaultStorage is the size of a volume.
var defaultStorage = resource.MustParse("10Gi")

// Values are what an etcd cluster is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Of is the kind of cluster that it is for.
	Of instance.Kind
	// Role is its role.
	Role Role
	// Replicas is the number of members: 1, 3, or 0 while the cluster is hibernated.
	Replicas int32
	// Spread are the topology keys over which members have to be spread: corev1.LabelHostname, and corev1.LabelTopologyZone with failure tolerance type zone.
	Spread []string
	// TrafficDistribution is that of the Service for clients. Nil means none.
	TrafficDistribution *string
	// StorageClass is that of the volumes, as the seed sets it. Empty means the default.
	StorageClass string
	// MinimumStorage is the smallest volume that the seed has, which is larger than the default or without effect. Nil means none.
	MinimumStorage *resource.Quantity
	// Storage is the size of the volumes. Nil means the default.
	Storage *resource.Quantity
	// Existing is the Etcd as it is. Its volumes are kept, as most of what describes them is immutable. Nil means that there is none.
	Existing *druidv1alpha1.Etcd
	// Secrets are the Secrets with its CAs and certificates.
	Secrets Secrets
	// MinAllowed are the minimum requests of etcd, from the Shoot. It may be nil.
	MinAllowed corev1.ResourceList
	// Autoscaling is vertical pod autoscaling. Nil means none.
	Autoscaling *workload.Autoscaling
	// DefragmentationSchedule is when the database is defragmented, in the maintenance time window. Empty means never.
	DefragmentationSchedule string
	// Backup is the configuration of backups, only for the role Main. Nil means none.
	Backup *Backup
}

// Secrets are names of Secrets in the namespace.
type Secrets struct {
	// CA has the CA bundle for clients and servers, and PeerCA that for members, in the key bundle.crt.
	CA, PeerCA string
	// Server, Client and PeerServer have tls.crt and tls.key. The first is valid for ServerNames, the last for PeerNames.
	Server, Client, PeerServer string
}

// Backup is the configuration of backups.
type Backup struct {
	// Provider is the kind of object store: the type of the BackupEntry.
	Provider string
	// Container is the bucket, Prefix the path in it: the technical ID and the UID of the shoot, with two dashes between them.
	Container, Prefix string
	// SecretName is the Secret with the credentials in the namespace.
	SecretName string
	// FullSnapshotSchedule is when full snapshots are taken, as a cron expression.
	FullSnapshotSchedule string
	// DeltaSnapshotRetentionPeriod is how long delta snapshots are kept. It may be nil.
	DeltaSnapshotRetentionPeriod *metav1.Duration
	// ReelectionPeriod is how often sidecars check which of them makes the backups, and ConnectionTimeout how long connecting to etcd may take for it.
	// Five seconds if nil.
	ReelectionPeriod, ConnectionTimeout *metav1.Duration
}

// Name returns the name of the Etcd of a role.
func Name(of instance.Kind, role Role) string { return of.Name("etcd-" + string(role)) }

// ServiceName returns the name of the Service that clients use.
func ServiceName(of instance.Kind, role Role) string { return Name(of, role) + "-client" }

// URL returns the URL that clients in the same namespace use.
func URL(of instance.Kind, role Role) string {
	return fmt.Sprintf("https://%s:%d", ServiceName(of, role), PortClient)
}

// ServerNames are the names that the certificate of the servers has to be valid for. One certificate is for both roles.
func ServerNames(of instance.Kind, namespace string) []string {
	names := []string{"localhost"}
	for _, role := range []Role{Main, Events} {
		for _, service := range []string{ServiceName(of, role), Name(of, role) + "-local"} {
			names = append(names, workload.DNSNames(service, namespace)...)
		}
		names = append(names, members(of, role, namespace)...)
	}
	return names
}

// PeerNames are the names that the certificate for members has to be valid for.
func PeerNames(of instance.Kind, namespace string) []string {
	names := []string{"localhost"}
	for _, role := range []Role{Main, Events} {
		names = append(names, members(of, role, namespace)...)
	}
	return names
}

// members are the names of all members of a role: each has a name below that of the Service.
func members(of instance.Kind, role Role, namespace string) []string {
	peer := Name(of, role) + "-peer"
	names := workload.DNSNames(peer, namespace)
	for _, domain := range workload.DNSNames(peer, namespace) {
		names = append(names, "*."+domain)
	}
	return names
}

// PolicyLabel is the label of pods that connect to the etcd of a role.
func PolicyLabel(of instance.Kind, role Role) string {
	return workload.PolicyLabel(ServiceName(of, role), PortClient)
}

// Objects renders the Etcd, and its autoscaler.
func Objects(v Values) []client.Object {
	etcd := v.etcd()
	if v.Autoscaling == nil {
		return []client.Object{etcd}
	}
	// The containers of the pods that etcd-druid creates.
	containers := []corev1.Container{
		{Name: "etcd", Resources: *etcd.Spec.Etcd.Resources}, {Name: "backup-restore", Resources: *etcd.Spec.Backup.Resources},
	}
	return []client.Object{
		etcd, workload.Autoscaler(etcd.ObjectMeta, druidv1alpha1.SchemeGroupVersion.WithKind("Etcd"), containers, *v.Autoscaling),
	}
}

func (v Values) etcd() *druidv1alpha1.Etcd {
	name, main := Name(v.Of, v.Role), v.Role == Main
	labels := map[string]string{
		constants.GardenRole: constants.GardenRoleControlPlane, constants.App: application, labelRole: string(v.Role),
	}
	reference := func(name string) corev1.SecretReference {
		return corev1.SecretReference{Namespace: v.Namespace, Name: name}
	}
	caSecret := func(name string) druidv1alpha1.SecretReference {
		return druidv1alpha1.SecretReference{SecretReference: reference(name), DataKey: new(secrets.DataKeyCertificateBundle)}
	}
	tls := &druidv1alpha1.TLSConfig{
		TLSCASecretRef: caSecret(v.Secrets.CA), ServerTLSSecretRef: reference(v.Secrets.Server),
		ClientTLSSecretRef: new(reference(v.Secrets.Client)),
	}
	etcd := &druidv1alpha1.Etcd{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: name, Labels: labels,
			Annotations: map[string]string{
				// Nothing is lost when a pod is evicted that is not ready.
				druidv1alpha1.AllowUnhealthyPodEviction: "",
			},
		},
		Spec: druidv1alpha1.EtcdSpec{
			Replicas: v.Replicas, PriorityClassName: new(v.Of.PriorityClass(constants.PriorityClassNameShootControlPlane500)),
			Labels: workload.Merge(labels, v.policies()), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Etcd: druidv1alpha1.EtcdConfig{
				ClientPort: new(PortClient), ServerPort: new(portPeer), WrapperPort: new(portMetrics),
				Metrics: new(druidv1alpha1.MetricsBasic), Quota: new(resource.MustParse("8Gi")),
				ClientURLTLS: tls.DeepCopy(),
				PeerURLTLS: &druidv1alpha1.PeerTLSConfig{TLSConfig: druidv1alpha1.TLSConfig{
					TLSCASecretRef: caSecret(v.Secrets.PeerCA), ServerTLSSecretRef: reference(v.Secrets.PeerServer),
				}},
				Resources: new(v.resources("20m", "60Mi", v.MinAllowed)),
				ClientService: &druidv1alpha1.ClientService{
					Labels:      labels,
					Annotations: workload.Scraped(PortClient, PortBackup, portMetrics), TrafficDistribution: v.TrafficDistribution,
				},
			},
			Backup: druidv1alpha1.BackupSpec{
				Port: new(PortBackup), TLS: tls, Resources: new(v.resources("5m", "30Mi", nil)),
			},
			SharedConfig: &druidv1alpha1.SharedConfig{
				AutoCompactionMode: new(druidv1alpha1.CompactionModePeriodic), AutoCompactionRetention: new("30m"),
			},
		},
	}
	if main && v.Of == instance.Shoot { // the gardenlet requests snapshots
		etcd.Spec.Etcd.ClientService.Annotations = workload.Merge(etcd.Spec.Etcd.ClientService.Annotations, map[string]string{
			resourcesv1alpha1.NetworkingNamespaceSelectors:             `[{"matchLabels":{"` + corev1.LabelMetadataName + `":"` + constants.GardenNamespace + `"}}]`,
			resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias: workload.AllShoots,
		})
	}
	v.volumes(&etcd.Spec)
	if v.DefragmentationSchedule != "" {
		etcd.Spec.Etcd.DefragmentationSchedule = &v.DefragmentationSchedule
	}
	if main && v.Backup != nil {
		v.backup(&etcd.Spec.Backup)
	}
	if v.Replicas > 1 {
		etcd.Spec.SchedulingConstraints = &druidv1alpha1.SchedulingConstraints{}
		for _, key := range v.Spread {
			etcd.Spec.SchedulingConstraints.TopologySpreadConstraints = append(etcd.Spec.SchedulingConstraints.TopologySpreadConstraints,
				corev1.TopologySpreadConstraint{
					MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
				})
		}
	}
	return etcd
}

// volumes sets what describes the volumes. A change in the seed is for new Etcds: the API server rejects another StorageClass, and volumes
// of many StorageClasses cannot grow, so that no shoot of the seed could be reconciled any more.
func (v Values) volumes(spec *druidv1alpha1.EtcdSpec) {
	if existing := v.Existing; existing != nil {
		spec.StorageClass, spec.StorageCapacity = existing.Spec.StorageClass, existing.Spec.StorageCapacity
		spec.VolumeClaimTemplate = existing.Spec.VolumeClaimTemplate
		return
	}
	storage := defaultStorage
	if v.Storage != nil {
		storage = *v.Storage
	}
	spec.StorageCapacity = new(storage.DeepCopy())
	if minimum := v.MinimumStorage; minimum != nil && minimum.Cmp(storage) > 0 {
		spec.StorageCapacity = new(minimum.DeepCopy())
	}
	if v.StorageClass != "" {
		spec.StorageClass = &v.StorageClass
	}
	// The name says what a volume is for where only volumes are listed.
	spec.VolumeClaimTemplate = new(Name(v.Of, v.Role))
	if v.Of == instance.VirtualGarden && v.Role == Main { // as operators know it: a volume that exists is found by its name
		spec.VolumeClaimTemplate = new("main-" + v.Of.Name("etcd"))
	}
}

// policies are labels that allow the pods to connect to DNS, the seed's API server for Leases, object stores, and each other.
func (v Values) policies() map[string]string {
	labels := map[string]string{
		constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		constants.NetworkPolicyToPublicNetworks: constants.NetworkPolicyAllowed, constants.NetworkPolicyToPrivateNetworks: constants.NetworkPolicyAllowed,
	}
	for _, port := range []int32{PortClient, portPeer, PortBackup} {
		labels[workload.PolicyLabel(ServiceName(v.Of, v.Role), port)] = constants.NetworkPolicyAllowed
	}
	labels[workload.PolicyLabel(Name(v.Of, v.Role)+"-peer", portPeer)] = constants.NetworkPolicyAllowed
	return labels
}

// resources requests little, as most clusters are small. Vertical pod autoscalers increase it.
func (v Values) resources(cpu, memory string, atLeast corev1.ResourceList) corev1.ResourceRequirements {
	requests := workload.Requests(cpu, memory)
	for name, quantity := range atLeast {
		requests.Requests[name] = quantity
	}
	return requests
}

func (v Values) backup(spec *druidv1alpha1.BackupSpec) {
	spec.Store = &druidv1alpha1.StoreSpec{
		Provider: new(druidv1alpha1.StorageProvider(v.Backup.Provider)), Container: &v.Backup.Container,
		Prefix:    v.Backup.Prefix + "/etcd-" + string(v.Role),
		SecretRef: &corev1.SecretReference{Namespace: v.Namespace, Name: v.Backup.SecretName},
	}
	spec.FullSnapshotSchedule = &v.Backup.FullSnapshotSchedule
	spec.DeltaSnapshotPeriod = &metav1.Duration{Duration: 5 * time.Minute}
	spec.DeltaSnapshotMemoryLimit = new(resource.MustParse("100Mi"))
	spec.DeltaSnapshotRetentionPeriod = v.Backup.DeltaSnapshotRetentionPeriod
	spec.GarbageCollectionPolicy = new(druidv1alpha1.GarbageCollectionPolicyExponential)
	spec.GarbageCollectionPeriod = &metav1.Duration{Duration: 12 * time.Hour}
	spec.Compression = &druidv1alpha1.CompressionSpec{Enabled: new(true), Policy: new(druidv1alpha1.GzipCompression)}
	moment := metav1.Duration{Duration: 5 * time.Second}
	spec.LeaderElection = &druidv1alpha1.LeaderElectionSpec{
		ReelectionPeriod: cmp.Or(v.Backup.ReelectionPeriod, &moment), EtcdConnectionTimeout: cmp.Or(v.Backup.ConnectionTimeout, &moment),
	}
}
