package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
)

// ValidateEtcdDruid checks the configuration of etcd-druid.
func ValidateEtcdDruid(config *etcddruidconfigv1alpha1.EtcdDruidConfiguration) field.ErrorList {
	errs := client(config.ClientConnection, field.NewPath("clientConnection"))
	errs = append(errs, leaderElection(config.LeaderElection)...)
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	path := field.NewPath("server")
	errs = append(errs, port(config.Server.HealthProbes.Port, path.Child("healthProbes"))...)
	errs = append(errs, port(config.Server.Metrics.Port, path.Child("metrics"))...)
	path = field.NewPath("images")
	errs = append(errs, required(config.Images.Etcd, path.Child("etcd"))...)
	errs = append(errs, required(config.Images.BackupRestore, path.Child("backupRestore"))...)
	path = field.NewPath("controllers")
	etcd := &config.Controllers.Etcd
	errs = append(errs, notNegative(&etcd.ConcurrentSyncs, path.Child("etcd", "concurrentSyncs"))...)
	errs = append(errs, notNegative(&config.Controllers.EtcdCopyBackupsTask.ConcurrentSyncs, path.Child("etcdCopyBackupsTask", "concurrentSyncs"))...)
	unknown, notReady := etcd.MemberUnknownAfter.Duration, etcd.MemberNotReadyAfter.Duration
	if unknown <= 0 {
		errs = append(errs, field.Invalid(path.Child("etcd", "memberUnknownAfter"), unknown.String(), "must be above zero"))
	}
	if notReady < unknown {
		errs = append(errs, field.Invalid(path.Child("etcd", "memberNotReadyAfter"), notReady.String(), "must not be shorter than memberUnknownAfter"))
	}
	return errs
}
