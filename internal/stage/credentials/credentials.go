// Package credentials generates all credentials of a control plane, in one place, and returns the names of their Secrets.
//
// It writes Secrets in the namespace of the control plane, through a manager of the package secrets. Rotation follows the phases in the
// status of the Shoot: while one is prepared, old and new credentials are trusted; when it is completed, only the new ones. Members
// of etcd take one step more.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/secrets"
)

// Names of credentials besides those that are constants of the API.
const (
	KubeAPIServer         = "kube-apiserver"
	KubeAPIServerKubelet  = "kube-apiserver-kubelet"
	KubeAggregator        = "kube-aggregator"
	HTTPProxyClient       = "kube-apiserver-http-proxy"
	EtcdServer            = "etcd-server"
	EtcdPeerServer        = "etcd-peer-server"
	EtcdClient            = "etcd-client"
	KubeControllerManager = "kube-controller-manager-server"
	KubeScheduler         = "kube-scheduler-server"
	ResourceManager       = "gardener-resource-manager-server"
	VPNSeedServer         = "vpn-seed-server"
	VPNShootClient        = "vpn-shoot-client"
	APIServerProxy        = "apiserver-proxy-client"
	MetricsServer         = "metrics-server"
	identity              = "gardenlet"
	monitoringUser        = "admin"
	caValidity            = 10 * 365 * 24 * time.Hour
	tokenFile             = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token" //nolint:gosec // a path
)

