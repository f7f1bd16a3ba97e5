package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Default ports and names of a gardenlet.
const (
	// DefaultHealthProbesPort is the port of the health endpoint.
	DefaultHealthProbesPort = 2728
	// DefaultMetricsPort is the port of the metrics endpoint.
	DefaultMetricsPort = 2729
	// DefaultLeaderElectionName is the name of the Lease that the replicas compete for.
	DefaultLeaderElectionName = "gardenlet-leader-election"
	// DefaultLeaderElectionNamespace is the namespace of that Lease.
	DefaultLeaderElectionNamespace = "garden"
	// DefaultIngressNamespace is the namespace of the ingress gateway.
	DefaultIngressNamespace = "istio-ingress"
	// DefaultIngressServiceName is the service of the ingress gateway.
	DefaultIngressServiceName = "istio-ingressgateway"
)

// addDefaultingFuncs registers the defaults of the configuration.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&GardenletConfiguration{}, func(obj any) { DefaultGardenletConfiguration(obj.(*GardenletConfiguration)) })
	return nil
}

// DefaultGardenletConfiguration fills in the defaults of a gardenlet's configuration.
func DefaultGardenletConfiguration(config *GardenletConfiguration) {
	garden := ensure(&config.GardenClientConnection)
	defaultClient(&garden.ClientConnectionConfiguration)
	validity := ensure(&garden.KubeconfigValidity)
	setDefault(&validity.AutoRotationJitterPercentageMin, 70)
	setDefault(&validity.AutoRotationJitterPercentageMax, 90)
	defaultClient(&ensure(&config.SeedClientConnection).ClientConnectionConfiguration)
	defaultClient(&ensure(&config.ShootClientConnection).ClientConnectionConfiguration)

	defaultControllers(ensure(&config.Controllers))
	defaultLeaderElection(ensure(&config.LeaderElection))
	setValue(&config.LogLevel, "info")
	setValue(&config.LogFormat, "json")
	setValue(&ensure(&config.Server.HealthProbes).Port, DefaultHealthProbesPort)
	setValue(&ensure(&config.Server.Metrics).Port, DefaultMetricsPort)
	defaultLogging(ensure(&config.Logging))
	defaultIngress(ensure(&ensure(&config.SNI).Ingress), DefaultIngressNamespace, map[string]string{
		"app": DefaultIngressServiceName, "istio": "ingressgateway",
	})
	for i := range config.ExposureClassHandlers {
		handler := &config.ExposureClassHandlers[i]
		defaultIngress(ensure(&ensure(&handler.SNI).Ingress), "istio-ingress-handler-"+handler.Name, map[string]string{
			"app": DefaultIngressServiceName, "gardener.cloud/role": "exposureclass-handler",
		})
	}
	DefaultETCDConfig(ensure(&config.ETCDConfig))
	setDefault(&ensure(&ensure(&config.Monitoring).Shoot).Enabled, true)
	if config.SeedConfig != nil {
		corev1beta1.DefaultSeedSpec(&config.SeedConfig.Spec)
	}
}

func defaultClient(client *componentbaseconfigv1alpha1.ClientConnectionConfiguration) {
	setValue(&client.QPS, 50)
	setValue(&client.Burst, 100)
}

func defaultLeaderElection(election *componentbaseconfigv1alpha1.LeaderElectionConfiguration) {
	setDefault(&election.LeaderElect, true)
	setValue(&election.LeaseDuration, metav1.Duration{Duration: 15 * time.Second})
	setValue(&election.RenewDeadline, metav1.Duration{Duration: 10 * time.Second})
	setValue(&election.RetryPeriod, metav1.Duration{Duration: 2 * time.Second})
	setValue(&election.ResourceLock, "leases")
	setValue(&election.ResourceName, DefaultLeaderElectionName)
	setValue(&election.ResourceNamespace, DefaultLeaderElectionNamespace)
}

