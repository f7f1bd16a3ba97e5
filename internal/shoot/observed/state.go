// Package observed has what is known of a shoot when a flow for it begins, and what follows from that.
package observed

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube/shard"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/maintenance"
)

// tunnelPrefix and proxyPrefix are, in the internal domain, the names of the vpn-seed-server, and of the API server proxies on nodes.
const tunnelPrefix, proxyPrefix = "tunnel", "proxy"

// State is what is known of a shoot before its flow begins. Flows are composed from it, and it does not change while they run.
type State struct {
	// Shoot is the object, with the status that the beginning of the operation has written.
	Shoot *corev1beta1.Shoot
	Seed  *corev1beta1.Seed
	// CloudProfile may be nil for a shoot that is deleted.
	CloudProfile *corev1beta1.CloudProfile
	// Project is the name of its project.
	Project string
	// Namespace is that of the control plane: the technical ID of the shoot.
	Namespace string
	// UpdatedPools is how far the machines of pools are that are updated in place, as the extension reports it. It is nil if it reports nothing.
	UpdatedPools *extensionsv1alpha1.InPlaceUpdatesWorkerStatus
	// Identity is that of the cluster, unique in all landscapes.
	Identity string
	// Internal and External are the domains of the shoot. They are nil if it has none.
	Internal, External *dns.Domain
	// Gateway is the one that the names of the kube-apiserver lead to: that of the zone of the control plane, or of the handler of the shoot's
	// ExposureClass. The zero value is that of the seed. OtherGateways lead to the shoot, too.
	Gateway       client.ObjectKey
	OtherGateways []client.ObjectKey
	// CloudProvider is the credential for the infrastructure. It is nil if that needs none.
	CloudProvider *usercredential.Credential
	// Extensions are the Extensions that the shoot has, StaleExtensions those that exist although it has them no longer.
	Extensions, StaleExtensions []extension.Extension
	// Issuer is the URL of the managed issuer of service account tokens. It is empty if the kube-apiserver is the issuer.
	Issuer string
	// Endpoints are the addresses of what else of the control plane is advertised.
	Endpoints []corev1beta1.ShootAdvertisedAddress
	// Zones are those of the control plane.
	Zones []string
	// HasNamespace is whether the seed has the namespace of the control plane.
	HasNamespace bool
	// Stopped is whether the kube-apiserver of a hibernated shoot has no pods. It has some if a wake-up has failed half way.
	Stopped bool
	// Migration is how far the move of the control plane to another seed is. Nil means that it does not move.
	Migration *Migration
	// Restoration is what the control plane is restored from, if it comes from another seed. Nil means that it does not.
	Restoration *Restoration
}

// Migration is what is left of a control plane that moves to another seed.
type Migration struct {
	// Alive is whether its namespace exists and is not being deleted.
	Alive bool
	// HasAPIServer is whether the kube-apiserver is deployed.
	HasAPIServer bool
	// NeedsSnapshot is whether the final snapshot of etcd is not known to be taken: the BackupEntry is on this seed yet.
	NeedsSnapshot bool
}

// Restoration is what a control plane is restored from.
type Restoration struct {
	// Saved is the content of the ShootState.
	Saved corev1beta1.ShootStateSpec
	// SourceBucket is the bucket that backups are copied from. Empty means that they are copied already, or that there are none.
	SourceBucket string
	// NoFinalSnapshot is whether the former seed is lost, so that backups are copied without waiting for the final snapshot.
	NoFinalSnapshot bool
}

// TechnicalID returns the name of the namespace of a new shoot.
func TechnicalID(project, shoot string) string {
	return constants.TechnicalIDPrefix + "-" + project + "--" + shoot
}

// Hibernated reports whether nothing of the control plane runs: the shoot is to be hibernated, and has been since the last operation.
func (s *State) Hibernated() bool {
	return s.Shoot.HibernationWanted() && s.Shoot.Status.Hibernated && s.Stopped
}

// Hosts returns the names of the kube-apiserver, for clients outside of the seed.
func (s *State) Hosts() []string {
	var hosts []string
	if s.Internal != nil {
		hosts = append(hosts, s.Internal.Host(constants.APIServerFQDNPrefix), s.Internal.Host(proxyPrefix))
	}
	if s.External != nil {
		hosts = append(hosts, s.External.Host(constants.APIServerFQDNPrefix))
	}
	return hosts
}

// SeedHost returns the name of the kube-apiserver in the seed.
func (s *State) SeedHost() string { return kubeapiserver.ServiceHost(s.Namespace) }

// TunnelHost returns the name of the vpn-seed-server, for nodes. It is empty without an internal domain.
func (s *State) TunnelHost() string {
	if s.Internal == nil {
		return ""
	}
	return s.Internal.Host(tunnelPrefix)
}

