// Package nodeagent is the gardener-node-agent, which runs on each machine of a shoot, turns it into a node, and keeps it up to date.
//
// On a new machine, the user data starts "gardener-node-agent bootstrap", which makes the agent a service. The agent requests a
// certificate, reads the Secret with the operating system config, and applies it; then the kubelet starts and creates its Node.
// Source: concepts.txt, Gardener Node Agent.
package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	componentosc "gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/nodeagent/access"
	"gardener.cloud/gardener/internal/nodeagent/bootstrap"
	"gardener.cloud/gardener/internal/nodeagent/health"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/lease"
	"gardener.cloud/gardener/internal/nodeagent/node"
	"gardener.cloud/gardener/internal/nodeagent/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/secretname"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
	"gardener.cloud/gardener/internal/nodeagent/token"
	"gardener.cloud/gardener/internal/nodeagent/unitcheck"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "gardener-node-agent"

const (
	// root is the root directory of the machine.
	root rootfs.Dir = "/"
	// hostnameEvery is how often the hostname of the machine is checked. It changes while a machine boots, if ever.
	hostnameEvery = time.Minute
	// commandTimeout is how long the command of an operating system's update may take.
	commandTimeout = 5 * time.Minute
)

// Config is the type of the configuration file.
type Config = nodeagentconfigv1alpha1.NodeAgentConfiguration

var configKind = configfile.Kind[Config]{AddToScheme: nodeagentconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateNodeAgent}

// NewCommand returns the command. It requests a certificate for the shoot before it runs controllers, and ends when it has to restart, which
// systemd does.
func NewCommand() *cobra.Command {
	restart := func() {}
	cmd := component(func() { restart() }).Command()
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithCancel(cmd.Context())
		cmd.SetContext(ctx)
		restart = cancel
		return withConfig(cmd, func(ctx context.Context, config *Config) error {
			hostname, err := hostname()
			if err != nil {
				return err
			}
			return access.Ensure(ctx, accessValues(config, hostname))
		})
	}
	bootstrapCommand := &cobra.Command{
		Use:     "bootstrap",
		Short:   "Make the gardener-node-agent a service of this machine",
		Example: "  " + Name + " bootstrap --config=config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withConfig(cmd, func(ctx context.Context, config *Config) error {
				return bootstrap.Run(ctx, root, &systemd.Conn{}, config.Bootstrap)
			})
		},
		SilenceErrors: true, SilenceUsage: true,
	}
	bootstrapCommand.Flags().String("config", "", "path of the configuration file")
	cmd.AddCommand(bootstrapCommand)
	return cmd
}

// withConfig calls a function with the configuration of a command, and a logger as configured there.
func withConfig(cmd *cobra.Command, run func(context.Context, *Config) error) error {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return err
	}
	config, err := configKind.Read(file)
	if err == nil {
		err = run(logr.NewContext(cmd.Context(), process.NewLogger(cmd.ErrOrStderr(), config.LogLevel, config.LogFormat)), config)
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
	}
	return err
}

// hostname is the hostname of the machine, which is the name of its Node.
func hostname() (string, error) {
	name, err := os.Hostname()
	return strings.ToLower(strings.TrimSpace(name)), err
}

func accessValues(config *Config, hostname string) access.Values {
	return access.Values{
		Root: root, APIServer: config.APIServer, Kubeconfig: config.ClientConnection.Kubeconfig, Hostname: hostname, Clock: clock.RealClock{},
	}
}

// component describes the process. Its manager is one of the shoot.
func component(restart func()) process.Component[Config] {
	return process.Component[Config]{
		Name:   Name,
		Short:  "Turn a machine into a node, and keep it up to date",
		Config: configKind,
		Settings: func(c *Config) process.Settings {
			return process.Settings{
				Client: c.ClientConnection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		Options: func(c *Config, options *manager.Options) {
			name, err := hostname()
			if err != nil {
				return // wire returns the error
			}
			options.Cache.ByObject = byObject(name, c.Controllers.OperatingSystemConfig.SecretName)
		},
		Wire: func(ctx context.Context, p *process.Process, c *Config) error { return wire(ctx, p, c, restart) },
	}
}

// byObject restricts the cache to one Node and one Secret. An agent may read no others.
func byObject(node, secret string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Node{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, node)},
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}}, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, secret),
		},
	}
}

