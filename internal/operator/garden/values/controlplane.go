package values

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/stage/controlplane"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/secrets"
)

// Names of ManagedResources with what the virtual cluster contains for its control plane.
const (
	AccessResource                = "shoot-core-gardeneraccess"
	KubeControllerManagerResource = "shoot-core-kube-controller-manager"
)

// signingDuration is the validity of certificates that kube-controller-manager signs.
const signingDuration = 48 * time.Hour

// defaultStorage is the size of the volumes of etcd.
var defaultStorage = map[etcd.Role]resource.Quantity{etcd.Main: resource.MustParse("25Gi"), etcd.Events: resource.MustParse("10Gi")}

// Etcd returns the values of an Etcd with a number of members.
func (s Source) Etcd(role etcd.Role, replicas int32) (etcd.Values, error) {
	set, err := s.Credentials.OfEtcd()
	if err != nil {
		return etcd.Values{}, err
	}
	v := etcd.Values{
		Of: of, Namespace: namespace, Role: role, Replicas: replicas, Spread: s.Spread(), TrafficDistribution: s.TrafficDistribution(),
		Secrets: etcd.Secrets{
			CA: set.BundleName(constants.SecretNameCAETCD), PeerCA: set.BundleName(constants.SecretNameCAETCDPeer),
			Server: set.Name(credentials.EtcdServer), Client: set.Name(credentials.EtcdClient), PeerServer: set.Name(credentials.EtcdPeerServer),
		},
		Storage: new(defaultStorage[role]),
	}
	autoscaling, storage := (*corev1beta1.ControlPlaneAutoscaling)(nil), (*operatorv1alpha1.Storage)(nil)
	config := ptr.Deref(s.Garden.Spec.VirtualCluster.ETCD, operatorv1alpha1.ETCD{})
	switch role {
	case etcd.Main:
		// It is never evicted: all of the garden would wait for it.
		v.Autoscaling = &workload.Autoscaling{Downscale: constants.EvictionRequirementNever}
		v.DefragmentationSchedule = s.schedule("/defragmentation/main", "*")
		if config.Main != nil {
			autoscaling, storage = config.Main.Autoscaling, config.Main.Storage
		}
	case etcd.Events:
		v.Autoscaling = new(s.inMaintenanceWindow())
		v.DefragmentationSchedule = s.schedule("/defragmentation/events", "*/3")
		if config.Events != nil {
			autoscaling, storage = config.Events.Autoscaling, config.Events.Storage
		}
	}
	if autoscaling != nil {
		v.MinAllowed = autoscaling.MinAllowed
	}
	if storage != nil {
		v.StorageClass = ptr.Deref(storage.ClassName, "")
		v.Storage = cmp.Or(storage.Capacity, v.Storage)
	}
	if backup := s.Backup(); backup != nil && role == etcd.Main {
		container, prefix := s.bucket()
		v.Backup = &etcd.Backup{
			Provider: backup.Provider, Container: container, Prefix: prefix + etcd.Name(of, role), SecretName: constants.BackupSecretName,
			FullSnapshotSchedule: s.SnapshotSchedule(),
		}
		if c := s.ETCD; c != nil {
			v.Backup.DeltaSnapshotRetentionPeriod = c.DeltaSnapshotRetentionPeriod
			if election := c.BackupLeaderElection; election != nil {
				v.Backup.ReelectionPeriod, v.Backup.ConnectionTimeout = election.ReelectionPeriod, election.ETCDConnectionTimeout
			}
		}
	}
	return v, nil
}

// KubeAPIServer returns the values of the kube-apiserver with a number of pods. The files are those to which its configuration refers.
func (s Source) KubeAPIServer(replicas int32, files Files) (kubeapiserver.Values, error) {
	image, set, err := s.imageAndCredentials(kubeapiserver.Name)
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	encryption, err := s.Encryption()
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	v := kubeapiserver.Values{
		Of: of, Namespace: namespace, Image: image, Version: s.version(), Replicas: replicas, Spread: s.Spread(), Workerless: true,
		TrafficDistribution: s.TrafficDistribution(), ServiceNetworks: s.Garden.Spec.VirtualCluster.Networking.Services, ExternalHostname: s.Host(),
		Secrets: kubeapiserver.Secrets{
			ClientCA: set.BundleName(constants.SecretNameCAClient), EtcdCA: set.BundleName(constants.SecretNameCAETCD),
			FrontProxyCA: set.BundleName(constants.SecretNameCAFrontProxy), Server: set.Name(credentials.KubeAPIServer),
			EtcdClient: set.Name(credentials.EtcdClient), Aggregator: set.Name(credentials.KubeAggregator),
			ServiceAccountKey: set.Name(constants.SecretNameServiceAccountKey), ServiceAccountKeys: set.BundleName(constants.SecretNameServiceAccountKey),
		},
		Encryption: encryption, Files: files.Files, Garden: &kubeapiserver.Garden{},
	}
	if replicas > 0 && Autoscaled(s.Garden) {
		v.Autoscaling = &kubeapiserver.Autoscaling{MinReplicas: replicas, MaxReplicas: kubeapiserver.MaxReplicas}
	}
	if c := s.config(); c != nil {
		v.Config = &c.KubeAPIServerConfig
		if issuer := c.ServiceAccountConfig; issuer != nil && issuer.Issuer != nil {
			if u, err := url.Parse(*issuer.Issuer); err == nil && slices.Contains(slices.Concat(s.Hosts(), s.Domains()), u.Hostname()) {
				v.ExternalHostname = u.Hostname()
			}
		}
		for _, resource := range c.ResourcesToStoreInETCDEvents {
			v.Garden.EventResources = append(v.Garden.EventResources, schema.GroupResource{Group: resource.Group, Resource: resource.Resource})
		}
		if c.SNI != nil {
			v.Garden.SNI = []kubeapiserver.SNI{{Secret: files.SNISecret, Patterns: c.SNI.DomainPatterns}}
		}
		if c.AuditWebhook != nil {
			v.Garden.AuditWebhook = &kubeapiserver.AuditWebhook{
				Kubeconfig: files.AuditWebhook, BatchMaxSize: c.AuditWebhook.BatchMaxSize, Version: c.AuditWebhook.Version,
			}
		}
		if c.Authentication != nil && c.Authentication.Webhook != nil {
			webhook := c.Authentication.Webhook
			v.Garden.AuthenticationWebhook = &kubeapiserver.AuthenticationWebhook{
				Kubeconfig: files.AuthenticationWebhook, CacheTTL: webhook.CacheTTL, Version: webhook.Version,
			}
		}
	}
	v.Issuer = "https://" + v.ExternalHostname
	client := set.Current(credentials.AdmissionControllerClient)
	connection := gardeneradmissioncontroller.Connection{
		URL: "https://" + gardeneradmissioncontroller.Name, CABundle: set.Bundle(operatorv1alpha1.SecretNameCAGardener),
		Certificate: client.Data[secrets.DataKeyCertificate], Key: client.Data[secrets.DataKeyPrivateKey],
	}
	if v.Garden.SeedsKubeconfig, err = connection.SeedsKubeconfig(); err != nil {
		return v, err
	}
	v.Garden.ShootsKubeconfig, err = connection.ShootsKubeconfig()
	return v, err
}

