package tunnel

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/internal/process"
)

// Names of the commands.
const (
	ServerName         = "vpn-seed-server"
	AgentName          = "vpn-shoot"
	APIServerProxyName = "apiserver-proxy"
)

// Flags of the server's limits, which errors name.
const (
	flagMaxHandshakes      = "max-handshakes"
	flagMaxAgents          = "max-agents"
	flagMaxProxies         = "max-apiserver-proxies"
	flagMaxStreams         = "max-streams"
	flagMaxStreamsPerProxy = "max-streams-per-apiserver-proxy"
)

// common are the flags of all commands.
type common struct {
	certificateDirectory string
	caFile               string
	id                   string
	healthPort           int
	logLevel             string
}

func (c *common) add(flags *pflag.FlagSet) {
	flags.StringVar(&c.certificateDirectory, "certificate-directory", "", "directory with tls.crt and tls.key of this process")
	flags.StringVar(&c.caFile, "ca-file", "", "file with the CA bundle that the other side's certificate is verified with")
	flags.StringVar(&c.id, "id", "", "name of this instance; by default that of the host")
	flags.IntVar(&c.healthPort, "health-port", 8080, "port of /healthz, /readyz and /metrics")
	flags.StringVar(&c.logLevel, "log-level", "info", "info, debug or error")
}

// load reads the credentials, and sets the name of the instance if the flag does not.
func (c *common) load() (credentials, error) {
	creds, err := loadCredentials(c.certificateDirectory, c.caFile)
	if err != nil {
		return credentials{}, err
	}
	if c.id == "" {
		if c.id, err = os.Hostname(); err != nil {
			return credentials{}, fmt.Errorf("get the name of this instance: %w", err)
		}
	}
	return creds, nil
}

// command returns a command of the multi-call binary that runs a function.
func command(name, short, example string, flags func(*pflag.FlagSet), c *common, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Example: "  " + name + " " + example, Version: process.Version(), Args: cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := process.NewLogger(cmd.ErrOrStderr(), c.logLevel, "json")
			logger.Info("Starting "+name, "version", process.Version())
			err := run(logf.IntoContext(cmd.Context(), logger))
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
			}
			return err
		},
	}
	c.add(cmd.Flags())
	flags(cmd.Flags())
	return cmd
}

// NewServerCommand returns the command that runs a server until its context ends.
func NewServerCommand() *cobra.Command {
	var c common
	var o serverOptions
	return command(ServerName, "Forward connections of a shoot's kube-apiserver to agents in the shoot",
		"--certificate-directory=/etc/server --ca-file=/etc/ca/bundle.crt --apiserver=kube-apiserver:443",
		func(flags *pflag.FlagSet) {
			flags.IntVar(&o.tunnelPort, "tunnel-port", 8132, "port that agents and proxies connect to")
			flags.IntVar(&o.proxyPort, "proxy-port", 9443, "port of the HTTP proxy for connections into the shoot")
			flags.IntVar(&o.replicas, "replicas", 1, "number of instances; agents connect to all of them")
			limits := DefaultLimits()
			flags.IntVar(&o.limits.Handshakes, flagMaxHandshakes, limits.Handshakes, "maximum number of connections that are not authenticated yet; at more, the oldest one is closed")
			flags.IntVar(&o.limits.Agents, flagMaxAgents, limits.Agents, "maximum number of connections of agents")
			flags.IntVar(&o.limits.APIServerProxies, flagMaxProxies, limits.APIServerProxies, "maximum number of connections of proxies for the kube-apiserver, two for each node of the shoot")
			flags.IntVar(&o.limits.Streams, flagMaxStreams, limits.Streams, "maximum number of connections through the tunnel, in both directions")
			flags.IntVar(&o.limits.StreamsPerConnection, flagMaxStreamsPerProxy, limits.StreamsPerConnection, "maximum number of connections of pods of one node to the kube-apiserver")
			flags.StringVar(&o.apiServer, "apiserver", "kube-apiserver:443", "address of the kube-apiserver")
			flags.StringSliceVar(&o.agents, "agent", []string{"vpn-shoot-client"}, "common names of agents")
			flags.StringSliceVar(&o.proxies, "apiserver-proxy", []string{"apiserver-proxy-client"}, "common names of proxies for the kube-apiserver")
			flags.StringSliceVar(&o.clients, "proxy-client", []string{"kube-apiserver-http-proxy"}, "common names of clients of the HTTP proxy")
		}, &c, func(ctx context.Context) error { return runServer(ctx, &c, &o) })
}

// serverOptions are the flags of the server.
type serverOptions struct {
	tunnelPort, proxyPort, replicas int
	apiServer                       string
	agents, proxies, clients        []string
	limits                          Limits
}

