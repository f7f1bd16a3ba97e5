package tunnel

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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

const (
	// drainTimeout is how long streams may live on when a process is to end. Its pod has 30 seconds.
	drainTimeout = 25 * time.Second
	// proxyDrainTimeout is the same for a proxy, whose pod has five: the next one comes when it is gone, and until then there is no way to
	// the kube-apiserver from its node.
	proxyDrainTimeout = 2 * time.Second
	// headersTimeout is how long a client may take for the headers of a request.
	headersTimeout = 10 * time.Second
)

// common are the flags that all commands have.
type common struct {
	certificates string
	ca           string
	id           string
	healthPort   int
	logLevel     string
}

func (c *common) add(flags *pflag.FlagSet) {
	flags.StringVar(&c.certificates, "certificate-directory", "", "directory with tls.crt and tls.key of this process")
	flags.StringVar(&c.ca, "ca-file", "", "file with the certificate authorities that the other side's certificate comes from")
	flags.StringVar(&c.id, "id", "", "name of this instance; by default that of the host")
	flags.IntVar(&c.healthPort, "health-port", 8080, "port of /healthz, /readyz and /metrics")
	flags.StringVar(&c.logLevel, "log-level", "info", "info, debug or error")
}

// load reads the files, and finds out the name of the instance.
func (c *common) load() (tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.certificates, "tls.crt"), filepath.Join(c.certificates, "tls.key"))
	if err != nil {
		return pair, nil, fmt.Errorf("read certificate: %w", err)
	}
	bundle, err := os.ReadFile(c.ca)
	if err != nil {
		return pair, nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return pair, nil, fmt.Errorf("read certificate authorities: there are none in %q", c.ca)
	}
	if c.id == "" {
		if c.id, err = os.Hostname(); err != nil {
			return pair, nil, fmt.Errorf("find out the name of this instance: %w", err)
		}
	}
	return pair, pool, nil
}

// command makes a command of what it does.
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
	return command(ServerName, "Lead the kube-apiserver of a shoot into its networks",
		"--certificate-directory=/etc/server --ca-file=/etc/ca/bundle.crt --apiserver=kube-apiserver:443",
		func(flags *pflag.FlagSet) {
			flags.IntVar(&o.tunnelPort, "tunnel-port", 8132, "port that agents and proxies connect to")
			flags.IntVar(&o.proxyPort, "proxy-port", 9443, "port of the HTTP proxy for connections into the shoot")
			flags.IntVar(&o.replicas, "replicas", 1, "number of instances; agents connect to all of them")
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
}

func runServer(ctx context.Context, c *common, o *serverOptions) error {
	pair, pool, err := c.load()
	if err != nil {
		return err
	}
	secure := func(lowest uint16) *tls.Config {
		return &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: lowest,
			// CONNECT takes the whole connection, so HTTP/2 is not offered.
			NextProtos: []string{"http/1.1"},
		}
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
			ID: c.id, Replicas: o.replicas, Roles: roles, ProxyClients: o.clients, APIServer: o.apiServer, Metrics: metrics, Clock: clock.RealClock{},
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
		tunnelTLS := secure(tls.VersionTLS13)
		tunnelTLS.NextProtos = nil
		web := &http.Server{
			Handler: server, ReadHeaderTimeout: headersTimeout, BaseContext: func(net.Listener) context.Context { return running },
			ErrorLog: log.New(io.Discard, "", 0), // probes and scanners
		}
		return &service{
			// It is ready without agents: these come through the same Service.
			ready: func() error { return nil }, healthy: server.Healthy, drain: server.Drain,
			run: []func() error{
				func() error { return server.ServeTunnel(running, tls.NewListener(tunnel, tunnelTLS)) },
				func() error { return web.Serve(tls.NewListener(proxy, secure(tls.VersionTLS12))) },
			},
			stop: func() { _ = tunnel.Close(); _ = web.Close() },
		}, nil
	})
}

// client are the flags of what connects to servers.
type client struct {
	common
	server     string
	serverName string
}

func (c *client) add(flags *pflag.FlagSet) {
	flags.StringVar(&c.server, "server", "", "address of the tunnel's server, usually of a gateway, with a port")
	flags.StringVar(&c.serverName, "server-name", "", "name that the server is asked for by, and has in its certificate; by default the host")
}

// links returns the values for connections.
func (c *client) links(role Role) (LinksValues, error) {
	pair, pool, err := c.load()
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
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: c.serverName, MinVersion: tls.VersionTLS13},
	}, nil
}

// NewAgentCommand returns the command that runs an agent until its context ends.
func NewAgentCommand() *cobra.Command {
	var c client
	var networks []string
	return command(AgentName, "Take connections from the control plane into the networks of a shoot",
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
	return command(APIServerProxyName, "Lead pods of a shoot to their kube-apiserver",
		"--server=tunnel.example.com:443 --certificate-directory=/etc/client --ca-file=/etc/ca/bundle.crt --bind=240.0.0.1:443",
		func(flags *pflag.FlagSet) {
			c.add(flags)
			flags.StringVar(&bind, "bind", "", "address that the kube-apiserver advertises, with a port")
			flags.StringVar(&device, "device", "lo", "network device that gets the address; empty if it is there already")
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
					stop: func() { _ = listener.Close() }, // until then it does its work
					run: []func() error{
						func() error { links.Run(running); return nil },
						func() error { return links.Forward(running, listener) },
					},
				}, nil
			})
		})
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// service is what a process does until it is told to stop.
type service struct {
	// ready says whether it does its work, healthy whether bytes went through the tunnel lately.
	ready, healthy func() error
	// run has functions that return an error if they cannot go on, and nil at the end.
	run []func() error
	// drain waits for what is under way, drainTimeout at most; zero is the constant. stop ends what does not end with its context.
	drain        func(context.Context)
	drainTimeout time.Duration
	stop         func()
}

// serve runs a service until the context ends, and what is under way a little longer.
func (c *common) serve(ctx context.Context, start func(context.Context, *Metrics) (*service, error)) error {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	err = errors.Join(err, registry.Register(collectors.NewGoCollector()), registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s, err := start(running, metrics)
	if err != nil {
		return err
	}
	defer s.stop()
	health, err := listen(running, c.healthPort)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(ctx, s, registry), ReadHeaderTimeout: headersTimeout}
	defer server.Close() //nolint:errcheck // the process ends
	failed := make(chan error, len(s.run)+1)
	go func() { failed <- server.Serve(health) }()
	for _, run := range s.run {
		go func() {
			if err := run(); err != nil {
				failed <- err
			}
		}()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	timeout := cmp.Or(s.drainTimeout, drainTimeout)
	logf.FromContext(ctx).Info("Waiting for streams to end", "timeout", timeout.String())
	draining, cancel := context.WithTimeout(running, timeout)
	defer cancel()
	s.drain(draining)
	return nil
}

// handler answers probes.
func handler(ctx context.Context, s *service, registry *prometheus.Registry) http.Handler {
	answer := func(check func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, "ok")
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", answer(func() error { return nil }))
	mux.HandleFunc("/readyz", answer(func() error { return errors.Join(context.Cause(ctx), s.ready()) }))
	mux.HandleFunc("/tunnel", answer(s.healthy))
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}