// config is that of the kube-apiserver. It may be nil.
func (s Source) config() *operatorv1alpha1.KubeAPIServerConfig {
	return s.Garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer
}

// KubeControllerManager returns the values of kube-controller-manager with a number of pods.
func (s Source) KubeControllerManager(replicas int32) (kubecontrollermanager.Values, error) {
	image, set, err := s.imageAndCredentials(kubecontrollermanager.Name)
	if err != nil {
		return kubecontrollermanager.Values{}, err
	}
	v := kubecontrollermanager.Values{
		Of: of, Namespace: namespace, Image: image, Version: s.version(), Replicas: replicas, Spread: s.Spread(), Workerless: true,
		ClusterName: namespace, ServiceNetworks: s.Garden.Spec.VirtualCluster.Networking.Services, SigningDuration: signingDuration,
		Secrets: kubecontrollermanager.Secrets{
			GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig), Server: set.Name(credentials.KubeControllerManager),
			CA: set.BundleName(constants.SecretNameCACluster), ClientCA: set.Name(constants.SecretNameCAClient),
			ServiceAccountKey: set.Name(constants.SecretNameServiceAccountKey),
		},
	}
	if c := s.config(); c != nil {
		v.APIs = c.RuntimeConfig
	}
	if c := s.Garden.Spec.VirtualCluster.Kubernetes.KubeControllerManager; c != nil {
		v.Config = &c.KubeControllerManagerConfig
		if c.CertificateSigningDuration != nil {
			v.SigningDuration = c.CertificateSigningDuration.Duration
		}
	}
	return v, nil
}

// ResourceManager returns the values of the gardener-resource-manager of the virtual cluster with a number of pods.
func (s Source) ResourceManager(replicas int32) (resourcemanager.Values, error) {
	image, err := s.gardenerImage()
	if err != nil {
		return resourcemanager.Values{}, err
	}
	set, err := s.Credentials.All()
	if err != nil {
		return resourcemanager.Values{}, err
	}
	var additional []string
	if c := s.Garden.Spec.VirtualCluster.Gardener.GardenerResourceManager; c != nil {
		additional = c.AdditionalTargetNamespaces
	}
	return resourcemanager.Values{
		Of: of, Namespace: namespace, Image: image, Replicas: replicas, Config: resourcemanager.ForVirtualGarden(namespace, additional),
		ServerSecret: set.Name(credentials.ResourceManager), CABundle: set.Bundle(operatorv1alpha1.SecretNameCARuntime),
		Shoot: &resourcemanager.Shoot{GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig)},
	}, nil
}

// RuntimeResourceManager returns the values of the gardener-resource-manager of the runtime cluster.
func (s Source) RuntimeResourceManager() (resourcemanager.Values, error) {
	image, err := s.gardenerImage()
	if err != nil {
		return resourcemanager.Values{}, err
	}
	set, err := s.Credentials.OfRuntime()
	if err != nil {
		return resourcemanager.Values{}, err
	}
	config := resourcemanager.ForSeed()
	config.Webhooks.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = s.NotReadySeconds
	config.Webhooks.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = s.UnreachableSeconds
	config.Webhooks.VPAInPlaceUpdates.Enabled = Autoscaled(s.Garden) && resourcemanager.UpdatesInPlace(s.RuntimeVersion)
	return resourcemanager.Values{
		Namespace: namespace, Image: image, Replicas: s.Replicas(), Config: config, PriorityClass: constants.PriorityClassNameGardenSystemCritical,
		ServerSecret: set.Name(credentials.RuntimeResourceManager), CABundle: set.Bundle(operatorv1alpha1.SecretNameCARuntime),
		Zones: len(s.Garden.Spec.RuntimeCluster.Provider.Zones) > 1,
	}, nil
}

// Resources returns what the virtual cluster contains for its control plane, by the name of the ManagedResource.
func (s Source) Resources() (map[string][]client.Object, error) {
	return map[string][]client.Object{
		AccessResource:                {controlplane.AccessBinding()},
		KubeControllerManagerResource: shootsystem.KubeControllerManager(),
	}, nil
}