func runServer(ctx context.Context, c *common, o *serverOptions) error {
	creds, err := c.load()
	if err != nil {
		return err
	}
	roles := map[string]Role{}
	for _, name := range o.agents {
		roles[name] = RoleAgent
	}
	for _, name := range o.proxies {
		roles[name] = RoleAPIServerProxy
	}
	return c.serve(ctx, func(running context.Context, metrics *Metrics) (*service, error) {
		server := NewServer(ServerValues{
			ID: c.id, Replicas: o.replicas, Roles: roles, ProxyClients: o.clients, APIServer: o.apiServer,
			Limits: o.limits, Metrics: metrics, Clock: clock.RealClock{},
		})
		tunnel, err := listen(running, o.tunnelPort)
		if err != nil {
			return nil, err
		}
		proxy, err := listen(running, o.proxyPort)
		if err != nil {
			_ = tunnel.Close()
			return nil, err
		}

		web := &http.Server{
			Handler: server, ReadHeaderTimeout: headersTimeout, BaseContext: func(net.Listener) context.Context { return running },
			ErrorLog: log.New(io.Discard, "", 0), // failed handshakes of probes and scanners
		}
		return &service{
			// It is ready without agents, as they connect through the same Service, which only has ready endpoints.
			ready: func() error { return nil }, healthy: server.Healthy, drain: server.Drain,
			run: []func() error{
				func() error { return server.ServeTunnel(running, tls.NewListener(tunnel, creds.forTunnelServer())) },
				func() error { return web.Serve(tls.NewListener(proxy, creds.forHTTPProxy())) },
			},
			stop: func() { _ = tunnel.Close(); _ = web.Close() },
		}, nil
	})
}

// client are the flags of agents and proxies, which connect to servers.
type client struct {
	common
	server     string
	serverName string
}

func (c *client) add(flags *pflag.FlagSet) {
	flags.StringVar(&c.server, "server", "", "address of the tunnel's server, usually of a gateway, with a port")
	flags.StringVar(&c.serverName, "server-name", "", "server name for SNI and in the server's certificate; by default the host")
}

// links returns the values for connections to servers.
func (c *client) links(role Role) (LinksValues, error) {
	creds, err := c.load()
	if err != nil {
		return LinksValues{}, err
	}
	host, _, err := net.SplitHostPort(c.server)
	if err != nil {
		return LinksValues{}, fmt.Errorf("--server: %w", err)
	}
	if c.serverName == "" {
		c.serverName = host
	}
	return LinksValues{
		Address: c.server, ID: c.id, Role: role, Clock: clock.RealClock{},
		TLS: creds.forClient(c.serverName),
	}, nil
}

// NewAgentCommand returns the command that runs an agent until its context ends.
func NewAgentCommand() *cobra.Command {
	var c client
	var networks []string
	return command(AgentName, "Connect the control plane of a shoot to its networks",
		"--server=tunnel.example.com:443 --certificate-directory=/etc/client --ca-file=/etc/ca/bundle.crt --network=10.0.0.0/8",
		func(flags *pflag.FlagSet) {
			c.add(flags)
			flags.StringSliceVar(&networks, "network", nil, "networks of nodes, pods and services; connections to anything else are refused")
		}, &c.common, func(ctx context.Context) error {
			values, err := c.links(RoleAgent)
			if err != nil {
				return err
			}
			agent := AgentValues{LinksValues: values}
			for _, network := range networks {
				prefix, err := netip.ParsePrefix(network)
				if err != nil {
					return fmt.Errorf("--network: %w", err)
				}
				agent.Networks = append(agent.Networks, prefix.Masked())
			}
			return c.serve(ctx, func(running context.Context, metrics *Metrics) (*service, error) {
				agent.Metrics = metrics
				links := NewAgent(agent)
				return &service{
					ready: links.Healthy, healthy: links.Healthy, drain: links.Drain, stop: func() {},
					run: []func() error{func() error { links.Run(running); return nil }},
				}, nil
			})
		})
}

// NewAPIServerProxyCommand returns the command that runs a proxy for the kube-apiserver until its context ends.
func NewAPIServerProxyCommand() *cobra.Command {
	var c client
	var bind, device string
	return command(APIServerProxyName, "Forward connections of pods to the kube-apiserver of their shoot",
		"--server=tunnel.example.com:443 --certificate-directory=/etc/client --ca-file=/etc/ca/bundle.crt --bind=240.0.0.1:443",
		func(flags *pflag.FlagSet) {
			c.add(flags)
			flags.StringVar(&bind, "bind", "", "address that the kube-apiserver advertises, with a port")
			flags.StringVar(&device, "device", "lo", "network device that gets the address; empty if a device has it already")
		}, &c.common, func(ctx context.Context) error {
			values, err := c.links(RoleAPIServerProxy)
			if err != nil {
				return err
			}
			address, err := netip.ParseAddrPort(bind)
			if err != nil {
				return fmt.Errorf("--bind: %w", err)
			}
			return c.serve(ctx, func(running context.Context, metrics *Metrics) (*service, error) {
				values.Metrics = metrics
				links := NewLinks(values)
				if device != "" {
					if err := assign(device, address.Addr()); err != nil {
						return nil, err
					}
				}
				listener, err := (&net.ListenConfig{}).Listen(running, "tcp", address.String())
				if err != nil {
					return nil, fmt.Errorf("listen: %w", err)
				}
				return &service{
					ready: links.Healthy, healthy: links.Healthy, drain: links.Drain, drainTimeout: proxyDrainTimeout,
					stop: func() { _ = listener.Close() }, // it accepts connections until then
					run: []func() error{
						func() error { links.Run(running); return nil },
						func() error { return links.Forward(running, listener) },
					},
				}, nil
			})
		})
}
