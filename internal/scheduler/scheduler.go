// Package scheduler is gardener-scheduler, which finds seeds for shoots.
package scheduler

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/scheduler/shoot"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "gardener-scheduler"

type config = schedulerconfigv1alpha1.SchedulerConfiguration

// Component returns the scheduler.
func Component() process.Component[config] {
	return process.Component[config]{
		Name:   Name,
		Short:  "Find seeds for shoots",
		Config: configfile.Kind[config]{AddToScheme: schedulerconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateScheduler},
		Settings: func(c *config) process.Settings {
			return process.Settings{
				Client: *c.ClientConnection, LeaderElection: c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		Kinds:    []process.AddToScheme{corev1beta1.AddToScheme},
		Protobuf: []process.AddToScheme{corev1beta1.AddToScheme},
		Options:  func(_ *config, options *manager.Options) { options.Cache.ByObject = shoot.Cached() },
		Wire: func(_ context.Context, p *process.Process, c *config) error {
			return shoot.Add(p.Manager, shoot.Values{
				ConcurrentSyncs: c.Schedulers.Shoot.ConcurrentSyncs, Strategy: c.Schedulers.Shoot.Strategy, Metrics: p.Metrics,
			})
		},
	}
}