func defaultControllers(controllers *GardenletControllerConfiguration) {
	setDuration(&controllers.CacheSyncTimeout, 2*time.Minute)
	setDefault(&ensure(&controllers.BackupBucket).ConcurrentSyncs, 20)
	backupEntry := ensure(&controllers.BackupEntry)
	setDefault(&backupEntry.ConcurrentSyncs, 20)
	setDefault(&backupEntry.DeletionGracePeriodHours, 0)
	setDefault(&ensure(&controllers.Bastion).ConcurrentSyncs, 20)
	setDefault(&ensure(&controllers.ControllerInstallation).ConcurrentSyncs, 20)
	installationCare := ensure(&controllers.ControllerInstallationCare)
	setDefault(&installationCare.ConcurrentSyncs, 20)
	setDuration(&installationCare.SyncPeriod, 30*time.Second)
	setDefault(&ensure(&controllers.ControllerInstallationRequired).ConcurrentSyncs, 1)
	setDuration(&ensure(&controllers.Gardenlet).SyncPeriod, time.Hour)

	seed := ensure(&controllers.Seed)
	setDuration(&seed.SyncPeriod, time.Minute)
	setDefault(&seed.LeaseResyncSeconds, 2)
	setDefault(&seed.LeaseResyncMissThreshold, 10)
	setDuration(&ensure(&controllers.SeedCare).SyncPeriod, 30*time.Second)

	shoot := ensure(&controllers.Shoot)
	setDefault(&shoot.ConcurrentSyncs, 20)
	setDefault(&shoot.ReconcileInMaintenanceOnly, false)
	setDefault(&shoot.RespectSyncPeriodOverwrite, false)
	setDuration(&shoot.RetryDuration, 12*time.Hour)
	setDuration(&shoot.SyncPeriod, time.Hour)
	setDefault(&shoot.DNSEntryTTLSeconds, 120)
	shootCare := ensure(&controllers.ShootCare)
	setDefault(&shootCare.ConcurrentSyncs, 20)
	setDuration(&shootCare.SyncPeriod, time.Minute)
	setDefault(&shootCare.StaleExtensionHealthChecks, StaleExtensionHealthChecks{Enabled: true})
	setDuration(&shootCare.StaleExtensionHealthChecks.Threshold, 5*time.Minute)
	shootState := ensure(&controllers.ShootState)
	setDefault(&shootState.ConcurrentSyncs, 5)
	setDuration(&shootState.SyncPeriod, 6*time.Hour)
	ensure(&controllers.ShootStatus)
	setDefault(&ensure(&controllers.NetworkPolicy).ConcurrentSyncs, 5)

	managedSeed := ensure(&controllers.ManagedSeed)
	setDefault(&managedSeed.ConcurrentSyncs, 20)
	setDuration(&managedSeed.SyncPeriod, time.Hour)
	setDuration(&managedSeed.WaitSyncPeriod, 15*time.Second)
	setDuration(&managedSeed.SyncJitterPeriod, 5*time.Minute)
	setDefault(&managedSeed.JitterUpdates, false)
	setDefault(&ensure(&controllers.TokenRequestor).ConcurrentSyncs, 5)
	workloadIdentity := ensure(&controllers.TokenRequestorWorkloadIdentity)
	setDefault(&workloadIdentity.ConcurrentSyncs, 5)
	setDuration(&workloadIdentity.TokenExpirationDuration, 6*time.Hour)
	setDefault(&ensure(&controllers.VPAEvictionRequirements).ConcurrentSyncs, 5)
}

func defaultLogging(logging *Logging) {
	setDefault(&logging.Enabled, false)
	vali := ensure(&logging.Vali)
	setDefault(&vali.Enabled, false)
	setDefault(&ensure(&vali.Garden).Storage, resource.MustParse("100Gi"))
	victoriaLogs := ensure(&logging.VictoriaLogs)
	setDefault(&victoriaLogs.Enabled, false)
	setDefault(&ensure(&victoriaLogs.Garden).Storage, resource.MustParse("100Gi"))
	setDefault(&ensure(&logging.ShootEventLogging).Enabled, false)
}

func defaultIngress(ingress *SNIIngress, namespace string, labels map[string]string) {
	setDefault(&ingress.ServiceName, DefaultIngressServiceName)
	setDefault(&ingress.Namespace, namespace)
	if ingress.Labels == nil {
		ingress.Labels = labels
	}
}

// DefaultETCDConfig fills in the defaults of etcd-druid's configuration. The gardener-operator has the same.
func DefaultETCDConfig(config *ETCDConfig) {
	setDefault(&ensure(&config.ETCDController).Workers, 50)
	setDefault(&ensure(&config.CustodianController).Workers, 10)
	compaction := ensure(&config.BackupCompactionController)
	setDefault(&compaction.Workers, 3)
	setDefault(&compaction.EnableBackupCompaction, false)
	setDefault(&compaction.EventsThreshold, 1000000)
	setDuration(&compaction.MetricsScrapeWaitDuration, time.Minute)
}

// setDefault sets an optional field to a value if it is unset.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// setValue sets a field to a value if it is empty.
func setValue[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}

// ensure creates an optional object if it is nil, and returns it.
func ensure[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

func setDuration(field **metav1.Duration, value time.Duration) {
	setDefault(field, metav1.Duration{Duration: value})
}
