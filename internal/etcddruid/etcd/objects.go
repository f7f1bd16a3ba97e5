package etcd

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

// renderValues are what the objects of an Etcd are rendered from.
type renderValues struct {
	// Etcd is the Etcd, of which only metadata and spec are used.
	Etcd *druidv1alpha1.Etcd
	// Replicas is the current number of members, see replicas.
	Replicas int32
	// EtcdImage and BackupRestoreImage are used if the spec has no others.
	EtcdImage, BackupRestoreImage string
	// HostPath is the directory on the node with the buckets of the provider Local.
	HostPath string
}

// Values of the label LabelComponentKey.
const (
	componentStatefulSet = "etcd-statefulset"
	componentMemberLease = "etcd-member-lease"
)

const (
	dataMount    = "/var/etcd/data"
	configMount  = "/var/etcd/config"
	sharedMount  = "/var/etcd/run"
	storeMount   = "/var/etcd/backups"
	secretsMount = "/var/etcd/ssl"
	storeSecrets = "/var/etcd/store-credentials"

	// dataDir is the data directory of etcd. Existing volumes have this name.
	dataDir = dataMount + "/new.etcd"
	// configFile is the key of the ConfigMap.
	configFile = "backup-restore.yaml"

	// nonRoot is the user and the group of the containers.
	nonRoot = 65532

	defaultClientPort  = 2379
	defaultPeerPort    = 2380
	defaultBackupPort  = 8080
	defaultMetricsPort = 9095
)

var (
	defaultQuota    = resource.MustParse("8Gi")
	defaultCapacity = resource.MustParse("16Gi")
)

// renderer has the values that several objects need.
type renderer struct {
	renderValues
	name, namespace                               string
	clientPort, peerPort, backupPort, metricsPort int32
	store                                         *backuprestoreconfigv1alpha1.Store // nil if there are no backups
	storeVolume                                   *corev1.Volume                     // nil if it needs none
	storeMount                                    *corev1.VolumeMount
	volumes                                       []corev1.Volume
	etcdMounts, backupMounts                      []corev1.VolumeMount
}

// objects renders the objects of an Etcd, in the order in which they are applied.
func objects(v renderValues) ([]client.Object, error) {
	spec := &v.Etcd.Spec
	r := &renderer{
		renderValues: v, name: v.Etcd.Name, namespace: v.Etcd.Namespace,
		clientPort: ptr.Deref(spec.Etcd.ClientPort, defaultClientPort), peerPort: ptr.Deref(spec.Etcd.ServerPort, defaultPeerPort),
		backupPort: ptr.Deref(spec.Backup.Port, defaultBackupPort), metricsPort: ptr.Deref(spec.Etcd.WrapperPort, defaultMetricsPort),
	}
	var err error
	if store := spec.Backup.Store; store != nil {
		if r.store, r.storeVolume, r.storeMount, err = StoreAccess("store", "", store, v.HostPath); err != nil {
			return nil, fmt.Errorf("spec.backup.store: %w", err)
		}
	}
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: r.meta(r.name+"-config", "etcd-config"), Data: map[string]string{configFile: string(config)}}
	out := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: r.meta(r.name, "druid-service-account"), AutomountServiceAccountToken: new(false)},
		r.role(), r.roleBinding(), configMap, r.clientService(), r.peerService(), r.disruptionBudget(),
	}
	out = append(out, r.leases()...)
	out = append(out, r.statefulSet(workload.Checksum(string(config))))
	owner := metav1.OwnerReference{
		APIVersion: druidv1alpha1.SchemeGroupVersion.String(), Kind: "Etcd", Name: r.name, UID: v.Etcd.UID, Controller: new(true), BlockOwnerDeletion: new(true),
	}
	for _, object := range out {
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
	return out, nil
}

// labels select the objects of an Etcd.
func labels(etcdName string) map[string]string {
	return map[string]string{druidv1alpha1.LabelManagedByKey: druidv1alpha1.LabelManagedByValue, druidv1alpha1.LabelPartOfKey: etcdName}
}

