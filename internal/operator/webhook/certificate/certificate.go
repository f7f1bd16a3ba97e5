// Package certificate has the certificate of the webhook server of gardener-operator.
//
// All replicas serve the newest certificate in the Secrets of the namespace "garden", which they watch. The leader renews certificate and CA while
// the process runs, and applies the webhook configurations with the CA bundle.
package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/webhook/configuration"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Identity is the identity under which the Secrets are managed.
	Identity = "gardener-operator-webhook"
	// CA is the name of the CA.
	CA = "ca-gardener-operator-webhook"

	serverName = "gardener-operator-webhook-server"
	// validity is that of the CA and of the server certificate. They are renewed after 20 of these days.
	validity = 30 * 24 * time.Hour
	// After the CA was renewed, API servers get the new one first. Then servers get certificates of it, and the old one is removed last.
	signWithOldFor = 6 * time.Hour
	trustOldFor    = 24 * time.Hour
	// checkAgain is how often it is checked whether anything has to be renewed.
	checkAgain = 6 * time.Hour
)

// Values are what certificates depend on.
type Values struct {
	// RuntimeAPI is the API server of the runtime cluster.
	RuntimeAPI client.Client
	// Host is the host, with or without a port, at which the API server reaches the process if it runs outside of the cluster.
	Host string
	// Clock is for renewal.
	Clock clock.PassiveClock
}

// Server has the certificate of the webhook server.
type Server struct {
	Values
	current atomic.Pointer[tls.Certificate]
	serial  atomic.Pointer[string]
}

// NewServer returns a Server without a certificate.
func NewServer(v Values) *Server { return &Server{Values: v} }

// GetCertificate returns the certificate for a connection, as tls.Config needs it.
func (s *Server) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := s.current.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("the webhook server has no certificate yet")
}

// Obtain reads the certificate, or creates it if there is none. All replicas may do so at the same time, as they create the same Secrets.
func (s *Server) Obtain(ctx context.Context) error {
	list := &corev1.SecretList{}
	if err := s.RuntimeAPI.List(ctx, list, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
		secrets.LabelKeyManagerIdentity: Identity, secrets.LabelKeyName: serverName,
	}); err != nil {
		return fmt.Errorf("list Secrets of the webhook server: %w", err)
	}
	if newest := newestOf(list.Items); newest != nil && s.matches(newest) {
		return s.use(newest)
	}
	_, err := s.renew(ctx)
	return err
}

// renew creates what is missing or about to expire, and returns the CA bundle. Secrets that are not used any more are deleted.
func (s *Server) renew(ctx context.Context) (bundle []byte, err error) {
	manager, err := secrets.New(ctx, secrets.Values{Client: s.RuntimeAPI, Namespace: constants.GardenNamespace, Identity: Identity, Clock: s.Clock})
	if err != nil {
		return nil, err
	}
	ca, err := manager.Generate(ctx, &secrets.CertificateAuthority{Name: CA, CommonName: CA, Validity: validity},
		secrets.RenewCA(), secrets.KeepOld(), secrets.IgnoreOldSecretsAfter(trustOldFor))
	if err != nil {
		return nil, err
	}
	signer := secrets.Old // or the current one, if there is no other
	if s.Clock.Since(secrets.IssuedAt(ca)) >= signWithOldFor {
		signer = secrets.Current
	}
	server, err := manager.Generate(ctx, s.config(), secrets.SignedByClass(CA, signer))
	if err != nil {
		return nil, err
	}
	if err := s.use(server); err != nil {
		return nil, err
	}
	cas, ok := manager.Get(CA, secrets.Bundle)
	if !ok {
		return nil, fmt.Errorf("CA %q has no bundle", CA)
	}
	return cas.Data[secrets.DataKeyCertificateBundle], manager.Cleanup(ctx)
}

