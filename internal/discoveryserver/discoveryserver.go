package discoveryserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
)

// Name is the name of the command.
const Name = "gardener-discovery-server"

// Limits of what strangers can take. All requests are small, and so are the answers.
const (
	maxConnections = 2000
	maxStreams     = 20 // requests at a time over one connection of HTTP/2
	maxHeaderBytes = 8 << 10
	headersWithin  = 5 * time.Second
	answeredWithin = 10 * time.Second
	idleWithin     = 30 * time.Second
	closedWithin   = 5 * time.Second
)

// The first of each is the default.
var (
	logLevels  = []string{"info", "debug", "error"}
	logFormats = []string{"json", "text"}
)

// options are the flags.
type options struct {
	kubeconfig              string
	hostname                string
	bindAddress             string
	port                    int
	certFile, keyFile       string
	configFile, keySet      string
	logLevel, logFormat     string
	healthPort, metricsPort int
}

// NewCommand returns the command that runs the server until its context ends. It has flags instead of a configuration file, as it only needs names,
// ports and paths.
func NewCommand() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Serve what third parties need to trust tokens and API servers of shoots",
		Example: "  " + Name + " --hostname=discovery.ingress.example.com --kubeconfig=kubeconfig \\\n" +
			"    --tls-cert-file=tls.crt --tls-private-key-file=tls.key",
		Version:       process.Version(),
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := run(cmd.Context(), &o, cmd)
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig for the garden; by default the cluster of the pod")
	flags.StringVar(&o.hostname, "hostname", "", "host of all issuers, as it is in their URLs; required")
	flags.StringVar(&o.bindAddress, "bind-address", "", "IP address to serve at; by default all")
	flags.IntVar(&o.port, "secure-port", 10443, "port of the documents, with TLS")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "file with the serving certificate for the host; required. It is read again when it changes")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "file with the private key of the certificate; required")
	flags.StringVar(&o.configFile, "workload-identity-openid-configuration-file", "",
		"file with the OpenID configuration of the issuer of WorkloadIdentity tokens; without it there is none. It is read again when it changes")
	flags.StringVar(&o.keySet, "workload-identity-jwks-file", "", "file with the public keys of that issuer, as a JSON Web Key Set")
	flags.StringVar(&o.logLevel, "log-level", logLevels[0], strings.Join(logLevels, ", "))
	flags.StringVar(&o.logFormat, "log-format", logFormats[0], strings.Join(logFormats, ", "))
	flags.IntVar(&o.healthPort, "health-port", 8081, "port of /healthz and /readyz")
	flags.IntVar(&o.metricsPort, "metrics-port", 8080, "port of /metrics")
	return cmd
}

func (o *options) validate() error {
	var errs []error
	for _, flag := range []struct{ name, value string }{
		{"hostname", o.hostname}, {"tls-cert-file", o.certFile}, {"tls-private-key-file", o.keyFile},
	} {
		if flag.value == "" {
			errs = append(errs, fmt.Errorf("--%s: must be set", flag.name))
		}
	}
	if o.hostname != "" && !validHost(o.hostname) {
		errs = append(errs, fmt.Errorf("--hostname=%s: must be a host name in lower case, with a port if that is not 443", o.hostname))
	}
	if o.bindAddress != "" && net.ParseIP(o.bindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address=%s: must be an IP address", o.bindAddress))
	}
	if (o.configFile == "") != (o.keySet == "") {
		errs = append(errs, errors.New("--workload-identity-openid-configuration-file and --workload-identity-jwks-file: set both or none"))
	}
	for _, flag := range []struct {
		name, value string
		of          []string
	}{{"log-level", o.logLevel, logLevels}, {"log-format", o.logFormat, logFormats}} {
		if !slices.Contains(flag.of, flag.value) {
			errs = append(errs, fmt.Errorf("--%s=%s: must be one of %s", flag.name, flag.value, strings.Join(flag.of, ", ")))
		}
	}
	return errors.Join(errs...)
}

// validHost says whether a value can be the host of URLs, with or without a port.
func validHost(value string) bool {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return len(validation.IsDNS1123Subdomain(value)) == 0
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil && len(validation.IsDNS1123Subdomain(host)) == 0
}

func run(ctx context.Context, o *options, cmd *cobra.Command) error {
	if err := o.validate(); err != nil {
		return err
	}
	log := process.NewLogger(cmd.ErrOrStderr(), o.logLevel, o.logFormat)
	crlog.SetLogger(log)
	klog.SetLogger(log)
	return component().Run(ctx, o, log)
}

// component describes the process. All replicas are active.
func component() process.Component[options] {
	kinds := []process.AddToScheme{corev1beta1.AddToScheme}
	return process.Component[options]{
		Name: Name,
		Settings: func(o *options) process.Settings {
			return process.Settings{
				Client:   componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.kubeconfig, QPS: 100, Burst: 130},
				LogLevel: o.logLevel, LogFormat: o.logFormat,
				Health: &process.Server{Port: o.healthPort}, Metrics: &process.Server{Port: o.metricsPort},
			}
		},
		Kinds:    kinds,
		Protobuf: kinds,
		Options:  func(_ *options, m *manager.Options) { m.Cache.ByObject = byObject() },
		Wire:     wire,
	}
}

