// Package process is how our components start, run and stop.
//
// A component describes itself once: how its configuration file is read, which of its settings are those that every process has, and
// how its controllers are wired. What it gets for that is a command with one flag, --config, that reads the file strictly, logs, elects
// a leader, serves health, metrics and, if asked to, profiles, and ends in order when its context does.
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
// The manager belongs to the cluster of Settings.Client, where the Lease of the leader election is too. A component that talks to more
// clusters adds them in Wire:
//
//	config, err := process.ClientConfig(c.TargetClientConnection.ClientConnectionConfiguration)
//	...
//	target, err := p.AddCluster("target", config, func(o *cluster.Options) { o.Scheme = targetScheme })
//
// Their informers start and stop with the process, and count for its readiness.
//
// Nothing here or in a component uses init: feature gates, metrics and kinds are registered where the process is wired. The
// runtime heeds GOMEMLIMIT; the limit is logged at the start.
package process