// config describes the server certificate.
func (s *Server) config() *secrets.Certificate {
	config := &secrets.Certificate{Name: serverName, CommonName: configuration.Name, Usage: secrets.ServerCert, WithoutCA: true, Validity: validity}
	host := s.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	switch ip := net.ParseIP(host); {
	case host == "":
		config.DNSNames = workload.DNSNames(configuration.Name, constants.GardenNamespace)
	case ip != nil:
		config.IPAddresses = []net.IP{ip}
	default:
		config.DNSNames = []string{host}
	}
	return config
}

// matches reports whether a certificate is valid, and for the host of the server.
func (s *Server) matches(secret *corev1.Secret) bool {
	pair, err := tls.X509KeyPair(secret.Data[secrets.DataKeyCertificate], secret.Data[secrets.DataKeyPrivateKey])
	if err != nil {
		return false
	}
	want := s.config()
	return s.Clock.Now().Before(pair.Leaf.NotAfter) && slices.Equal(pair.Leaf.DNSNames, want.DNSNames) &&
		slices.EqualFunc(pair.Leaf.IPAddresses, want.IPAddresses, net.IP.Equal)
}

// use serves the certificate of a Secret from now on.
func (s *Server) use(secret *corev1.Secret) error {
	pair, err := tls.X509KeyPair(secret.Data[secrets.DataKeyCertificate], secret.Data[secrets.DataKeyPrivateKey])
	if err != nil {
		return fmt.Errorf("Secret %q has no valid certificate and key", client.ObjectKeyFromObject(secret)) // the error itself may quote them
	}
	s.current.Store(&pair)
	s.serial.Store(&secret.Name)
	return nil
}

// newestOf returns the Secret that was issued last, or nil.
func newestOf(list []corev1.Secret) *corev1.Secret {
	var newest *corev1.Secret
	for i := range list {
		if secret := &list[i]; secret.DeletionTimestamp == nil && (newest == nil || secrets.IssuedAt(secret).After(secrets.IssuedAt(newest))) {
			newest = secret
		}
	}
	return newest
}

// Add adds to a manager the controllers that renew the certificate, and that load it in replicas that do not lead.
func Add(mgr manager.Manager, s *Server) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	ofServer := func(obj client.Object) bool {
		return obj.GetNamespace() == constants.GardenNamespace && obj.GetLabels()[secrets.LabelKeyManagerIdentity] == Identity
	}
	named := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == configuration.Name })
	if err := builder.ControllerManagedBy(mgr).Named("webhook-certificate").
		Watches(&corev1.Secret{}, toAll, builder.WithPredicates(predicate.NewPredicateFuncs(ofServer))).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, s.load(ctx, mgr.GetCache())
		})); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("webhook-configuration").
		// Changes by other clients are overwritten.
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, toAll, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, toAll, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, toAll, builder.WithPredicates(predicate.NewPredicateFuncs(ofServer))).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			if err := s.Apply(ctx); err != nil {
				return kube.Result(err)
			}
			return reconcile.Result{RequeueAfter: checkAgain}, nil
		}))
}

// load serves the newest certificate in the cache.
func (s *Server) load(ctx context.Context, runtimeCache client.Reader) error {
	list := &corev1.SecretList{}
	if err := runtimeCache.List(ctx, list, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
		secrets.LabelKeyManagerIdentity: Identity, secrets.LabelKeyName: serverName,
	}); err != nil {
		return fmt.Errorf("list Secrets of the webhook server: %w", err)
	}
	newest := newestOf(list.Items)
	if newest == nil || !s.matches(newest) {
		return nil // the leader creates one
	}
	if current := s.serial.Load(); current != nil && *current == newest.Name {
		return nil
	}
	logf.FromContext(ctx).Info("Loading the renewed certificate of the webhook server", "secret", client.ObjectKeyFromObject(newest))
	return s.use(newest)
}

// Apply renews the certificate if it is due, and applies the webhook configurations.
func (s *Server) Apply(ctx context.Context) error {
	bundle, err := s.renew(ctx)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, s.RuntimeAPI, configuration.Name, configuration.Objects(configuration.Values{Host: s.Host, CABundle: bundle})...)
}
