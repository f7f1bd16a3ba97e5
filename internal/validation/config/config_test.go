package config_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shootdnsrewritingv1alpha1 "gardener.cloud/gardener/api/config/admission/shootdnsrewriting/v1alpha1"
	shootresourcereservationv1alpha1 "gardener.cloud/gardener/api/config/admission/shootresourcereservation/v1alpha1"
	shoottolerationrestrictionv1alpha1 "gardener.cloud/gardener/api/config/admission/shoottolerationrestriction/v1alpha1"
	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/validation/config"
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// check expects a configuration to be valid, and after a change to have errors at these paths.
func check[T any](t *testing.T, config *T, setDefaults func(*T), validate func(*T) field.ErrorList, change func(*T), want ...string) {
	t.Helper()
	setDefaults(config)
	if errs := validate(config); len(errs) > 0 {
		t.Errorf("the defaults are refused: %v", errs.ToAggregate())
	}
	change(config)
	var got []string
	for _, err := range validate(config) {
		got = append(got, err.Field)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAdmissionController(t *testing.T) {
	c := &admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration{}
	c.Server.Webhooks.TLS.ServerCertDir = "/tls"
	check(t, c, admissioncontrollerconfigv1alpha1.SetDefaults, config.ValidateAdmissionController, func(c *admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration) {
		c.GardenClientConnection.Burst = -1
		c.LogLevel, c.LogFormat = "loud", "xml"
		c.Server.Webhooks.Port, c.Server.Webhooks.TLS.ServerCertDir, c.Server.Metrics.Port = 70000, "", -1
		c.Server.ResourceAdmissionConfiguration = &admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{
			Limits: []admissioncontrollerconfigv1alpha1.ResourceLimit{
				{},
				{APIGroups: []string{""}, APIVersions: []string{""}, Resources: []string{"*"}, Size: new(resource.MustParse("-1")), Count: new(int64(-1))},
			},
			UnrestrictedSubjects: []rbacv1.Subject{
				{Kind: "User", Name: "a", APIGroup: rbacv1.GroupName}, {Kind: "Group", Namespace: "x"}, {Kind: "ServiceAccount", Name: "b"}, {Kind: "Robot", Name: "c"},
			},
			OperationMode: new(admissioncontrollerconfigv1alpha1.ResourceAdmissionWebhookMode("ignore")),
		}
	},
		"gardenClientConnection.burst", "logLevel", "logFormat", "server.webhooks.port", "server.webhooks.tls.serverCertDir", "server.metrics.port",
		"server.resourceAdmissionConfiguration.limits[0].apiGroups", "server.resourceAdmissionConfiguration.limits[0].apiVersions",
		"server.resourceAdmissionConfiguration.limits[0].resources", "server.resourceAdmissionConfiguration.limits[0]",
		"server.resourceAdmissionConfiguration.limits[1].apiVersions[0]", "server.resourceAdmissionConfiguration.limits[1].size",
		"server.resourceAdmissionConfiguration.limits[1].count",
		"server.resourceAdmissionConfiguration.unrestrictedSubjects[1].name", "server.resourceAdmissionConfiguration.unrestrictedSubjects[1].apiGroup",
		"server.resourceAdmissionConfiguration.unrestrictedSubjects[1].namespace", "server.resourceAdmissionConfiguration.unrestrictedSubjects[2].namespace",
		"server.resourceAdmissionConfiguration.unrestrictedSubjects[3].kind", "server.resourceAdmissionConfiguration.operationMode",
	)
}

func TestControllerManager(t *testing.T) {
	check(t, &controllermanagerconfigv1alpha1.ControllerManagerConfiguration{}, controllermanagerconfigv1alpha1.SetDefaults, config.ValidateControllerManager,
		func(c *controllermanagerconfigv1alpha1.ControllerManagerConfiguration) {
			c.LeaderElection.LeaseDuration, c.LeaderElection.ResourceLock, c.LeaderElection.ResourceName = *seconds(5), "endpoints", ""
			c.Controllers.Bastion.ConcurrentSyncs, c.Controllers.Bastion.MaxLifetime = new(-1), seconds(0)
			c.Controllers.Plant.ConcurrentSyncs, c.Controllers.Plant.SyncPeriod, c.Controllers.Plant.AllowCIDRs = new(-1), seconds(0), []string{"10.0.0.0/8", "10.0.0.1"}
			c.Controllers.ShootRetry.RetryJitterPeriod = seconds(-1)
			c.Controllers.Event = &controllermanagerconfigv1alpha1.EventControllerConfiguration{TTLNonShootEvents: seconds(-1)}
			c.Controllers.SeedExtensionsCheck.ConditionThresholds = []controllermanagerconfigv1alpha1.ConditionThreshold{{Duration: *seconds(-1)}}
			c.Controllers.Project.Quotas = []controllermanagerconfigv1alpha1.QuotaConfiguration{{ProjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}}
		},
		"leaderElection.leaseDuration", "leaderElection.resourceLock", "leaderElection.resourceName", "controllers.bastion.concurrentSyncs",
		"controllers.plant.concurrentSyncs", "controllers.bastion.maxLifetime", "controllers.plant.syncPeriod", "controllers.plant.allowCIDRs[1]", "controllers.shootRetry.retryJitterPeriod", "controllers.event.ttlNonShootEvents",
		"controllers.seedExtensionsCheck.conditionThresholds[0].type", "controllers.seedExtensionsCheck.conditionThresholds[0].duration",
		"controllers.project.quotas[0].config.spec.hard", "controllers.project.quotas[0].projectSelector.matchLabels",
	)
}

func TestScheduler(t *testing.T) {
	check(t, &schedulerconfigv1alpha1.SchedulerConfiguration{}, schedulerconfigv1alpha1.SetDefaults, config.ValidateScheduler,
		func(c *schedulerconfigv1alpha1.SchedulerConfiguration) {
			c.LeaderElection.RetryPeriod = *seconds(10)
			c.Schedulers.BackupBucket.ConcurrentSyncs, c.Schedulers.Shoot.ConcurrentSyncs, c.Schedulers.Shoot.Strategy = -1, -1, "Random"
		},
		"leaderElection.renewDeadline", "schedulers.backupBucket.concurrentSyncs", "schedulers.shoot.concurrentSyncs", "schedulers.shoot.candidateDeterminationStrategy",
	)
	off := &schedulerconfigv1alpha1.SchedulerConfiguration{}
	schedulerconfigv1alpha1.SetDefaults(off)
	off.LeaderElection.LeaderElect, off.LeaderElection.ResourceName = new(false), ""
	if errs := config.ValidateScheduler(off); len(errs) > 0 {
		t.Errorf("disabled leader election is validated: %v", errs.ToAggregate())
	}
}

func TestProviderLocal(t *testing.T) {
	c := &providerlocalconfigv1alpha1.ProviderLocalConfiguration{Namespace: "extension-provider-local", DNS: providerlocalconfigv1alpha1.DNSConfiguration{Zones: []string{"local.example."}}}
	check(t, c, providerlocalconfigv1alpha1.SetDefaults, config.ValidateProviderLocal, func(c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) {
		c.Namespace, c.DNS.Port, c.DNS.Zones, c.Backup.Directory, c.Backup.HostPath = "", 70000, []string{"*.example"}, "backups", ""
		c.Server.Metrics.Port, c.ExtensionClasses = -1, []extensionsv1alpha1.ExtensionClass{"garden", "virtual"}
	}, "server.metrics.port", "namespace", "extensionClasses[1]", "dns.port", "dns.zones[0]", "backup.directory", "backup.hostPath")
}

func TestNodeAgent(t *testing.T) {
	c := &nodeagentconfigv1alpha1.NodeAgentConfiguration{APIServer: nodeagentconfigv1alpha1.APIServer{Server: "https://api.example.com", CAFile: "/ca.crt"}}
	c.Controllers.OperatingSystemConfig.SecretName, c.Controllers.OperatingSystemConfig.KubernetesVersion = "osc", "v1.33.0"
	check(t, c, nodeagentconfigv1alpha1.SetDefaults, config.ValidateNodeAgent, func(c *nodeagentconfigv1alpha1.NodeAgentConfiguration) {
		c.APIServer = nodeagentconfigv1alpha1.APIServer{Server: "api.example.com"}
		c.Bootstrap = &nodeagentconfigv1alpha1.BootstrapConfiguration{KubeletDataVolumeSize: new(int64(0))}
		c.Controllers.OperatingSystemConfig = nodeagentconfigv1alpha1.OperatingSystemConfigControllerConfig{SyncPeriod: seconds(0)}
		c.Controllers.Token.SyncConfigs = []nodeagentconfigv1alpha1.TokenSecretSyncConfig{{SecretName: "a", Path: "/a"}, {SecretName: "b", Path: "/a"}, {Path: "b"}, {SecretName: "c"}}
	},
		"apiServer.server", "apiServer.caFile", "bootstrap.kubeletDataVolumeSize", "controllers.operatingSystemConfig.syncPeriod",
		"controllers.operatingSystemConfig.secretName", "controllers.operatingSystemConfig.kubernetesVersion", "controllers.token.syncConfigs[1].path",
		"controllers.token.syncConfigs[2].secretName", "controllers.token.syncConfigs[2].path", "controllers.token.syncConfigs[3].path",
	)
}

func TestOperator(t *testing.T) {
	check(t, &operatorconfigv1alpha1.OperatorConfiguration{}, operatorconfigv1alpha1.SetDefaults, config.ValidateOperator,
		func(c *operatorconfigv1alpha1.OperatorConfiguration) {
			c.Server.HealthProbes.Port = 0
			c.Controllers.NetworkPolicy.ConcurrentSyncs, c.Controllers.Garden.SyncPeriod = new(-1), seconds(0)
			c.Controllers.NetworkPolicy.AdditionalNamespaceSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"a b": "c"}}}
			c.Controllers.GardenCare.ConditionThresholds = []operatorconfigv1alpha1.ConditionThreshold{{}}
			c.NodeToleration = &operatorconfigv1alpha1.NodeTolerationConfiguration{DefaultNotReadyTolerationSeconds: new(int64(-1))}
		},
		"server.healthProbes.port", "controllers.networkPolicy.concurrentSyncs", "controllers.garden.syncPeriod", "controllers.gardenCare.conditionThresholds[0].type",
		"controllers.networkPolicy.additionalNamespaceSelectors[0].matchLabels", "nodeToleration.defaultNotReadyTolerationSeconds",
	)
}