func wire(_ context.Context, p *process.Process, c *Config, restart func()) error {
	name, err := hostname()
	if err != nil {
		return err
	}
	kubeletHealth := func() *health.Check {
		return health.Kubelet(fmt.Sprintf("http://127.0.0.1:%d/healthz", componentosc.KubeletHealthPort))
	}
	m := machine{
		root: root, systemd: &systemd.Conn{}, hostname: name, checks: []*health.Check{health.Containerd(componentosc.ContainerdSocket), kubeletHealth()},
		kubeletHealthy: kubeletHealth().Run, access: accessValues(c, name),
	}
	clk := clock.RealClock{}
	return errors.Join( // each is only added; none runs if one fails
		m.addControllers(p, clk, c, restart),
		p.Add(manager.RunnableFunc(func(ctx context.Context) error {
			return access.Keep(logr.NewContext(ctx, p.GetLogger().WithName("certificate")), accessValues(c, name), restart)
		})),
		p.Add(manager.RunnableFunc(func(ctx context.Context) error {
			return checkHostname(logr.NewContext(ctx, p.GetLogger().WithName("hostname-check")), clk, name, hostname, restart)
		})),
	)
}

// machine is the machine that the agent runs on.
type machine struct {
	root     rootfs.Dir
	systemd  operatingsystemconfig.Systemd
	hostname string
	checks   []*health.Check
	// kubeletHealthy returns why the kubelet is not healthy.
	kubeletHealthy func(context.Context, *corev1.Node) error
	access         access.Values
}

// run runs a command on the machine, for at most as long as an update of an operating system may take.
func run(ctx context.Context, command string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	output, err := exec.CommandContext(ctx, command, args...).CombinedOutput()
	return string(output), err
}

// deletePods deletes the pods of a Node. Those of static manifests come back with it.
func deletePods(ctx context.Context, api client.Client, node string) error {
	pods := &corev1.PodList{}
	if err := api.List(ctx, pods, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)}); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if err := api.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete Pod %s: %w", client.ObjectKeyFromObject(pod), err))
		}
	}
	return errors.Join(errs...)
}

// addControllers adds the controllers.
func (m machine) addControllers(mgr manager.Manager, clk clock.Clock, c *Config, restart func()) error {
	// Leases and tokens are read from the API server: a cache would need a watch for each.
	api, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return err
	}
	cached, recorder := mgr.GetClient(), mgr.GetEventRecorder(Name)
	kubelet := kubelet{root: m.root, server: c.APIServer}
	osc := c.Controllers.OperatingSystemConfig
	tokens := token.Values{API: api, Root: m.root, Configs: c.Controllers.Token.SyncConfigs, SyncPeriod: c.Controllers.Token.SyncPeriod.Duration}
	return errors.Join(
		operatingsystemconfig.Add(mgr, operatingsystemconfig.Values{
			Client: cached, Recorder: recorder, Clock: clk, Root: m.root, Systemd: m.systemd, Hostname: m.hostname,
			SecretName: osc.SecretName, KubernetesVersion: osc.KubernetesVersion, SyncPeriod: osc.SyncPeriod.Duration,
			PrepareKubelet: kubelet.prepare, TidyKubelet: kubelet.tidy, Extract: imagefile.Extract, Probe: imagefile.Probe,
			RenewCertificate:   func(ctx context.Context) error { return access.Renew(ctx, m.access) },
			RebootstrapKubelet: kubelet.rebootstrap,
			SyncTokens:         func(ctx context.Context) error { return token.Sync(ctx, tokens) },
			KubeletHealthy:     m.kubeletHealthy,
			DeletePods:         func(ctx context.Context, node string) error { return deletePods(ctx, api, node) },
			Run:                run,
		}),
		lease.Add(mgr, lease.Values{Cache: cached, API: api, Clock: clk}),
		node.Add(mgr, node.Values{Client: cached, Recorder: recorder, Systemd: m.systemd}),
		token.Add(mgr, tokens),
		health.Add(mgr, health.Values{
			Client: cached, Recorder: recorder, Clock: clk, Systemd: m.systemd, Hostname: m.hostname, Checks: m.checks,
			Joined: func() bool { return m.root.Exists(componentosc.KubeletKubeconfig) },
		}),
		unitcheck.Add(mgr, unitcheck.Values{
			Client: cached, Clock: clk, Root: m.root, Systemd: m.systemd,
			SyncPeriod: c.Controllers.SystemdUnitCheck.SyncPeriod.Duration, StuckThreshold: c.Controllers.SystemdUnitCheck.StuckThreshold.Duration,
		}),
		secretname.Add(mgr, secretname.Values{
			Client: cached, Root: m.root, ConfigFile: componentosc.NodeAgentConfigFile, SecretName: osc.SecretName, Restart: restart,
		}),
	)
}

// checkHostname restarts the process when the hostname of the machine changes, as its cache and its controllers are for the Node of the
// old name.
func checkHostname(ctx context.Context, clk clock.WithTicker, name string, current func() (string, error), restart func()) error {
	ticker := clk.NewTicker(hostnameEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		now, err := current()
		if err != nil {
			return fmt.Errorf("read hostname: %w", err)
		}
		if now != name {
			logr.FromContextOrDiscard(ctx).Info("Restarting, as the hostname changed", "before", name, "now", now)
			restart()
			return nil
		}
	}
}