// podLabels select the pods of an Etcd.
func podLabels(etcdName string) map[string]string {
	out := labels(etcdName)
	out[druidv1alpha1.LabelComponentKey] = componentStatefulSet
	return out
}

// memberLeaseLabels select the Leases of its members.
func memberLeaseLabels(etcdName string) map[string]string {
	out := labels(etcdName)
	out[druidv1alpha1.LabelComponentKey] = componentMemberLease
	return out
}

func (r *renderer) meta(name, component string) metav1.ObjectMeta {
	l := labels(r.name)
	l[druidv1alpha1.LabelAppNameKey], l[druidv1alpha1.LabelComponentKey] = name, component
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: l}
}

// memberName is the name of a member, of its pod and of its Lease.
func memberName(etcdName string, ordinal int32) string {
	return fmt.Sprintf("%s-%d", etcdName, ordinal)
}

func fullSnapshotLease(etcdName string) string  { return etcdName + "-full-snap" }
func deltaSnapshotLease(etcdName string) string { return etcdName + "-delta-snap" }

func (r *renderer) leases() []client.Object {
	var out []client.Object
	for i := range max(r.Replicas, r.Etcd.Spec.Replicas) {
		out = append(out, &coordinationv1.Lease{ObjectMeta: r.meta(memberName(r.name, i), componentMemberLease)})
	}
	if r.Etcd.Spec.Backup.Store != nil {
		for _, name := range []string{fullSnapshotLease(r.name), deltaSnapshotLease(r.name)} {
			out = append(out, &coordinationv1.Lease{ObjectMeta: r.meta(name, druidv1alpha1.ComponentSnapshotLease)})
		}
	}
	return out
}

func roleName(etcdName string) string { return "druid.gardener.cloud:etcd:" + etcdName }

func (r *renderer) role() client.Object {
	meta := r.meta(roleName(r.name), "druid-role")
	meta.Labels[druidv1alpha1.LabelAppNameKey] = r.name // a label cannot have colons
	return &rbacv1.Role{
		ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "patch"},
		}},
	}
}

func (r *renderer) roleBinding() client.Object {
	meta := r.meta(roleName(r.name), "druid-role-binding")
	meta.Labels[druidv1alpha1.LabelAppNameKey] = r.name
	return &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName(r.name)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.namespace, Name: r.name}},
	}
}

func clientServiceName(etcdName string) string { return etcdName + "-client" }
func peerServiceName(etcdName string) string   { return etcdName + "-peer" }

func (r *renderer) clientService() client.Object {
	service := &corev1.Service{
		ObjectMeta: r.meta(clientServiceName(r.name), "etcd-client-service"),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone, Selector: podLabels(r.name),
			Ports: []corev1.ServicePort{servicePort("client", r.clientPort), servicePort("server", r.peerPort), servicePort("backuprestore", r.backupPort)},
		},
	}
	if config := r.Etcd.Spec.Etcd.ClientService; config != nil {
		maps.Copy(service.Labels, config.Labels)
		service.Annotations = maps.Clone(config.Annotations)
		service.Spec.TrafficDistribution = config.TrafficDistribution
	}
	return service
}

func (r *renderer) peerService() client.Object {
	return &corev1.Service{
		ObjectMeta: r.meta(peerServiceName(r.name), "etcd-peer-service"),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, SessionAffinity: corev1.ServiceAffinityNone, Selector: podLabels(r.name),
			// Members must find each other before they are ready, as they only become ready together.
			PublishNotReadyAddresses: true,
			Ports:                    []corev1.ServicePort{servicePort("peer", r.peerPort)},
		},
	}
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}
}

func (r *renderer) disruptionBudget() client.Object {
	// The eviction of a single member cannot be prevented; of three members, one may be evicted.
	quorum := intstr.FromInt32(0)
	if r.Replicas > 1 {
		quorum = intstr.FromInt32(r.Replicas/2 + 1)
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: r.meta(r.name, "etcd-pdb"),
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &quorum, Selector: &metav1.LabelSelector{MatchLabels: podLabels(r.name)}},
	}
	if _, ok := r.Etcd.Annotations[druidv1alpha1.AllowUnhealthyPodEviction]; ok {
		budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	return budget
}

