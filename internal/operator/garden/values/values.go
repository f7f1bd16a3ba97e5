// Package values maps a Garden to the values of the components of its virtual cluster's control plane: the names of its credentials, and the
// images.
package values

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/gardenerdiscoveryserver"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
)

const (
	// of is the kind of cluster that the control plane is for, and namespace where it runs.
	of        = instance.VirtualGarden
	namespace = constants.GardenNamespace

	apiPrefix, gardenerPrefix = "api.", "gardener."
)

// Source is what the values are made from. Each method makes those of one component, and reads the credentials that it needs.
type Source struct {
	// Garden is the object, with the status that the beginning of the operation has written.
	Garden *operatorv1alpha1.Garden
	// Credentials are complete when the task credentials is done, those of etcd when credentials-etcd is, and those of the runtime cluster
	// after Runtime.
	Credentials *credentials.Set
	// Images are those of all components, and GardenerVersion the tag of the image with all processes of Gardener.
	Images          imagevector.Vector
	GardenerVersion string
	// ETCD is the configuration of backups. It may be nil.
	ETCD *gardenletconfigv1alpha1.ETCDConfig
	// RuntimeVersion is that of Kubernetes of the runtime cluster. It is needed if Services are to be topology-aware, or pods are scaled.
	RuntimeVersion string
	// NotReadySeconds and UnreachableSeconds are how long pods in the runtime cluster stay on nodes that are gone. They may be nil.
	NotReadySeconds, UnreachableSeconds *int64
}

// Credentials returns the values of the credentials of a garden. Servers are more servers that need certificates, besides those of all gardens.
func Credentials(garden *operatorv1alpha1.Garden, runtimeAPI client.Client, clock clock.PassiveClock, servers ...credentials.Server) credentials.Values {
	s := Source{Garden: garden}
	v := credentials.Values{
		Of: of, SeedAPI: runtimeAPI, Namespace: namespace, Rotation: credentials.RotationOfGarden(garden.Status.Credentials),
		HostNames: s.Hosts(), Replicated: s.HighlyAvailable(), Servers: servers, Clock: clock,
		EncryptionProviders: map[string]corev1beta1.EncryptionProviderType{
			constants.SecretNameETCDEncryptionKey:                garden.EncryptionProvider(),
			operatorv1alpha1.SecretNameGardenerETCDEncryptionKey: garden.GardenerEncryptionProvider(),
		},
	}
	if garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer != nil {
		v.DiscoveryHostName = s.DiscoveryHost()
	}
	return v
}

// Domains are the domains of the kube-apiserver. The first one is that which components use.
func (s Source) Domains() []string {
	names := make([]string, 0, len(s.Garden.Spec.VirtualCluster.DNS.Domains))
	for _, domain := range s.Garden.Spec.VirtualCluster.DNS.Domains {
		names = append(names, domain.Name)
	}
	return names
}

// Hosts are the names of the kube-apiserver for clients outside of the runtime cluster: two for each domain.
func (s Source) Hosts() []string {
	var hosts []string
	for _, domain := range s.Domains() {
		hosts = append(hosts, apiPrefix+domain, gardenerPrefix+domain)
	}
	return hosts
}

// Host is the name of the kube-apiserver that clients outside of the runtime cluster use. It is empty without a domain.
func (s Source) Host() string {
	if hosts := s.Hosts(); len(hosts) > 0 {
		return hosts[0]
	}
	return ""
}

// Routes are the names that the gateway routes to the kube-apiserver: its own, and those for which it has another certificate.
func (s Source) Routes() []string {
	hosts := s.Hosts()
	if c := s.config(); c != nil && c.SNI != nil {
		hosts = append(hosts, c.SNI.DomainPatterns...)
	}
	return hosts
}

// InternalHost is the name of the kube-apiserver in the runtime cluster.
func (s Source) InternalHost() string {
	return of.Name(kubeapiserver.Name) + "." + namespace + ".svc." + constants.DefaultDomain
}

// DiscoveryHost is the name of gardener-discovery-server, also when there is none: it is part of the issuer of workload identities.
func (s Source) DiscoveryHost() string {
	return gardenerdiscoveryserver.Host(s.Garden)
}

// WorkloadIdentityIssuer is the issuer of the tokens of workload identities.
func (s Source) WorkloadIdentityIssuer() string {
	return issuer.WorkloadIdentityURL(s.DiscoveryHost())
}

// AdvertisedAddresses are the URLs in the status.
func (s Source) AdvertisedAddresses() []operatorv1alpha1.AdvertisedAddress {
	return []operatorv1alpha1.AdvertisedAddress{{Name: operatorv1alpha1.AdvertisedAddressVirtualGarden, URL: "https://" + s.Host()}}
}

// Kubeconfigs returns the Secrets with kubeconfigs for gardener-operator and operators, each with its URL of the kube-apiserver.
func (s Source) Kubeconfigs() map[string]string {
	return map[string]string{
		constants.SecretNameGardener:         "https://" + s.Host(),
		constants.SecretNameGardenerInternal: "https://" + s.InternalHost(),
	}
}

// HighlyAvailable reports whether the control plane survives the loss of a node, or of a zone if there are several.
func (s Source) HighlyAvailable() bool {
	c := s.Garden.Spec.VirtualCluster.ControlPlane
	return c != nil && c.HighAvailability != nil
}