// DefaultIssuer returns the issuer of service account tokens if it is not a managed one: the kube-apiserver itself, or what the owner has
// configured.
func (s *State) DefaultIssuer() string {
	if config := s.Shoot.Spec.Kubernetes.KubeAPIServer; config != nil && config.ServiceAccountConfig != nil && config.ServiceAccountConfig.Issuer != nil {
		return *config.ServiceAccountConfig.Issuer
	}
	switch {
	case s.Internal != nil:
		return "https://" + s.Internal.Host(constants.APIServerFQDNPrefix)
	case s.External != nil:
		return "https://" + s.External.Host(constants.APIServerFQDNPrefix)
	}
	return ""
}

// AdvertisedAddresses returns the URLs of the kube-apiserver, of the issuer of its tokens, and of other endpoints, for the status. A domain whose records
// the owner of the shoot manages is external, too: extensions and clients look for its name. It comes after the internal one, as it is not known whether the
// record exists.
func (s *State) AdvertisedAddresses() []corev1beta1.ShootAdvertisedAddress {
	var list []corev1beta1.ShootAdvertisedAddress
	add := func(name, url string) {
		list = append(list, corev1beta1.ShootAdvertisedAddress{Name: name, URL: url})
	}
	if s.External.Managed() {
		add(constants.AdvertisedAddressExternal, "https://"+s.External.Host(constants.APIServerFQDNPrefix))
	}
	if s.Internal != nil {
		add(constants.AdvertisedAddressInternal, "https://"+s.Internal.Host(constants.APIServerFQDNPrefix))
	}
	if s.External != nil && !s.External.Managed() {
		add(constants.AdvertisedAddressExternal, "https://"+s.External.Host(constants.APIServerFQDNPrefix))
	}
	issuer := s.Issuer
	if issuer == "" {
		issuer = s.DefaultIssuer()
	}
	if issuer != "" {
		add(constants.AdvertisedAddressServiceAccountIssuer, issuer)
	}
	return append(list, s.Endpoints...)
}

// HighlyAvailable reports whether the control plane survives the loss of a node or a zone.
func (s *State) HighlyAvailable() bool { return s.tolerance() != "" }

func (s *State) tolerance() corev1beta1.FailureToleranceType {
	return controlplanenamespace.FailureTolerance(s.Shoot)
}

// Members returns how many members an etcd cluster has.
func (s *State) Members() int32 {
	if s.HighlyAvailable() {
		return 3
	}
	return 1
}

// Replicas returns how many pods an active-active component has.
func (s *State) Replicas() int32 {
	if s.HighlyAvailable() {
		return 2
	}
	return 1
}

// Spread returns the topology keys over which the pods of one component are spread.
func (s *State) Spread() []string {
	switch s.tolerance() {
	case corev1beta1.FailureToleranceTypeNode:
		return []string{corev1.LabelHostname}
	case corev1beta1.FailureToleranceTypeZone:
		return []string{corev1.LabelHostname, corev1.LabelTopologyZone}
	}
	return nil
}

// TrafficDistribution returns which pods of the control plane its Services prefer: those in the zone of the client, if the control plane is
// spread over zones and the seed's setting says so. Nil means that there is no preference.
func (s *State) TrafficDistribution() *string {
	settings := s.Seed.Spec.Settings
	if settings == nil || settings.TopologyAwareRouting == nil || !settings.TopologyAwareRouting.Enabled ||
		len(s.Seed.Spec.Provider.Zones) <= 1 || s.tolerance() != corev1beta1.FailureToleranceTypeZone {
		return nil
	}
	return workload.PreferSameZone(ptr.Deref(s.Seed.Status.KubernetesVersion, ""))
}