// memberURL is the URL of a member, with a placeholder for its name.
func (r *renderer) memberURL(tls bool, port int32) string {
	return fmt.Sprintf("%s://%s.%s.%s.svc:%d", scheme(tls), backuprestoreconfigv1alpha1.MemberPlaceholder, peerServiceName(r.name), r.namespace, port)
}

func scheme(tls bool) string {
	if tls {
		return "https"
	}
	return "http"
}

// config renders the configuration of etcd-backup-restore, with that of etcd in it.
func (r *renderer) config() ([]byte, error) {
	spec := &r.Etcd.Spec
	etcdConfig, err := json.Marshal(r.etcdConfig())
	if err != nil {
		return nil, err
	}
	config := &backuprestoreconfigv1alpha1.BackupRestoreConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: backuprestoreconfigv1alpha1.SchemeGroupVersion.String(), Kind: "BackupRestoreConfiguration"},
		DataDir:  dataDir,
		Etcd: backuprestoreconfigv1alpha1.Etcd{
			ConfigFile: sharedMount + "/etcd.yaml", Config: &runtime.RawExtension{Raw: etcdConfig}, ClientTLS: r.clientTLS(),
		},
		Cluster: backuprestoreconfigv1alpha1.Cluster{
			Token: "etcd-cluster", BootstrapMember: memberName(r.name, 0),
			ClientEndpoint: fmt.Sprintf("%s://%s.%s.svc:%d", scheme(spec.Etcd.ClientURLTLS != nil), clientServiceName(r.name), r.namespace, r.clientPort),
			PeerURL:        r.memberURL(spec.Etcd.PeerURLTLS != nil, r.peerPort),
			ClientURL:      r.memberURL(spec.Etcd.ClientURLTLS != nil, r.clientPort),
			BackupURL:      r.memberURL(spec.Backup.TLS != nil, r.backupPort),
		},
		Server: backuprestoreconfigv1alpha1.Server{Port: r.backupPort, EnableProfiling: ptr.Deref(spec.Backup.EnableProfiling, false)},
		Snapshots: backuprestoreconfigv1alpha1.Snapshots{
			FullSchedule: ptr.Deref(spec.Backup.FullSnapshotSchedule, ""), FullTimeout: spec.Backup.EtcdSnapshotTimeout, DeltaPeriod: spec.Backup.DeltaSnapshotPeriod,
		},
		GarbageCollection: backuprestoreconfigv1alpha1.GarbageCollection{
			Period: spec.Backup.GarbageCollectionPeriod, Policy: string(ptr.Deref(spec.Backup.GarbageCollectionPolicy, "")),
			MaxFull: ptr.Deref(spec.Backup.MaxBackupsLimitBasedGC, 0), DeltaRetention: spec.Backup.DeltaSnapshotRetentionPeriod,
		},
		Leases: &backuprestoreconfigv1alpha1.Leases{
			Namespace: r.namespace, MemberSelector: memberLeaseLabels(r.name),
			FullSnapshot: fullSnapshotLease(r.name), DeltaSnapshot: deltaSnapshotLease(r.name),
		},
	}
	for _, member := range spec.Etcd.AdditionalAdvertisePeerURLs {
		if config.Cluster.AdditionalPeerURLs == nil {
			config.Cluster.AdditionalPeerURLs = map[string][]string{}
		}
		config.Cluster.AdditionalPeerURLs[member.MemberName] = member.URLs
	}
	if limit := spec.Backup.DeltaSnapshotMemoryLimit; limit != nil {
		config.Snapshots.DeltaMemoryLimit = limit.Value()
	}
	if compression := spec.Backup.Compression; compression != nil && ptr.Deref(compression.Enabled, false) {
		config.Snapshots.Compression = string(ptr.Deref(compression.Policy, druidv1alpha1.GzipCompression))
	}
	if election := spec.Backup.LeaderElection; election != nil {
		config.LeaderElection.Period, config.LeaderElection.Timeout = election.ReelectionPeriod, election.EtcdConnectionTimeout
	}
	if schedule := spec.Etcd.DefragmentationSchedule; schedule != nil {
		config.Defragmentation = &backuprestoreconfigv1alpha1.Defragmentation{Schedule: *schedule, Timeout: spec.Etcd.EtcdDefragTimeout}
	}
	if tls := spec.Backup.TLS; tls != nil {
		config.Server.TLS = tlsFiles("backup", "server", tls.TLSCASecretRef)
		config.Server.ClientTLS = tlsFiles("backup", "", tls.TLSCASecretRef)
		if tls.ClientTLSSecretRef != nil {
			config.Server.ClientTLS = tlsFiles("backup", "client", tls.TLSCASecretRef)
		}
	}
	config.Store = r.store
	return yaml.Marshal(config)
}