// Values say for which control plane credentials are.
type Values struct {
	// SeedAPI is the seed. Its reads must be fresh.
	SeedAPI client.Client
	// Namespace is that of the control plane.
	Namespace string
	// Status is that of the Shoot, which knows the phases of rotations.
	Status *corev1beta1.ShootCredentials
	// HostNames and Addresses are those by which clients reach the kube-apiserver, besides its Service.
	HostNames []string
	Addresses []net.IP
	// TunnelHostName is the name by which the agents in the shoot reach the tunnel server.
	TunnelHostName string
	// Replicated is whether each etcd has several members. They are restarted one by one, and have to understand each other meanwhile.
	Replicated bool
	// Workers is whether the shoot has nodes.
	Workers bool
	// SSHKey is whether users may log in to nodes.
	SSHKey bool
	// Monitoring is whether users have credentials for the monitoring of their shoot.
	Monitoring bool
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Set generates the credentials of a control plane: those of etcd with Etcd, and the others with Rest.
type Set struct {
	manager *secrets.Manager
	values  Values
	// etcd and rest are whether Etcd and Rest have succeeded.
	etcd, rest bool
}

// Generated are credentials that exist.
type Generated struct {
	manager *secrets.Manager
}

// OfEtcd returns the credentials of etcd. The error is that of a task which should come after the task credentials-etcd.
func (s *Set) OfEtcd() (Generated, error) {
	if !s.etcd {
		return Generated{}, errors.New("the credentials of etcd are read before the task credentials-etcd is done")
	}
	return Generated{s.manager}, nil
}

// All returns all credentials. The error is that of a task which should come after the task credentials.
func (s *Set) All() (Generated, error) {
	if !s.rest {
		return Generated{}, errors.New("credentials are read before the task credentials is done")
	}
	return Generated{s.manager}, nil
}

// New returns a set without credentials. Open comes next.
func New(v Values) *Set { return &Set{values: v} }

// Open reads the credentials that exist, so that Etcd and Rest keep those that are still valid.
func (s *Set) Open(ctx context.Context) (err error) {
	s.manager, err = secrets.New(ctx, secrets.Values{
		Client: s.values.SeedAPI, Namespace: s.values.Namespace, Identity: identity, Rotations: rotations(s.values.Status), Clock: s.values.Clock,
	})
	return err
}

// rotations are the times at which rotations were started.
func rotations(status *corev1beta1.ShootCredentials) map[string]time.Time {
	times := map[string]time.Time{}
	if status == nil || status.Rotation == nil {
		return times
	}
	if ca := status.Rotation.CertificateAuthorities; ca != nil && ca.LastInitiationTime != nil {
		for _, name := range cas {
			times[name] = ca.LastInitiationTime.Time
		}
	}
	if key := status.Rotation.ServiceAccountKey; key != nil && key.LastInitiationTime != nil {
		times[constants.SecretNameServiceAccountKey] = key.LastInitiationTime.Time
	}
	if key := status.Rotation.ETCDEncryptionKey; key != nil && key.LastInitiationTime != nil {
		times[constants.SecretNameETCDEncryptionKey] = key.LastInitiationTime.Time
	}
	if key := status.Rotation.SSHKeypair; key != nil && key.LastInitiationTime != nil {
		times[constants.SecretNameSSHKeyPair] = key.LastInitiationTime.Time
	}
	if observability := status.Rotation.Observability; observability != nil && observability.LastInitiationTime != nil {
		times[constants.SecretNameObservabilityIngressUsers] = observability.LastInitiationTime.Time
	}
	return times
}

// cas are all CAs.
var cas = []string{
	constants.SecretNameCACluster, constants.SecretNameCAClient, constants.SecretNameCAETCD, constants.SecretNameCAETCDPeer,
	constants.SecretNameCAFrontProxy, constants.SecretNameCAKubelet, constants.SecretNameCAMetricsServer, constants.SecretNameCAVPN,
}

// commonNames are those of the CA certificates.
var commonNames = map[string]string{
	constants.SecretNameCACluster: "kubernetes", constants.SecretNameCAClient: "kubernetes-client", constants.SecretNameCAETCD: "etcd",
	constants.SecretNameCAETCDPeer: "etcd-peer", constants.SecretNameCAFrontProxy: "front-proxy", constants.SecretNameCAKubelet: "kubelet",
	constants.SecretNameCAMetricsServer: "metrics-server", constants.SecretNameCAVPN: "vpn",
}

// needsWorkers are the CAs that a shoot without nodes does not have.
var needsWorkers = map[string]bool{
	constants.SecretNameCAKubelet: true, constants.SecretNameCAMetricsServer: true, constants.SecretNameCAVPN: true,
}

// ofEtcd are the CAs that Etcd generates.
var ofEtcd = map[string]bool{constants.SecretNameCAETCD: true, constants.SecretNameCAETCDPeer: true}

// keep returns whether the credentials that a rotation replaces are still in use.
func keep(phase corev1beta1.CredentialsRotationPhase) secrets.Option {
	switch phase {
	case corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout, corev1beta1.RotationWaitingForWorkersRollout,
		corev1beta1.RotationPrepared:
		return secrets.KeepOld()
	case corev1beta1.RotationCompleting, corev1beta1.RotationCompleted:
	}
	return secrets.IgnoreOldSecrets()
}

// Etcd generates the credentials of etcd. It comes first, as etcd takes longest to start.
func (s *Set) Etcd(ctx context.Context) error {
	for name := range ofEtcd {
		if err := s.ca(ctx, name); err != nil {
			return err
		}
	}
	names := etcdNames(s.values.Namespace)
	err := s.certificates(ctx,
		certificate{EtcdServer, constants.SecretNameCAETCD, "etcd-server", secrets.ServerClientCert, nil, names, nil},
		certificate{EtcdPeerServer, constants.SecretNameCAETCDPeer, "etcd-server", secrets.ServerClientCert, nil, names, nil},
		certificate{EtcdClient, constants.SecretNameCAETCD, "etcd-client", secrets.ClientCert, nil, nil, nil},
	)
	s.etcd = err == nil
	return err
}

// etcdNames are the DNS names of the members of both etcd clusters, for each other and for clients.
func etcdNames(namespace string) []string {
	names := []string{"localhost"}
	for _, role := range []string{"main", "events"} {
		for _, service := range []string{"etcd-" + role + "-local", "etcd-" + role + "-client", "*.etcd-" + role + "-peer", "etcd-" + role + "-peer"} {
			names = append(names, serviceNames(service, namespace)...)
		}
	}
	return names
}

func serviceNames(service, namespace string) []string {
	return []string{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
}

// Rest generates all other credentials, after Etcd.
func (s *Set) Rest(ctx context.Context) error {
	for _, name := range cas {
		if needsWorkers[name] && !s.values.Workers || ofEtcd[name] {
			continue
		}
		if err := s.ca(ctx, name); err != nil {
			return err
		}
	}
	localhost := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	apiServer := append(serviceNames(KubeAPIServer, s.values.Namespace), append(serviceNames("kubernetes", "default"), "localhost")...)
	cluster := constants.SecretNameCACluster
	list := []certificate{
		{
			KubeAPIServer, cluster, "kube-apiserver", secrets.ServerCert, nil, append(apiServer, s.values.HostNames...),
			append(localhost, s.values.Addresses...),
		},
		{KubeAggregator, constants.SecretNameCAFrontProxy, "system:kube-aggregator", secrets.ClientCert, nil, nil, nil},
		{
			KubeControllerManager, cluster, "kube-controller-manager", secrets.ServerCert, nil,
			serviceNames("kube-controller-manager", s.values.Namespace), nil,
		},
		{
			ResourceManager, cluster, "gardener-resource-manager", secrets.ServerCert, nil,
			serviceNames("gardener-resource-manager", s.values.Namespace), nil,
		},
	}
	if s.values.Workers {
		list = append(list,
			certificate{KubeAPIServerKubelet, constants.SecretNameCAKubelet, "system:kube-apiserver:kubelet", secrets.ClientCert, nil, nil, nil},
			certificate{KubeScheduler, cluster, "kube-scheduler", secrets.ServerCert, nil, serviceNames("kube-scheduler", s.values.Namespace), nil},
			certificate{HTTPProxyClient, constants.SecretNameCAVPN, "kube-apiserver-http-proxy", secrets.ClientCert, nil, nil, nil},
			certificate{
				VPNSeedServer, constants.SecretNameCAVPN, "vpn-seed-server", secrets.ServerCert, nil,
				append(serviceNames("vpn-seed-server", s.values.Namespace), s.values.TunnelHostName), localhost,
			},
			certificate{VPNShootClient, constants.SecretNameCAVPN, "vpn-shoot-client", secrets.ClientCert, nil, nil, nil},
			certificate{APIServerProxy, constants.SecretNameCAVPN, "apiserver-proxy-client", secrets.ClientCert, nil, nil, nil},
			certificate{
				MetricsServer, constants.SecretNameCAMetricsServer, "metrics-server", secrets.ServerCert, nil,
				serviceNames("metrics-server", "kube-system"), nil,
			},
		)
	}
	if err := s.certificates(ctx, list...); err != nil {
		return err
	}
	err := s.keys(ctx)
	s.rest = err == nil
	return err
}

func (s *Set) keys(ctx context.Context) error {
	rotation := &corev1beta1.ShootCredentialsRotation{}
	if s.values.Status != nil && s.values.Status.Rotation != nil {
		rotation = s.values.Status.Rotation
	}
	accountPhase, encryptionPhase := corev1beta1.CredentialsRotationPhase(""), corev1beta1.CredentialsRotationPhase("")
	if rotation.ServiceAccountKey != nil {
		accountPhase = rotation.ServiceAccountKey.Phase
	}
	if rotation.ETCDEncryptionKey != nil {
		encryptionPhase = rotation.ETCDEncryptionKey.Phase
	}
	// KeepOld is what creates a bundle; whether it has an old key is up to the phase.
	_, accounts := s.manager.Generate(ctx, &secrets.PrivateKey{Name: constants.SecretNameServiceAccountKey},
		secrets.Persist(), secrets.KeepOld(), keep(accountPhase))
	_, encryption := s.manager.Generate(ctx, &secrets.EncryptionKey{Name: constants.SecretNameETCDEncryptionKey},
		secrets.Persist(), keep(encryptionPhase))
	_, kubeconfig := s.manager.Generate(ctx, &secrets.Kubeconfig{
		Name: constants.SecretNameGenericTokenKubeconfig, ContextName: s.values.Namespace, Server: "https://" + KubeAPIServer,
		CA: Generated{s.manager}.Bundle(constants.SecretNameCACluster), TokenFile: tokenFile,
	})
	errs := []error{accounts, encryption, kubeconfig}
	if s.values.SSHKey {
		// The old one stays, as nodes trust the new one only after they have applied their OperatingSystemConfig.
		_, err := s.manager.Generate(ctx, &secrets.SSHKeyPair{Name: constants.SecretNameSSHKeyPair, RSABits: 4096}, secrets.Persist(), secrets.KeepOld())
		errs = append(errs, err)
	}
	if s.values.Monitoring {
		_, err := s.manager.Generate(ctx, &secrets.Password{Name: constants.SecretNameObservabilityIngressUsers, Username: monitoringUser}, secrets.Persist())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *Set) ca(ctx context.Context, name string) error {
	old := keep(s.caPhase())
	if ofEtcd[name] && s.etcdChanges() {
		old = secrets.KeepOld()
	}
	_, err := s.manager.Generate(ctx, &secrets.CertificateAuthority{Name: name, CommonName: commonNames[name], Validity: caValidity},
		secrets.Persist(), old)
	return err
}

func (s *Set) caPhase() corev1beta1.CredentialsRotationPhase {
	if status := s.values.Status; status != nil && status.Rotation != nil && status.Rotation.CertificateAuthorities != nil {
		return status.Rotation.CertificateAuthorities.Phase
	}
	return ""
}

// etcdChanges is whether members of etcd change to the new CAs. Until all of them have, they trust the old ones, too: these are
// removed when the rotation is completed.
func (s *Set) etcdChanges() bool {
	return s.values.Replicated && s.caPhase() == corev1beta1.RotationCompleting
}

type certificate struct {
	name, ca, commonName string
	usage                secrets.Usage
	organization         []string
	hosts                []string
	addresses            []net.IP
}

func (s *Set) certificates(ctx context.Context, list ...certificate) error {
	for _, c := range list {
		if _, err := s.manager.Generate(ctx, &secrets.Certificate{
			Name: c.name, CommonName: c.commonName, Organization: c.organization, DNSNames: c.hosts, IPAddresses: c.addresses, Usage: c.usage,
		}, s.signedBy(c.ca)); err != nil {
			return err
		}
	}
	return nil
}

// signedBy returns which certificate of a CA signs, while there are two.
func (s *Set) signedBy(ca string) secrets.Option {
	switch {
	case ca == constants.SecretNameCAKubelet:
		// Nodes that are about to be replaced trust the old one only, new ones trust both.
		return secrets.SignedByClass(ca, secrets.Old)
	case ofEtcd[ca] && s.etcdChanges():
		return secrets.SignedByClass(ca, secrets.Current)
	case ca == constants.SecretNameCAMetricsServer:
		// Its only client, the aggregator of the kube-apiserver, trusts both from the same moment on. When it no longer trusts the old one,
		// no server uses that any more.
		return secrets.SignedByClass(ca, secrets.Current)
	}
	return secrets.SignedBy(ca)
}

// Name returns the name of the Secret with a credential.
func (g Generated) Name(name string) string { return g.object(name, secrets.Current) }

// BundleName returns the name of the Secret with the bundle of a CA or a key: the old and the new one while both are trusted.
func (g Generated) BundleName(name string) string { return g.object(name, secrets.Bundle) }

func (g Generated) object(name string, class secrets.Class) string {
	secret, ok := g.manager.Get(name, class)
	if !ok {
		return ""
	}
	return secret.Name
}

// Current returns the newest Secret with a credential, and Old the one that it replaces, or nil.
func (g Generated) Current(name string) *corev1.Secret { return g.secret(name, secrets.Current) }

// Old returns the Secret that the current one replaces while both are in use, or nil.
func (g Generated) Old(name string) *corev1.Secret { return g.secret(name, secrets.Old) }

func (g Generated) secret(name string, class secrets.Class) *corev1.Secret {
	secret, ok := g.manager.Get(name, class)
	if !ok {
		return nil
	}
	return secret
}

// Bundle returns the certificates of a CA that are trusted, as PEM.
func (g Generated) Bundle(ca string) []byte {
	secret, ok := g.manager.Get(ca, secrets.Bundle)
	if !ok {
		return nil
	}
	return secret.Data[secrets.DataKeyCertificateBundle]
}

// Cleanup deletes credentials that were not generated in this run.
func (s *Set) Cleanup(ctx context.Context) error {
	if _, err := s.All(); err != nil {
		return err
	}
	if err := s.manager.Cleanup(ctx); err != nil {
		return fmt.Errorf("clean up credentials: %w", err)
	}
	return nil
}