// Members returns how many members an etcd cluster has.
func (s Source) Members() int32 {
	if s.HighlyAvailable() {
		return 3
	}
	return 1
}

// Replicas returns how many pods a component has. In a cluster without zones that is not highly available, there may be only one node.
func (s Source) Replicas() int32 {
	if s.HighlyAvailable() || len(s.Garden.Spec.RuntimeCluster.Provider.Zones) > 0 {
		return 2
	}
	return 1
}

// APIServerReplicas returns how many pods an API server has.
func (s Source) APIServerReplicas() int32 {
	if s.HighlyAvailable() {
		return 3
	}
	return s.Replicas()
}

// Spread returns the topology keys over which the pods of one component are spread.
func (s Source) Spread() []string {
	zones := len(s.Garden.Spec.RuntimeCluster.Provider.Zones)
	switch {
	case s.HighlyAvailable() && zones > 1:
		return []string{corev1.LabelHostname, corev1.LabelTopologyZone}
	case s.Replicas() > 1:
		return []string{corev1.LabelHostname}
	}
	return nil
}

// TopologyAware reports whether clients in the runtime cluster prefer pods in their zone.
func TopologyAware(garden *operatorv1alpha1.Garden) bool {
	settings := garden.Spec.RuntimeCluster.Settings
	return settings != nil && settings.TopologyAwareRouting != nil && settings.TopologyAwareRouting.Enabled
}

// TrafficDistribution returns which pods of the control plane its Services prefer. Nil means that there is no preference.
func (s Source) TrafficDistribution() *string {
	if !TopologyAware(s.Garden) {
		return nil
	}
	return workload.PreferSameZone(s.RuntimeVersion)
}

// schedule returns a cron schedule in UTC, in the first hour of the maintenance time window.
func (s Source) schedule(purpose, days string) string {
	return observed.Schedule(&s.Garden.Spec.VirtualCluster.Maintenance.TimeWindow, s.Garden.UID+types.UID(purpose), days)
}

// SnapshotSchedule returns when full snapshots of the main etcd are taken: once a day.
func (s Source) SnapshotSchedule() string { return s.schedule("", "*") }

// Autoscaled reports whether the runtime cluster has the Vertical Pod Autoscaler. It has, unless the Garden says otherwise.
func Autoscaled(garden *operatorv1alpha1.Garden) bool {
	settings := garden.Spec.RuntimeCluster.Settings
	return settings == nil || settings.VerticalPodAutoscaler == nil || ptr.Deref(settings.VerticalPodAutoscaler.Enabled, true)
}

// Autoscalers returns the VerticalPodAutoscalers that go with objects of the control plane.
func (s Source) Autoscalers(objects []client.Object) []client.Object {
	if !Autoscaled(s.Garden) {
		return nil
	}
	return workload.ControlPlaneAutoscalers(objects, func(deployment string) workload.Autoscaling {
		if deployment == of.Name(kubeapiserver.Name) {
			how := s.inMaintenanceWindow()
			how.MinAllowed = kubeapiserver.ScaledMinimum()
			if c := s.config(); c != nil && c.Autoscaling != nil {
				maps.Copy(how.MinAllowed, c.Autoscaling.MinAllowed)
			}
			return how
		}
		return workload.Autoscaling{}
	})
}

// inMaintenanceWindow is the autoscaling of pods that users miss while they are replaced.
func (s Source) inMaintenanceWindow() workload.Autoscaling {
	return workload.Autoscaling{
		Downscale: constants.EvictionRequirementInMaintenanceWindowOnly, MaintenanceWindow: &s.Garden.Spec.VirtualCluster.Maintenance.TimeWindow,
	}
}

// version is that of Kubernetes.
func (s Source) version() string { return s.Garden.Spec.VirtualCluster.Kubernetes.Version }

// imageAndCredentials returns the image of a component of Kubernetes in the version of the cluster, and the credentials.
func (s Source) imageAndCredentials(name string) (string, credentials.Generated, error) {
	image, err := s.Images.Find(name, imagevector.Query{TargetVersion: s.version()})
	if err != nil {
		return "", credentials.Generated{}, err
	}
	set, err := s.Credentials.All()
	return image.String(), set, err
}

// gardenerImage returns the image with all processes of Gardener.
func (s Source) gardenerImage() (string, error) {
	image, err := s.Images.Find("gardener", imagevector.Query{})
	return image.WithDefaultTag(s.GardenerVersion).String(), err
}

// bucket returns the name of the BackupBucket, and what precedes the prefix of backups in it.
func (s Source) bucket() (name, prefix string) {
	backup := s.Backup()
	if backup == nil || ptr.Deref(backup.BucketName, "") == "" {
		return "garden-" + string(s.Garden.UID), ""
	}
	name, prefix, _ = strings.Cut(*backup.BucketName, "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return name, prefix
}

// BucketName returns the name of the BackupBucket.
func (s Source) BucketName() string {
	name, _ := s.bucket()
	return name
}

// BackupEntryName returns the name of the BackupEntry.
func (s Source) BackupEntryName() string { return namespace + "--" + string(s.Garden.UID) }

// Backup is the configuration of backups. Nil means that there are none.
func (s Source) Backup() *operatorv1alpha1.Backup {
	if c := s.Garden.Spec.VirtualCluster.ETCD; c != nil && c.Main != nil {
		return c.Main.Backup
	}
	return nil
}