func (r *renderer) clientTLS() *backuprestoreconfigv1alpha1.TLS {
	tls := r.Etcd.Spec.Etcd.ClientURLTLS
	switch {
	case tls == nil:
		return nil
	case tls.ClientTLSSecretRef == nil:
		return tlsFiles("etcd", "", tls.TLSCASecretRef)
	}
	return tlsFiles("etcd", "client", tls.TLSCASecretRef)
}

// tlsFiles are the files of a certificate for a purpose, where mounts puts them.
func tlsFiles(purpose, side string, ca druidv1alpha1.SecretReference) *backuprestoreconfigv1alpha1.TLS {
	out := &backuprestoreconfigv1alpha1.TLS{CAFile: path.Join(secretsMount, purpose, "ca", ptr.Deref(ca.DataKey, "ca.crt"))}
	if side != "" {
		out.CertFile, out.KeyFile = path.Join(secretsMount, purpose, side, corev1.TLSCertKey), path.Join(secretsMount, purpose, side, corev1.TLSPrivateKeyKey)
	}
	return out
}

// etcdConfig is the part of etcd's configuration that all members share.
func (r *renderer) etcdConfig() map[string]any {
	spec := &r.Etcd.Spec.Etcd
	listen := func(tls bool, port int32) string { return fmt.Sprintf("%s://0.0.0.0:%d", scheme(tls), port) }
	config := map[string]any{
		"listen-client-urls": listen(spec.ClientURLTLS != nil, r.clientPort),
		"listen-peer-urls":   listen(spec.PeerURLTLS != nil, r.peerPort),
		// For probes and metrics, as kubelets have no client certificate.
		"listen-metrics-urls":   listen(false, r.metricsPort),
		"metrics":               string(ptr.Deref(spec.Metrics, druidv1alpha1.MetricsBasic)),
		"quota-backend-bytes":   new(ptr.Deref(spec.Quota, defaultQuota)).Value(),
		"strict-reconfig-check": true,
		"enable-grpc-gateway":   ptr.Deref(spec.EnableGRPCGateway, false),
		// A corrupt log is found before the member serves requests.
		"feature-gates":             "InitialCorruptCheck=true",
		"auto-compaction-mode":      string(druidv1alpha1.CompactionModePeriodic),
		"auto-compaction-retention": "30m",
	}
	if count := spec.SnapshotCount; count != nil {
		config["snapshot-count"] = *count
	}
	if heartbeat := spec.HeartbeatDuration; heartbeat != nil {
		// etcd recommends an election timeout of ten heartbeats.
		config["heartbeat-interval"] = heartbeat.Milliseconds()
		config["election-timeout"] = 10 * heartbeat.Milliseconds()
	}
	if freelist := spec.BackendBboltFreelistType; freelist != nil {
		config["backend-bbolt-freelist-type"] = string(*freelist)
	}
	if shared := r.Etcd.Spec.SharedConfig; shared != nil {
		if shared.AutoCompactionMode != nil {
			config["auto-compaction-mode"] = string(*shared.AutoCompactionMode)
		}
		if shared.AutoCompactionRetention != nil {
			config["auto-compaction-retention"] = *shared.AutoCompactionRetention
		}
	}
	security := func(purpose string, ca druidv1alpha1.SecretReference) map[string]any {
		files := tlsFiles(purpose, "server", ca)
		return map[string]any{"cert-file": files.CertFile, "key-file": files.KeyFile, "trusted-ca-file": files.CAFile, "client-cert-auth": true}
	}
	if tls := spec.ClientURLTLS; tls != nil {
		config["client-transport-security"] = security("etcd", tls.TLSCASecretRef)
	}
	if tls := spec.PeerURLTLS; tls != nil {
		peer := security("peer", tls.TLSCASecretRef)
		if ptr.Deref(tls.SkipClientSANVerification, false) {
			peer["skip-client-san-verification"] = true
		}
		config["peer-transport-security"] = peer
	}
	return config
}