// ControlPlaneZones returns the zones of a control plane. Zones that its namespace has stay, as volumes are there. Others are added until there is
// one, or there are three if it is to survive the loss of a zone: those of spec.controlPlane.zones, or else zones of the seed, which shoots are
// spread over. Depending on the seed's setting zoneSelection, zones of the workers come first, or are the only ones; it is an error if there
// are too few of them.
func ControlPlaneZones(namespace *corev1.Namespace, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) ([]string, error) {
	var zones []string
	add := func(zone string) {
		if zone != "" && !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	for zone := range strings.SplitSeq(namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZones], ",") {
		add(nameInSeed(zone, &seed.Spec.Provider))
	}
	if c := shoot.Spec.ControlPlane; c != nil && len(c.Zones) > 0 {
		for _, zone := range c.Zones {
			add(zone)
		}
		return zones, nil
	}
	want := 1
	if controlplanenamespace.FailureTolerance(shoot) == corev1beta1.FailureToleranceTypeZone {
		want = 3
	}
	all := slices.Clone(seed.Spec.Provider.Zones)
	if len(all) > 0 { // shoots are spread over the zones of the seed
		start := int(shard.Of(shoot.UID, uint64(len(all)))) //nolint:gosec // less than the number of zones
		all = slices.Concat(all[start:], all[:start])
	}
	ofWorkers := shoot.Spec.WorkerZones()
	isOfWorkers := func(zone string) bool { return slices.Contains(ofWorkers, zone) }
	enforced := false
	if len(ofWorkers) > 0 && seed.Spec.Settings != nil && seed.Spec.Settings.ZoneSelection != nil {
		enforced = seed.Spec.Settings.ZoneSelection.Mode == corev1beta1.ZoneSelectionModeEnforce
		slices.SortStableFunc(all, func(a, b string) int {
			switch inA, inB := isOfWorkers(a), isOfWorkers(b); {
			case inA && !inB:
				return -1
			case inB && !inA:
				return 1
			}
			return 0
		})
	}
	for _, zone := range all {
		if len(zones) < want && (!enforced || isOfWorkers(zone)) {
			add(zone)
		}
	}
	if enforced && len(zones) < want {
		err := fmt.Errorf("spec.provider.workers[].zones: seed %q has %d of these zones, and the control plane needs %d of them", seed.Name, len(zones), want)
		return zones, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	return zones, nil
}

// nameInSeed returns the name that a zone has in the Seed. The webhook of an extension may have removed the region from that in the namespace.
func nameInSeed(zone string, provider *corev1beta1.SeedProvider) string {
	long := provider.Region + "-" + zone
	if zone != "" && !slices.Contains(provider.Zones, zone) && slices.Contains(provider.Zones, long) {
		return long
	}
	return zone
}

// MaintenanceWindow returns the maintenance time window of a shoot at a time: the current one, or the last one.
func MaintenanceWindow(shoot *corev1beta1.Shoot, now time.Time) (begin time.Time, length time.Duration, ok bool) {
	if shoot.Spec.Maintenance == nil || shoot.Spec.Maintenance.TimeWindow == nil {
		return begin, 0, false
	}
	begin, end, err := maintenance.Latest(*shoot.Spec.Maintenance.TimeWindow, now)
	return begin, end.Sub(begin), err == nil && end.After(begin)
}

// SnapshotSchedule returns when full snapshots of etcd are taken: once a day, at a time that differs between shoots, in the first hour of
// the maintenance time window if there is one. It is a cron schedule in UTC.
func (s *State) SnapshotSchedule() string { return s.schedule(s.Shoot.UID, "*") }

// DefragmentationSchedule returns when the etcd of a role is defragmented: every third day, at a time like that of full snapshots, which
// differs between the roles, as an etcd does not respond meanwhile. It is a cron schedule in UTC.
func (s *State) DefragmentationSchedule(role string) string {
	return s.schedule(s.Shoot.UID+types.UID("/defragmentation/"+role), "*/3")
}

// schedule returns a cron schedule in UTC, at a time for a key in the first hour of the maintenance time window if there is one.
func (s *State) schedule(key types.UID, days string) string {
	var window *corev1beta1.MaintenanceTimeWindow
	if s.Shoot.Spec.Maintenance != nil {
		window = s.Shoot.Spec.Maintenance.TimeWindow
	}
	return Schedule(window, key, days)
}

// Schedule returns a cron schedule in UTC, on some days of the month at a time for a key: in the first hour of a maintenance time window, or at
// any time if that is nil or invalid.
func Schedule(window *corev1beta1.MaintenanceTimeWindow, key types.UID, days string) string {
	var begin time.Time
	length := 24 * time.Hour
	if window != nil {
		if from, to, err := maintenance.Latest(*window, time.Time{}); err == nil && to.After(from) {
			begin, length = from, min(to.Sub(from), time.Hour)
		}
	}
	at := begin.UTC().Add(time.Duration(shard.Of(key, uint64(length)))) //nolint:gosec // less than a duration
	return fmt.Sprintf("%d %d %s * *", at.Minute(), at.Hour(), days)
}

// BackupEntry returns the desired BackupEntry of the shoot.
func (s *State) BackupEntry() *corev1beta1.BackupEntry {
	return &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Shoot.Namespace, Name: s.BackupEntryName(),
			Annotations:     map[string]string{constants.ShootPurposeAnnotation: string(ptr.Deref(s.Shoot.Spec.Purpose, ""))},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
		},
		Spec: corev1beta1.BackupEntrySpec{BucketName: string(s.Seed.UID), SeedName: &s.Seed.Name},
	}
}

