// Package process starts, runs and stops the components of Gardener.
//
// A component describes how its configuration file is read, which of its settings are common to all processes, and how its controllers are
// wired. It gets a command with one flag, --config, that reads the file strictly, logs, elects a leader, serves health, metrics and, if
// enabled, profiles, and shuts down gracefully when its context ends.
//
//	func Component() process.Component[schedulerconfigv1alpha1.SchedulerConfiguration] {
//		return process.Component[schedulerconfigv1alpha1.SchedulerConfiguration]{
//			Name:  "gardener-scheduler",
//			Short: "Choose seeds for shoots",
//			Config: configfile.Kind[schedulerconfigv1alpha1.SchedulerConfiguration]{
//				AddToScheme: schedulerconfigv1alpha1.AddToScheme,
//				Validate:    configvalidation.ValidateScheduler,
//			},
//			Settings: func(c *schedulerconfigv1alpha1.SchedulerConfiguration) process.Settings {
//				return process.Settings{
//					Client: *c.ClientConnection, LeaderElection: c.LeaderElection,
//					LogLevel: c.LogLevel, LogFormat: c.LogFormat,
//					Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
//					Debugging: c.Debugging, FeatureGates: c.FeatureGates,
//				}
//			},
//			Kinds: []process.AddToScheme{corev1beta1.AddToScheme},
//			Wire: func(_ context.Context, p *process.Process, c *schedulerconfigv1alpha1.SchedulerConfiguration) error {
//				return shoot.Add(p.Manager, shoot.Options{Config: *c.Schedulers.Shoot, Metrics: p.Metrics})
//			},
//		}
//	}
//
// cmd/gardener lists the components: `scheduler.Name: scheduler.Component().Command`.
//
// The manager is for the cluster of Settings.Client, which also has the Lease of the leader election. A component that uses more
// clusters adds them in Wire:
//
//	config, err := process.ClientConfig(c.TargetClientConnection.ClientConnectionConfiguration)
//	...
//	target, err := p.AddCluster("target", config, func(o *cluster.Options) { o.Scheme = targetScheme })
//
// Their informers start and stop with the process, and readiness waits for them.
//
// Nothing here or in a component uses init: feature gates, metrics and kinds are registered where the process is wired. The
// runtime heeds GOMEMLIMIT; the limit is logged at the start.
package process