func (r *renderer) statefulSet(configSum string) client.Object {
	spec := &r.Etcd.Spec
	claim := ptr.Deref(spec.VolumeClaimTemplate, r.name)
	r.mounts(claim)
	meta := metav1.ObjectMeta{Labels: podLabels(r.name), Annotations: maps.Clone(spec.Annotations)}
	for key, value := range spec.Labels {
		if _, taken := meta.Labels[key]; !taken {
			meta.Labels[key] = value
		}
	}
	meta.Labels[druidv1alpha1.LabelAppNameKey] = r.name
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations["checksum/etcd-config"] = configSum
	pod := corev1.PodSpec{
		ServiceAccountName: r.name, PriorityClassName: ptr.Deref(spec.PriorityClassName, ""),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(nonRoot)), RunAsGroup: new(int64(nonRoot)), FSGroup: new(int64(nonRoot)),
			// Changing the owner of every file at each start would take long on large volumes.
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
		},
		InitContainers: []corev1.Container{r.initialize()},
		Containers:     []corev1.Container{r.etcd(), r.backupRestore()},
		Volumes:        r.volumes,
	}
	if ptr.Deref(spec.RunAsRoot, false) {
		pod.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	}
	if constraints := spec.SchedulingConstraints; constraints != nil {
		pod.Affinity, pod.TopologySpreadConstraints = constraints.Affinity, constraints.TopologySpreadConstraints
	}
	return &appsv1.StatefulSet{
		ObjectMeta: r.meta(r.name, componentStatefulSet),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &r.Replicas, ServiceName: peerServiceName(r.name), Selector: &metav1.LabelSelector{MatchLabels: podLabels(r.name)},
			// After all members were stopped, the first one does not become ready without the others.
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Template:            corev1.PodTemplateSpec{ObjectMeta: meta, Spec: pod},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: claim, Labels: podLabels(r.name)},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: nonEmpty(spec.StorageClass),
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: ptr.Deref(spec.StorageCapacity, defaultCapacity)},
					},
				},
			}},
		},
	}
}

func nonEmpty(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	return s
}

