package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
)

// ValidateScheduler checks the configuration of the gardener-scheduler.
func ValidateScheduler(config *schedulerconfigv1alpha1.SchedulerConfiguration) field.ErrorList {
	var errs field.ErrorList
	if config.ClientConnection != nil {
		errs = append(errs, client(config.ClientConnection, field.NewPath("clientConnection"))...)
	}
	errs = append(errs, leaderElection(config.LeaderElection)...)
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	path := field.NewPath("server")
	if server := config.Server.HealthProbes; server != nil {
		errs = append(errs, port(server.Port, path.Child("healthProbes"))...)
	}
	if server := config.Server.Metrics; server != nil {
		errs = append(errs, port(server.Port, path.Child("metrics"))...)
	}
	path = field.NewPath("schedulers")
	if scheduler := config.Schedulers.BackupBucket; scheduler != nil {
		errs = append(errs, notNegative(&scheduler.ConcurrentSyncs, path.Child("backupBucket", "concurrentSyncs"))...)
	}
	if scheduler := config.Schedulers.Shoot; scheduler != nil {
		errs = append(errs, notNegative(&scheduler.ConcurrentSyncs, path.Child("shoot", "concurrentSyncs"))...)
		errs = append(errs, supported(scheduler.Strategy, path.Child("shoot", "candidateDeterminationStrategy"), schedulerconfigv1alpha1.Strategies...)...)
	}
	return errs
}
