// Package credentials generates all credentials of a control plane, in one place, and returns the names of their Secrets.
//
// It writes Secrets in the namespace of the control plane, through a manager of the package secrets. Rotation follows the phases in the
// status of the Shoot or of the Garden: while one is prepared, old and new credentials are trusted; when it is completed, only the new ones.
// Members of etcd, and components of Gardener in a garden, take one step more. Which credentials there are is in shoot.go and garden.go.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/pkg/secrets"
)

// Names of credentials besides those that are constants of the API.
const (
	KubeAPIServer          = "kube-apiserver"
	KubeAPIServerKubelet   = "kube-apiserver-kubelet"
	KubeAggregator         = "kube-aggregator"
	GatewayProxy           = "gateway-proxy"
	HTTPProxyClient        = "kube-apiserver-http-proxy"
	EtcdServer             = "etcd-server"
	EtcdPeerServer         = "etcd-peer-server"
	EtcdClient             = "etcd-client"
	KubeControllerManager  = "kube-controller-manager-server"
	KubeScheduler          = "kube-scheduler-server"
	ResourceManager        = "gardener-resource-manager-server"
	VPNSeedServer          = "vpn-seed-server"
	VPNShootClient         = "vpn-shoot-client"
	APIServerProxy         = "apiserver-proxy-client"
	MetricsServer          = "metrics-server"
	VPAAdmissionController = "vpa-admission-controller-server"
	monitoringUser         = "admin"
	caValidity             = 10 * 365 * 24 * time.Hour
	// trustedAfterRenewal is how long a CA is trusted that was renewed by itself.
	trustedAfterRenewal = 24 * time.Hour
	tokenFile           = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token" //nolint:gosec // a path
)