// mounts adds volumes and their mounts.
func (r *renderer) mounts(claim string) {
	spec := &r.Etcd.Spec
	both := func(m corev1.VolumeMount) {
		r.etcdMounts, r.backupMounts = append(r.etcdMounts, m), append(r.backupMounts, m)
	}
	both(corev1.VolumeMount{Name: claim, MountPath: dataMount})
	r.volumes = append(r.volumes, corev1.Volume{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	both(corev1.VolumeMount{Name: "run", MountPath: sharedMount})
	r.volumes = append(r.volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: r.name + "-config"}},
	}})
	r.backupMounts = append(r.backupMounts, corev1.VolumeMount{Name: "config", MountPath: configMount, ReadOnly: true})
	r.volumes = append(r.volumes, tokenVolume())
	r.backupMounts = append(r.backupMounts, corev1.VolumeMount{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true})

	secret := func(name, mountPath, secretName string) corev1.VolumeMount {
		r.volumes = append(r.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secretName}}})
		return corev1.VolumeMount{Name: name, MountPath: mountPath, ReadOnly: true}
	}
	if tls := spec.Etcd.ClientURLTLS; tls != nil {
		both(secret("etcd-ca", secretsMount+"/etcd/ca", tls.TLSCASecretRef.Name))
		both(secret("etcd-server", secretsMount+"/etcd/server", tls.ServerTLSSecretRef.Name))
		if tls.ClientTLSSecretRef != nil {
			r.backupMounts = append(r.backupMounts, secret("etcd-client", secretsMount+"/etcd/client", tls.ClientTLSSecretRef.Name))
		}
	}
	if tls := spec.Etcd.PeerURLTLS; tls != nil {
		r.etcdMounts = append(r.etcdMounts,
			secret("peer-ca", secretsMount+"/peer/ca", tls.TLSCASecretRef.Name),
			secret("peer-server", secretsMount+"/peer/server", tls.ServerTLSSecretRef.Name))
	}
	if tls := spec.Backup.TLS; tls != nil {
		r.backupMounts = append(r.backupMounts,
			secret("backup-ca", secretsMount+"/backup/ca", tls.TLSCASecretRef.Name),
			secret("backup-server", secretsMount+"/backup/server", tls.ServerTLSSecretRef.Name))
		if tls.ClientTLSSecretRef != nil {
			r.backupMounts = append(r.backupMounts, secret("backup-client", secretsMount+"/backup/client", tls.ClientTLSSecretRef.Name))
		}
	}
	if r.storeVolume != nil {
		r.volumes, r.backupMounts = append(r.volumes, *r.storeVolume), append(r.backupMounts, *r.storeMount)
	}
}

// tokenVolume is a volume with a token for the kube-apiserver, for the containers that mount it; etcd does not.
func tokenVolume() corev1.Volume {
	return corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(time.Hour / time.Second))}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
			Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
		}}}},
	}}}}
}

func (r *renderer) backupImage() string {
	return ptr.Deref(r.Etcd.Spec.Backup.Image, r.BackupRestoreImage)
}

// initialize is the init container: etcd does not start before it has ended.
func (r *renderer) initialize() corev1.Container {
	c := r.backupContainer("initialize")
	c.Name = "initialize"
	return c
}

func (r *renderer) backupRestore() corev1.Container {
	c := r.backupContainer("server")
	c.Name = "backup-restore"
	c.Ports = []corev1.ContainerPort{{Name: "server", ContainerPort: r.backupPort, Protocol: corev1.ProtocolTCP}}
	return c
}

func (r *renderer) backupContainer(command string) corev1.Container {
	return corev1.Container{
		Image: r.backupImage(), ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"etcd-backup-restore", command, "--config=" + configMount + "/" + configFile, "--member=$(POD_NAME)"},
		Env:             []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		Resources:       ptr.Deref(r.Etcd.Spec.Backup.Resources, defaultResources("23m", "128Mi")),
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
		VolumeMounts:    slices.Clone(r.backupMounts),
	}
}

func (r *renderer) etcd() corev1.Container {
	return corev1.Container{
		Name: "etcd", Image: ptr.Deref(r.Etcd.Spec.Etcd.Image, r.EtcdImage), ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/usr/local/bin/etcd"},
		Args:            []string{"--config-file=" + sharedMount + "/etcd.yaml"},
		Resources:       ptr.Deref(r.Etcd.Spec.Etcd.Resources, defaultResources("50m", "128Mi")),
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
		Ports: []corev1.ContainerPort{
			{Name: "client", ContainerPort: r.clientPort, Protocol: corev1.ProtocolTCP},
			{Name: "peer", ContainerPort: r.peerPort, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: r.metricsPort, Protocol: corev1.ProtocolTCP},
		},
		// A learner, and a member without a leader, are not ready, as they cannot serve clients.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/readyz", Port: intstr.FromInt32(r.metricsPort), Scheme: corev1.URISchemeHTTP,
			}},
			InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 5, SuccessThreshold: 1,
		},
		VolumeMounts: slices.Clone(r.etcdMounts),
	}
}

func defaultResources(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}