func TestResourceManager(t *testing.T) {
	check(t, &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}, resourcemanagerconfigv1alpha1.SetDefaults, config.ValidateResourceManager,
		func(c *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration) {
			c.SourceClientConnection.CacheResyncPeriod = seconds(1)
			c.Controllers.ResourceClass, c.Controllers.ManagedResource.ManagedByLabelValue = new(""), new("")
			c.Controllers.Health.SyncPeriod, c.Controllers.ManagedResource.ConcurrentSyncs = seconds(14), new(-1)
			c.Controllers.NetworkPolicy.Enabled = true
			c.Controllers.NetworkPolicy.IngressControllerSelector = &resourcemanagerconfigv1alpha1.IngressControllerSelector{}
			c.Controllers.NodeAgentReconciliationDelay = resourcemanagerconfigv1alpha1.NodeAgentReconciliationDelayControllerConfig{Enabled: true, MinDelay: seconds(2), MaxDelay: seconds(1)}
			c.Webhooks.KubernetesServiceHost.Enabled = true
			c.Webhooks.ProjectedTokenMount = resourcemanagerconfigv1alpha1.ProjectedTokenMountWebhookConfig{Enabled: true, ExpirationSeconds: new(int64(60))}
			c.Webhooks.PodSchedulerName = resourcemanagerconfigv1alpha1.PodSchedulerNameWebhookConfig{Enabled: true, SchedulerName: new("")}
		},
		"sourceClientConnection.cacheResyncPeriod", "controllers.resourceClass", "controllers.health.syncPeriod", "controllers.managedResource.managedByLabelValue",
		"controllers.managedResource.concurrentSyncs", "controllers.networkPolicy.ingressControllerSelector.namespace", "controllers.nodeAgentReconciliationDelay.minDelay",
		"webhooks.kubernetesServiceHost.host", "webhooks.podSchedulerName.schedulerName", "webhooks.projectedTokenMount.expirationSeconds",
	)
}