// Values say for which control plane credentials are.
type Values struct {
	// Of is the kind of cluster that it is for.
	Of instance.Kind
	// SeedAPI is the cluster that the control plane runs in. Its reads must be fresh.
	SeedAPI client.Client
	// Namespace is that of the control plane.
	Namespace string
	// Rotation is how far rotations are: OfShoot or OfGarden.
	Rotation Rotation
	// HostNames and Addresses are those by which clients reach the kube-apiserver, besides its Service.
	HostNames []string
	Addresses []net.IP
	// TunnelHostName is the name by which the agents in the shoot reach the tunnel server.
	TunnelHostName string
	// Replicated is whether each etcd has several members. They are restarted one by one, and have to understand each other meanwhile.
	Replicated bool
	// Workers is whether the shoot has nodes.
	Workers bool
	// VerticalPodAutoscaler is whether the shoot has a Vertical Pod Autoscaler.
	VerticalPodAutoscaler bool
	// TerminatesTLS is whether the gateway ends the connections of the kube-apiserver, and tells it the users. Pods of the control plane may then be
	// sent there, too.
	TerminatesTLS bool
	// SSHKey is whether users may log in to nodes.
	SSHKey bool
	// Monitoring is whether users have credentials for the monitoring of their shoot.
	Monitoring bool
	// DiscoveryHostName is the name of gardener-discovery-server for its clients. It is only for a garden, and empty if that has none.
	DiscoveryHostName string
	// Servers are more servers of a garden that need a certificate.
	Servers []Server
	// EncryptionProviders are those for which new encryption keys are generated, by the name of the credential. The default is aescbc.
	EncryptionProviders map[string]corev1beta1.EncryptionProviderType
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Server is a server of a garden, besides those that each garden has.
type Server struct {
	// Name is that of the credential, and Hosts the names that its certificate is valid for.
	Name  string
	Hosts []string
	// CA is the one that signs: ca-gardener, or ca-garden-runtime for a certificate that Runtime generates.
	CA string
}

// Set generates the credentials of a control plane: those of the cluster that it runs in with Runtime, those of etcd with Etcd, and the others
// with Rest.
type Set struct {
	manager   *secrets.Manager
	values    Values
	inventory inventory
	// done are the steps that have succeeded.
	done map[step]bool
}

// step is a part of the credentials that one task generates.
type step int

const (
	// inRest is for what needs none of the other steps.
	inRest step = iota
	// inEtcd comes first in the flow of a control plane, as etcd takes longest to start.
	inEtcd
	// inRuntime is for components of the cluster that a garden runs in, which come before its control plane.
	inRuntime
)

// Generated are credentials that exist.
type Generated struct {
	manager *secrets.Manager
}

// OfRuntime returns the credentials of components of the cluster that a garden runs in.
func (s *Set) OfRuntime() (Generated, error) {
	if !s.done[inRuntime] {
		return Generated{}, errors.New("the credentials of the runtime cluster are read before they are generated")
	}
	return Generated{s.manager}, nil
}

// OfEtcd returns the credentials of etcd. The error is that of a task which should come after the task credentials-etcd.
func (s *Set) OfEtcd() (Generated, error) {
	if !s.done[inEtcd] {
		return Generated{}, errors.New("the credentials of etcd are read before the task credentials-etcd is done")
	}
	return Generated{s.manager}, nil
}

// All returns all credentials. The error is that of a task which should come after the task credentials.
func (s *Set) All() (Generated, error) {
	if !s.done[inRest] {
		return Generated{}, errors.New("credentials are read before the task credentials is done")
	}
	return Generated{s.manager}, nil
}

// New returns a set without credentials. Open comes next.
func New(v Values) *Set {
	return &Set{values: v, inventory: inventories[v.Of], done: map[step]bool{}}
}

// inventory says which credentials the control plane of a kind of cluster has.
type inventory struct {
	// identity is the one of the manager: the process that generates them.
	identity string
	// cas are all CAs.
	cas []authority
	// certificates returns what CAs of the same step, or of an earlier one, sign.
	certificates map[step]func(Values) []certificate
	// keys returns the credentials of the step inRest that no CA signs.
	keys func(Values) []key
}

// inventories are those of the kinds of clusters.
var inventories = map[instance.Kind]inventory{instance.Shoot: ofShoot, instance.VirtualGarden: ofGarden}

// authority is a CA.
type authority struct {
	name, commonName string
	step             step
	// needsWorkers is whether a cluster without nodes does not have it.
	needsWorkers bool
	// validity is the one of a CA that is renewed by itself. Others, for which it is zero, are replaced only when the owner of the cluster
	// starts it: all clients have to get the new one.
	validity time.Duration
	// stepwise is whether servers and clients of the CA are deployed one after the other, in an order that does not suit all changes. No
	// certificate changes then while trust in the new CA is spread, and no trust ends while certificates change.
	stepwise bool
}

// certificate is what a CA signs.
type certificate struct {
	name, ca, commonName string
	usage                secrets.Usage
	hosts                []string
	addresses            []net.IP
}

// key is a credential that no CA signs.
type key struct {
	config secrets.Config
	// progress is how far its rotation is.
	progress Progress
	// options say what happens to the one that a rotation replaces.
	options []secrets.Option
}

// Open reads the credentials that exist, so that the other steps keep those that are still valid.
func (s *Set) Open(ctx context.Context) (err error) {
	s.manager, err = secrets.New(ctx, secrets.Values{
		Client: s.values.SeedAPI, Namespace: s.values.Namespace, Identity: s.inventory.identity, Rotations: s.rotations(), Clock: s.values.Clock,
	})
	return err
}

// rotations are the times at which rotations were started.
func (s *Set) rotations() map[string]time.Time {
	times := map[string]time.Time{}
	add := func(name string, p Progress) {
		if p.Initiated != nil {
			times[name] = p.Initiated.Time
		}
	}
	for _, ca := range s.inventory.cas {
		if ca.validity == 0 {
			add(ca.name, s.values.Rotation.CertificateAuthorities)
		}
	}
	for _, k := range s.inventory.keys(s.values) {
		add(k.config.SecretName(), k.progress)
	}
	return times
}

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

// Runtime generates the credentials of components of the cluster that a garden runs in. It comes before Etcd, and a shoot needs none of them.
func (s *Set) Runtime(ctx context.Context) error { return s.generate(ctx, inRuntime) }

// Etcd generates the credentials of etcd. It comes first in a control plane, as etcd takes longest to start.
func (s *Set) Etcd(ctx context.Context) error { return s.generate(ctx, inEtcd) }

// Rest generates all other credentials, after Etcd.
func (s *Set) Rest(ctx context.Context) error {
	if err := s.generate(ctx, inRest); err != nil {
		return err
	}
	err := s.keys(ctx)
	s.done[inRest] = err == nil
	return err
}

// generate generates the CAs of a step, and what they sign.
func (s *Set) generate(ctx context.Context, now step) error {
	for _, ca := range s.inventory.cas {
		if ca.step != now || ca.needsWorkers && !s.values.Workers {
			continue
		}
		if err := s.ca(ctx, ca); err != nil {
			return err
		}
	}
	if certificates := s.inventory.certificates[now]; certificates != nil {
		for _, c := range certificates(s.values) {
			if _, err := s.manager.Generate(ctx, &secrets.Certificate{
				Name: c.name, CommonName: c.commonName, DNSNames: c.hosts, IPAddresses: c.addresses, Usage: c.usage,
			}, s.signedBy(c.ca)); err != nil {
				return err
			}
		}
	}
	s.done[now] = now != inRest // which has keys, too
	return nil
}

func (s *Set) keys(ctx context.Context) error {
	var errs []error
	for _, k := range s.inventory.keys(s.values) {
		_, err := s.manager.Generate(ctx, k.config, k.options...)
		errs = append(errs, err)
	}
	server := s.values.Of.Name(KubeAPIServer)
	if s.values.TerminatesTLS {
		server = kubeapiserver.ServiceHost(s.values.Namespace) // all shoots share the gateway, where the short name would be that of each
	}
	_, err := s.manager.Generate(ctx, &secrets.Kubeconfig{
		Name: constants.SecretNameGenericTokenKubeconfig, ContextName: s.values.Namespace, Server: "https://" + server,
		CA: Generated{s.manager}.Bundle(constants.SecretNameCACluster), TokenFile: tokenFile,
	})
	return errors.Join(append(errs, err)...)
}

func (s *Set) ca(ctx context.Context, ca authority) error {
	config := &secrets.CertificateAuthority{Name: ca.name, CommonName: ca.commonName, Validity: caValidity}
	options := []secrets.Option{secrets.Persist(), keep(s.values.Rotation.CertificateAuthorities.Phase)}
	switch {
	case ca.validity > 0:
		config.Validity = ca.validity
		// Its clients get the new bundle in the same reconciliation, or in the next one.
		options = []secrets.Option{secrets.RenewCA(), secrets.KeepOld(), secrets.IgnoreOldSecretsAfter(trustedAfterRenewal)}
	case s.certificatesChange(ca):
		options[1] = secrets.KeepOld()
	}
	_, err := s.manager.Generate(ctx, config, options...)
	return err
}

// certificatesChange is whether servers of a CA change to certificates of the new one in this run. Until all of them have, the old CA is trusted,
// too: it is removed in the run after the one that completes the rotation.
func (s *Set) certificatesChange(ca authority) bool {
	return s.values.Rotation.CertificateAuthorities.Phase == corev1beta1.RotationCompleting && (ca.stepwise || ca.step == inEtcd && s.values.Replicated)
}

// signedBy returns which certificate of a CA signs, while there are two.
func (s *Set) signedBy(name string) secrets.Option {
	i := slices.IndexFunc(s.inventory.cas, func(a authority) bool { return a.name == name })
	switch {
	case name == constants.SecretNameCAKubelet:
		// Nodes that are about to be replaced trust the old one only, new ones trust both.
		return secrets.SignedByClass(name, secrets.Old)
	case i >= 0 && s.certificatesChange(s.inventory.cas[i]):
		return secrets.SignedByClass(name, secrets.Current)
	case i >= 0 && s.inventory.cas[i].stepwise && s.values.Rotation.CertificateAuthorities.Phase == corev1beta1.RotationPreparing:
		return secrets.SignedByClass(name, secrets.Old)
	case name == constants.SecretNameCAMetricsServer:
		// Its only client, the aggregator of the kube-apiserver, trusts both from the same moment on. When it no longer trusts the old one,
		// no server uses that any more.
		return secrets.SignedByClass(name, secrets.Current)
	}
	return secrets.SignedBy(name)
}

// etcdCertificates are those of the members of both etcd clusters, and of their clients.
func etcdCertificates(v Values) []certificate {
	names := []string{"localhost"}
	for _, role := range []string{"main", "events"} {
		name := v.Of.Name("etcd-" + role)
		for _, service := range []string{name + "-local", name + "-client", "*." + name + "-peer", name + "-peer"} {
			names = append(names, serviceNames(service, v.Namespace)...)
		}
	}
	return []certificate{
		{name: EtcdServer, ca: constants.SecretNameCAETCD, commonName: "etcd-server", usage: secrets.ServerClientCert, hosts: names},
		{name: EtcdPeerServer, ca: constants.SecretNameCAETCDPeer, commonName: "etcd-server", usage: secrets.ServerClientCert, hosts: names},
		{name: EtcdClient, ca: constants.SecretNameCAETCD, commonName: "etcd-client", usage: secrets.ClientCert},
	}
}

// apiServerCertificates are those of the kube-apiserver, for its clients and for API servers behind it, and of kube-controller-manager.
func apiServerCertificates(v Values) []certificate {
	hosts := append(serviceNames(v.Of.Name(KubeAPIServer), v.Namespace), append(serviceNames("kubernetes", "default"), "localhost")...)
	return []certificate{
		{
			name: KubeAPIServer, ca: constants.SecretNameCACluster, commonName: "kube-apiserver", usage: secrets.ServerCert,
			hosts: append(hosts, v.HostNames...), addresses: append(loopback(), v.Addresses...),
		},
		{name: KubeAggregator, ca: constants.SecretNameCAFrontProxy, commonName: "system:kube-aggregator", usage: secrets.ClientCert},
		server(KubeControllerManager, constants.SecretNameCACluster, "kube-controller-manager", v.Of.Name("kube-controller-manager"), v.Namespace),
	}
}

// server is the certificate of a server behind a Service.
func server(name, ca, commonName, service, namespace string) certificate {
	return certificate{name: name, ca: ca, commonName: commonName, usage: secrets.ServerCert, hosts: serviceNames(service, namespace)}
}

func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

func serviceNames(service, namespace string) []string {
	return []string{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
}

// serviceAccountKey and etcdEncryptionKey are the keys of all kube-apiservers.
func serviceAccountKey(v Values) key {
	// KeepOld is what creates a bundle; whether it has an old key is up to the phase.
	p := v.Rotation.ServiceAccountKey
	return key{&secrets.PrivateKey{Name: constants.SecretNameServiceAccountKey}, p, []secrets.Option{secrets.Persist(), secrets.KeepOld(), keep(p.Phase)}}
}

func etcdEncryptionKey(v Values, name string) key {
	p := v.Rotation.EncryptionKey
	return key{&secrets.EncryptionKey{Name: name, Provider: string(v.EncryptionProviders[name])}, p, []secrets.Option{secrets.Persist(), keep(p.Phase)}}
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

// BundleSecret returns the Secret with the bundle of a CA or a key, or nil.
func (g Generated) BundleSecret(name string) *corev1.Secret { return g.secret(name, secrets.Bundle) }

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