// SourceBackupEntry returns the BackupEntry for the backups in the bucket of the former seed.
func (s *State) SourceBackupEntry() *corev1beta1.BackupEntry {
	entry := s.BackupEntry()
	entry.Name = constants.BackupSourcePrefix + "-" + entry.Name
	if s.Restoration != nil {
		entry.Spec.BucketName = s.Restoration.SourceBucket
	}
	return entry
}

// BackupEntryName returns the name of the BackupEntry, which is also the path of the backups in the bucket.
func (s *State) BackupEntryName() string { return s.Namespace + "--" + string(s.Shoot.UID) }

// BackupEntryName is the same for a Shoot that has a control plane.
func BackupEntryName(shoot *corev1beta1.Shoot) string {
	return (&State{Shoot: shoot, Namespace: shoot.Status.TechnicalID}).BackupEntryName()
}

// ScaleDownForbidden reports whether pods that users miss while they are replaced must not be replaced to request less: in important
// clusters, and in those without a maintenance time window to which it could be delayed.
func (s *State) ScaleDownForbidden() bool {
	purpose := ptr.Deref(s.Shoot.Spec.Purpose, "")
	return purpose == corev1beta1.ShootPurposeProduction || purpose == corev1beta1.ShootPurposeInfrastructure ||
		s.Shoot.Annotations[constants.ShootAlphaControlPlaneScaleDownDisabled] == "true" ||
		s.Shoot.Spec.Maintenance == nil || s.Shoot.Spec.Maintenance.TimeWindow == nil
}

// SystemPools returns the worker pools on whose nodes system components may run.
func (s *State) SystemPools() []corev1beta1.Worker {
	return slices.DeleteFunc(slices.Clone(s.Shoot.Spec.Provider.Workers), func(pool corev1beta1.Worker) bool {
		return pool.Maximum == 0 || pool.SystemComponents != nil && !pool.SystemComponents.Allow
	})
}

// KubernetesServiceIP returns the address of the Service "kubernetes" in the shoot: the first one of its range. It is nil if the spec has
// no range.
func (s *State) KubernetesServiceIP() (net.IP, error) {
	if n := s.Shoot.Spec.Networking; n == nil || n.Services == nil {
		return nil, nil
	}
	ip, _, err := net.ParseCIDR(*s.Shoot.Spec.Networking.Services)
	if err != nil {
		return nil, fmt.Errorf("spec.networking.services: %w", err)
	}
	if four := ip.To4(); four != nil {
		ip = four
	}
	ip[len(ip)-1]++
	return ip, nil
}

// NetworksKnown reports whether the ranges of nodes, pods and Services are known before the infrastructure is reconciled, one of each for every
// IP family. Otherwise the control plane and the configuration of nodes come after it.
func (s *State) NetworksKnown() bool {
	n, families := s.Shoot.Status.Networking, 1
	if n == nil {
		return false
	}
	if spec := s.Shoot.Spec.Networking; spec != nil {
		families = max(families, len(spec.IPFamilies))
	}
	return min(len(n.Nodes), len(n.Pods), len(n.Services)) >= families
}

// NetworkingStatus returns the networking status of a shoot: the ranges of its spec, but for those that the infrastructure has chosen,
// which are in the status before.
func NetworkingStatus(spec *corev1beta1.Networking, before *corev1beta1.NetworkingStatus) *corev1beta1.NetworkingStatus {
	after := &corev1beta1.NetworkingStatus{}
	if before != nil {
		after = before.DeepCopy()
	}
	fill := func(list *[]string, value *string) {
		if value != nil && len(*list) == 0 {
			*list = []string{*value}
		}
	}
	fill(&after.Pods, spec.Pods)
	fill(&after.Nodes, spec.Nodes)
	fill(&after.Services, spec.Services)
	return after
}

// ReadNamespace reads the Namespace of a shoot's control plane. Its name is in a status that others can write: one that belongs to another shoot is an
// error, as it would lead to that shoot's credentials. One that does not exist is an error for apierrors.IsNotFound; the returned one is empty then.
func ReadNamespace(ctx context.Context, seedAPI client.Reader, shoot *corev1beta1.Shoot, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	if err := seedAPI.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return namespace, fmt.Errorf("read Namespace %q: %w", name, err)
	}
	if owner := namespace.Annotations[constants.ShootUIDAnnotation]; owner != string(shoot.UID) {
		return nil, fmt.Errorf("Namespace %q in the seed is not that of Shoot %s/%s: it belongs to UID %q", name, shoot.Namespace, shoot.Name, owner)
	}
	return namespace, nil
}