// byObject restricts the cache to what is published.
func byObject() map[client.Object]cache.ByObject {
	// Only gardenlets may write what has this label, so that members of projects cannot fill the cache.
	restricted := labels.SelectorFromSet(labels.Set{constants.DiscoveryPublic: constants.DiscoveryShootCA, constants.UpdateRestriction: "true"})
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			// Members of projects have no permissions in this namespace.
			Namespaces: map[string]cache.Config{constants.GardenerShootIssuerNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{constants.DiscoveryPublic: constants.DiscoveryServiceAccount}),
		},
		&corev1.ConfigMap{}: {Label: restricted},
		metadata(): {Transform: func(object any) (any, error) {
			if shoot, ok := object.(client.Object); ok { // otherwise a tombstone
				shoot.SetManagedFields(nil)
				shoot.SetLabels(nil)
				if annotation, ok := shoot.GetAnnotations()[constants.AuthenticationIssuer]; ok {
					shoot.SetAnnotations(map[string]string{constants.AuthenticationIssuer: annotation})
				} else {
					shoot.SetAnnotations(nil)
				}
			}
			return object, nil
		}},
	}
}

func wire(ctx context.Context, p *process.Process, o *options) error {
	if err := p.GetFieldIndexer().IndexField(ctx, metadata(), uidIndex, indexUID); err != nil {
		return fmt.Errorf("index Shoots: %w", err)
	}
	for _, kind := range []client.Object{&corev1beta1.Project{}, metadata(), &corev1.Secret{}, &corev1.ConfigMap{}} {
		// Informers that exist from the start count for readiness.
		if _, err := p.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	log := p.GetLogger()
	m, err := newMetrics(p.Metrics)
	if err != nil {
		return err
	}
	h := &handler{shoots: shoots{gardenCache: p.GetCache(), host: o.hostname}, refusals: newRefusals(log, m), metrics: m}
	if o.configFile != "" {
		documents, err := readFiles(log, workloadIdentityDocuments(o.hostname), o.configFile, o.keySet)
		if err != nil {
			return fmt.Errorf("documents of the issuer of WorkloadIdentity tokens: %w", err)
		}
		h.workloadIdentity = documents.get
	}
	certificate, err := readFiles(log, keyPair, o.certFile, o.keyFile)
	if err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	address := (&net.TCPAddr{IP: net.ParseIP(o.bindAddress), Port: o.port}).String()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", address, err)
	}
	return p.Add(newServer(log, listener, certificate.get, h.handler()))
}

// workloadIdentityDocuments checks the documents of the issuer of WorkloadIdentity tokens like those of shoots.
func workloadIdentityDocuments(host string) func(contents [][]byte) (issuerDocuments, error) {
	return func(contents [][]byte) (issuerDocuments, error) {
		config, keySet, err := serviceaccountkey.CheckIssuerDocuments(issuer.WorkloadIdentityURL(host), contents[0], contents[1])
		return issuerDocuments{config, keySet}, err
	}
}

func keyPair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	return &pair, err
}

// server serves the documents once the informers have synced: the manager starts it after them. Until then, connections wait.
type server struct{ manager.Server }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (server) NeedLeaderElection() bool { return false }

func newServer(log logr.Logger, listener net.Listener, certificate func() *tls.Certificate, handler http.Handler) *server {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate(), nil },
	}
	timeout := closedWithin
	return &server{manager.Server{
		Name:     "documents",
		Listener: tls.NewListener(netutil.LimitListener(listener, maxConnections), config),
		Server: &http.Server{
			Handler: handler, TLSConfig: config, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
			ReadHeaderTimeout: headersWithin, ReadTimeout: answeredWithin, WriteTimeout: answeredWithin, IdleTimeout: idleWithin,
			MaxHeaderBytes: maxHeaderBytes,
			ErrorLog:       clientErrors(log),
			BaseContext:    func(net.Listener) context.Context { return logr.NewContext(context.Background(), log) },
		},
		ShutdownTimeout: &timeout,
	}}
}

// clientErrors returns a logger for errors of connections.
func clientErrors(log logr.Logger) *stdlog.Logger { return stdlog.New(lines{log}, "", 0) }

// lines logs what is written to it. What clients do wrong, such as handshakes that fail, is of interest only while debugging.
type lines struct{ log logr.Logger }

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	message := strings.TrimSpace(string(line))
	if strings.Contains(message, "panic serving") {
		l.log.Error(errors.New(message), "A request panicked")
	} else {
		l.log.V(1).Info("A connection failed", "error", message)
	}
	return len(line), nil
}
