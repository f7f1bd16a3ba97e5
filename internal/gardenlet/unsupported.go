package gardenlet

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/internal/component/gateway"
)

// unsupported refuses settings of a valid configuration that nothing would act on, so that an operator does not rely on them. Settings of
// controllers that do not exist, such as concurrentSyncs, are accepted: without the controller, they change nothing.
func unsupported(c *Config) field.ErrorList {
	var errs field.ErrorList
	refuse := func(is bool, detail string, name string, more ...string) {
		if is {
			errs = append(errs, field.Forbidden(field.NewPath(name, more...), detail))
		}
	}
	defaults := &Config{}
	gardenletconfigv1alpha1.DefaultGardenletConfiguration(defaults)

	refuse(c.ShootClientConnection.Kubeconfig != "", "is not supported: every shoot has its own", "shootClientConnection", "kubeconfig")
	// The gateway has a name of its own, see docs/networking.md: gardener-operator deploys the same one, if a garden runs in the seed.
	refuse(*c.SNI.Ingress.Namespace != *defaults.SNI.Ingress.Namespace, "must have the default: the gateway of a seed is in namespace "+gateway.Namespace,
		"sni", "ingress", "namespace")
	refuse(*c.SNI.Ingress.ServiceName != *defaults.SNI.Ingress.ServiceName, "must have the default: the Service of a seed is "+gateway.Name,
		"sni", "ingress", "serviceName")

	logging := c.Logging
	refuse(ptr.Deref(logging.Enabled, false), "is not supported", "logging", "enabled")
	refuse(logging.VictoriaLogs != nil && ptr.Deref(logging.VictoriaLogs.Enabled, false), "is not supported", "logging", "victoriaLogs", "enabled")
	refuse(logging.ShootEventLogging != nil && ptr.Deref(logging.ShootEventLogging.Enabled, false), "is not supported", "logging", "shootEventLogging", "enabled")
	refuse(logging.ShootNodeLogging != nil && len(logging.ShootNodeLogging.ShootPurposes) > 0, "is not supported", "logging", "shootNodeLogging", "shootPurposes")

	monitoring := c.Monitoring.Shoot
	refuse(monitoring.RemoteWrite != nil, "is not supported: nothing collects metrics of shoots", "monitoring", "shoot", "remoteWrite")
	refuse(len(monitoring.ExternalLabels) > 0, "is not supported: nothing collects metrics of shoots", "monitoring", "shoot", "externalLabels")

	if compaction := c.ETCDConfig.BackupCompactionController; compaction != nil {
		refuse(ptr.Deref(compaction.EnableBackupCompaction, false), "is not supported", "etcdConfig", "backupCompactionController", "enableBackupCompaction")
	}
	refuse(len(c.ETCDConfig.FeatureGates) > 0, "etcd-druid has no feature gates", "etcdConfig", "featureGates")
	return errs
}
