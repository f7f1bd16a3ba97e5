package backuprestore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/leases"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
	"gardener.cloud/gardener/internal/backuprestore/startup"
)

const (
	// keepAlive is how often an idle connection to etcd is checked, and keepAliveTimeout how long a check may take. They detect members that
	// vanished.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// reconnect is how soon a connection to etcd is tried again. etcd starts beside this process, so it is often not reachable at first, and
// gRPC's own delays, of a second and more, would add up to several.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// clientTLS returns the TLS configuration of a client, nil for plain HTTP. The certificate is read for each connection, as it is
// rotated.
func clientTLS(config *backuprestoreconfigv1alpha1.TLS) (*tls.Config, error) {
	if config == nil {
		return nil, nil
	}
	caPool, err := readCAs(config.CAFile)
	if err != nil {
		return nil, err
	}
	out := &tls.Config{RootCAs: caPool, MinVersion: tls.VersionTLS12}
	if config.CertFile != "" {
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
			return &certificate, err
		}
	}
	return out, nil
}

// serverTLS returns the TLS configuration of the server, nil for plain HTTP. Client certificates are optional, as probes have none, but
// verified.
func serverTLS(config *backuprestoreconfigv1alpha1.TLS) (*tls.Config, error) {
	if config == nil {
		return nil, nil
	}
	caPool, err := readCAs(config.CAFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		ClientCAs: caPool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
			return &certificate, err
		},
	}, nil
}

func readCAs(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificates", file)
	}
	return pool, nil
}

// dialer returns a function that creates clients of etcd.
func dialer(config *backuprestoreconfigv1alpha1.Etcd) (func(endpoint string) (*clientv3.Client, error), error) {
	tlsConfig, err := clientTLS(config.ClientTLS)
	if err != nil {
		return nil, fmt.Errorf("credentials for etcd: %w", err)
	}
	return func(endpoint string) (*clientv3.Client, error) {
		return clientv3.New(clientv3.Config{
			Endpoints: []string{endpoint}, TLS: tlsConfig, Logger: zap.NewNop(),
			DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
			DialOptions: []grpc.DialOption{grpc.WithUserAgent(Name), grpc.WithConnectParams(reconnect)},
		})
	}, nil
}

// openLeases returns the Leases of a member, nil if none are configured.
func openLeases(config *backuprestoreconfigv1alpha1.Leases, member string) (*leases.Leases, error) {
	if config == nil {
		return nil, nil
	}
	restConfig, err := rest.InClusterConfig()
	if config.Kubeconfig != "" {
		restConfig, err = clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("credentials for Leases: %w", err)
	}

	c, err := client.NewWithWatch(rest.AddUserAgent(restConfig, Name), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("client for Leases: %w", err)
	}
	return &leases.Leases{Client: c, Config: config, Member: member, Clock: clock.RealClock{}}, nil
}

// environment has what the commands "initialize" and "server" need.
type environment struct {
	config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration
	member string
	store  *snapstore.Store // nil if there are no backups
	leases *leases.Leases   // nil if none are configured
	dial   func(endpoint string) (*clientv3.Client, error)
}

func newEnvironment(ctx context.Context, config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration, member string) (*environment, error) {
	if member == "" {
		return nil, errors.New("no member is given; name it with --member")
	}
	e := &environment{config: config, member: member}
	var err error
	if e.dial, err = dialer(&config.Etcd); err != nil {
		return nil, err
	}
	if e.leases, err = openLeases(config.Leases, member); err != nil {
		return nil, err
	}
	if config.Store != nil {
		if e.store, err = snapstore.Open(ctx, config.Store); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *environment) close() {
	if e.store != nil {
		_ = e.store.Close() // all snapshots have been written
	}
}

func (e *environment) startup() *startup.Startup {
	s := &startup.Startup{Config: e.config, Member: e.member, Store: e.store, Registry: startup.Alone{}, Dial: e.dial, Clock: clock.RealClock{}}
	if e.leases != nil {
		s.Registry = e.leases
	}
	return s
}