func TestAdmissionPlugins(t *testing.T) {
	check(t, &shootdnsrewritingv1alpha1.Configuration{CommonSuffixes: []string{"example.com", ".sub.example.com"}}, func(*shootdnsrewritingv1alpha1.Configuration) {},
		config.ValidateShootDNSRewriting, func(c *shootdnsrewritingv1alpha1.Configuration) {
			c.CommonSuffixes = []string{"com", "a b", "example.com", ".example.com"}
		}, "commonSuffixes[0]", "commonSuffixes[1]", "commonSuffixes[3]")

	check(t, &shootresourcereservationv1alpha1.Configuration{UseGKEFormula: true, Selector: &metav1.LabelSelector{}}, func(*shootresourcereservationv1alpha1.Configuration) {},
		config.ValidateShootResourceReservation, func(c *shootresourcereservationv1alpha1.Configuration) { c.UseGKEFormula = false }, "selector")

	check(t, &shoottolerationrestrictionv1alpha1.Configuration{Whitelist: []corev1beta1.Toleration{{Key: "a"}}}, func(*shoottolerationrestrictionv1alpha1.Configuration) {},
		config.ValidateShootTolerationRestriction, func(c *shoottolerationrestrictionv1alpha1.Configuration) {
			c.Defaults = []corev1beta1.Toleration{{}, {Key: "a", Value: new("b c")}}
			c.Whitelist = append(c.Whitelist, corev1beta1.Toleration{Key: "a"})
		}, "defaults[0].key", "defaults[0].key", "defaults[1].value", "whitelist[1]")
}

func TestBackupRestoreSchedules(t *testing.T) {
	for schedule, want := range map[string]bool{
		"0 2 * * *":  true,
		"0 2 31 * *": true, // some months have one
		"0 2 31 2 *": false,
		"daily":      false,
	} {
		c := &backuprestoreconfigv1alpha1.BackupRestoreConfiguration{
			Defragmentation: &backuprestoreconfigv1alpha1.Defragmentation{Schedule: schedule},
		}
		backuprestoreconfigv1alpha1.SetDefaults_BackupRestoreConfiguration(c)
		refused := slices.ContainsFunc(config.ValidateBackupRestore(c), func(err *field.Error) bool { return err.Field == "defragmentation.schedule" })
		if refused == want {
			t.Errorf("%q is refused: %t", schedule, refused)
		}
	}
}
