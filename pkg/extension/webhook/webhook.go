// Package webhook serves the webhooks of an extension: it creates and renews their certificates, and registers them in the cluster of its
// manager, or in shoots.
//
// It reads and writes Secrets with certificates in the namespace of the extension, and writes webhook configurations, and ManagedResources with those of
// shoots. Every replica serves webhooks, whether it leads or not.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// ConfigurationPrefix is what the name of a MutatingWebhookConfiguration has before that of the extension.
	ConfigurationPrefix = "gardener-extension-"
	// domain is what names of webhooks end with. The gardenlet knows by it whose webhook did not respond.
	domain = ".extensions.gardener.cloud"
	// DefaultTimeout is for how long the kube-apiserver waits for a response.
	DefaultTimeout = 10 * time.Second

	// defaultServicePort is Options.ServicePort if it is not set.
	defaultServicePort int32 = 443

	// checkInterval is how often it is checked whether a certificate has to be renewed, and retryInterval the same after an error.
	checkInterval, retryInterval = time.Hour, 5 * time.Second
	// writtenWithin limits one check.
	writtenWithin = time.Minute

	// Validities of the certificates. They are renewed without a restart, so they need not be long.
	authorityValidity, serverValidity = 2 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// trustedFor is how long an old CA is trusted beside a new one.
	trustedFor = serverValidity
	// signsAfter is the age from which on a new CA signs. By then it is in all bundles, also in those of shoots, and the replicas, which check at different times,
	// all have a certificate of it long before the first one removes the old CA from the bundles.
	signsAfter = 24 * time.Hour
)

// Webhook is a mutating or a validating webhook.
type Webhook struct {
	// Name is the first part of its name, such as "controlplane". It is its path, too.
	Name string
	// Handler answers the requests.
	Handler admission.Handler
	// Validating says that it changes nothing.
	Validating bool
	// Rules are the requests that it is called for.
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector select the objects.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// MatchConditions select requests, too: others do not depend on the extension.
	MatchConditions []admissionregistrationv1.MatchCondition
	// IgnoreFailure lets requests pass for which the webhook did not respond. Otherwise they fail.
	IgnoreFailure bool
	// Timeout is for how long the kube-apiserver waits for a response. Zero means DefaultTimeout.
	Timeout time.Duration
}

// Options configure the server of an extension.
type Options struct {
	// Name is the name of the extension, such as provider-local.
	Name string
	// Namespace is the namespace that it runs in. The registration is deleted with it.
	Namespace string
	// Service is the name of the Service of its pods.
	Service string
	// ServicePort is its port. Zero means 443.
	ServicePort int32
	// ByURL has the kube-apiserver connect by a URL with the name of the Service, for one that cannot use Services of its own cluster, as that of a garden.
	ByURL bool
	// URL is the address, as host:port, by which the kube-apiserver connects to a process that runs outside of the cluster. Then there is no Service.
	URL string
	// BindAddress and Port are where it listens.
	BindAddress string
	Port        int
	// Webhooks are those for the cluster of the manager.
	Webhooks []Webhook
	// CertificateNamespace is the namespace with the Secrets for certificates, in the cluster of the manager. Empty means Namespace. Admission controllers of a
	// garden have one: they run in another cluster, where they need no permissions then.
	CertificateNamespace string
	// OwnerNamespace is the namespace that the registration is deleted with, in the cluster of the manager. Empty means Namespace.
	OwnerNamespace string
	// Shoots are the webhooks for objects in shoots. Nil means none.
	Shoots *Shoots
	// Clock says when certificates are renewed. Nil means the real clock.
	Clock clock.WithTicker
}

// Add adds the server, and what keeps its certificate and registration up to date, to a manager whose cluster is the seed. Webhooks that were registered before,
// and are none of the options, are removed from the registration.
func Add(mgr manager.Manager, o Options) error {
	if o.Name == "" || o.Namespace == "" || (o.Service == "") == (o.URL == "") {
		return errors.New("webhooks need the name and the namespace of the extension, and either a Service or a URL")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := o.separate(); err != nil {
		return err
	}
	k := &keeper{Options: o, client: mgr.GetClient(), reader: mgr.GetAPIReader()}
	if o.Shoots != nil {
		k.Shoots = new(*o.Shoots)
		if err := addShoots(mgr, k); err != nil {
			return err
		}
	}
	errs := []error{mgr.Add(k)}
	for name, server := range k.servers() {
		errs = append(errs, mgr.Add(server), mgr.AddReadyzCheck(name, server.StartedChecker()))
	}
	return errors.Join(errs...)
}

// servers returns the servers by the names of their checks: one for each port.
func (k *keeper) servers() map[string]crwebhook.Server {
	servers := map[string]crwebhook.Server{}
	if len(k.Webhooks) > 0 {
		servers["webhooks"] = k.server(k.Port, k.Webhooks)
	}
	if k.Shoots != nil {
		servers["shoot-webhooks"] = k.server(cmp.Or(k.Shoots.Port, k.Port), k.Shoots.Webhooks)
	}
	return servers
}

func (k *keeper) server(port int, webhooks []Webhook) crwebhook.Server {
	server := crwebhook.NewServer(crwebhook.Options{
		Host: k.BindAddress, Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.GetCertificate = tls.VersionTLS12, k.certificate }},
	})
	for _, w := range webhooks {
		server.Register("/"+w.Name, &admission.Webhook{Handler: w.Handler})
	}
	return server
}

// separate returns an error if kube-apiservers of shoots would reach webhooks that are not for them.
func (o Options) separate() error {
	if o.Shoots == nil || len(o.Webhooks) == 0 {
		return nil
	}
	if port := o.Shoots.Port; port == 0 || port == o.Port {
		return fmt.Errorf("Shoots.Port: webhooks of shoots need another port than %d, where those of the seed are served", o.Port)
	}
	if port := o.Shoots.ServicePort; port == 0 || o.URL == "" && port == o.servicePort() {
		return fmt.Errorf("Shoots.ServicePort: webhooks of shoots need another port of the Service than %d, which is that of the seed", o.servicePort())
	}
	return nil
}

// keeper keeps the certificate of the server and the registration of the webhooks up to date.
type keeper struct {
	Options
	client  client.Client
	reader  client.Reader
	current atomic.Pointer[tls.Certificate]
	// bundle is the CA bundle for shoots, and changed gets an event when it is another one.
	bundle  atomic.Pointer[[]byte]
	changed chan<- event.GenericEvent
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (k *keeper) NeedLeaderElection() bool { return false }

func (k *keeper) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := k.current.Load(); current != nil {
		return current, nil
	}
	return nil, errors.New("the server has no certificate yet")
}

// Start implements manager.Runnable.
func (k *keeper) Start(ctx context.Context) error {
	for {
		next := checkInterval
		if err := k.renew(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			logf.FromContext(ctx).Error(err, "Renewing the certificate of webhooks")
			next = retryInterval
		}
		timer := k.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// renew creates certificates that are missing or about to expire. The CA is in the registration before the server has a certificate of it: while it is new, the
// old one signs, if there is one.
func (k *keeper) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writtenWithin)
	defer cancel()
	if len(k.Webhooks) == 0 && k.Shoots == nil {
		if err := k.register(ctx, nil); !apierrors.IsForbidden(err) { // the chart may grant nothing to a process without webhooks
			return err
		}
		return nil
	}
	certificates, err := secrets.New(ctx, secrets.Values{
		// It reads from the API server, so that no cache has to hold Secrets.
		Client: direct{k.client, k.reader}, Namespace: cmp.Or(k.CertificateNamespace, k.Namespace), Identity: k.Name + "-webhook", Clock: k.Clock,
	})
	if err != nil {
		return err
	}
	ca, server := "ca-"+k.Name+"-webhook", k.Name+"-webhook-server"
	authority, err := certificates.Generate(ctx, &secrets.CertificateAuthority{Name: ca, Validity: authorityValidity},
		secrets.KeepOld(), secrets.RenewCA(), secrets.IgnoreOldSecretsAfter(trustedFor))
	if err != nil {
		return err
	}
	signer := secrets.Old
	if k.Clock.Since(secrets.IssuedAt(authority)) >= signsAfter {
		signer = secrets.Current
	}
	config := &secrets.Certificate{Name: server, CommonName: k.Name, Usage: secrets.ServerCert, Validity: serverValidity, DNSNames: k.names()}
	if host, _, err := net.SplitHostPort(k.URL); err == nil {
		if ip := net.ParseIP(host); ip != nil {
			config.IPAddresses = []net.IP{ip}
		} else {
			config.DNSNames = append(config.DNSNames, host)
		}
	}
	secret, err := certificates.Generate(ctx, config, secrets.SignedByClass(ca, signer))
	if err != nil {
		return err
	}
	bundle, ok := certificates.Get(ca, secrets.Bundle)
	if !ok {
		return fmt.Errorf("there is no bundle of CA %q", ca)
	}
	caBundle := bundle.Data[secrets.DataKeyCertificateBundle]
	if err := k.register(ctx, caBundle); err != nil {
		return err
	}
	k.notify(caBundle)
	pair, err := tls.X509KeyPair(secret.Data[secrets.DataKeyCertificate], secret.Data[secrets.DataKeyPrivateKey])
	if err != nil {
		return fmt.Errorf("the certificate in Secret %q is not valid: %w", secret.Name, err)
	}
	k.current.Store(&pair)
	return certificates.Cleanup(ctx)
}

// names are the DNS names of the Service.
func (k *keeper) names() []string {
	if k.Service == "" {
		return nil
	}
	name := k.Service + "." + k.Namespace
	return []string{k.Service, name, name + ".svc", name + ".svc.cluster.local"}
}

// notify has the bundle written to all shoots if it is not the one that they have.
func (k *keeper) notify(caBundle []byte) {
	if before := k.bundle.Swap(&caBundle); k.changed == nil || before != nil && bytes.Equal(*before, caBundle) {
		return
	}
	select {
	case k.changed <- event.GenericEvent{Object: &extensionsv1alpha1.Cluster{}}:
	default: // an event that is not processed yet, maybe as another replica leads, does the same
	}
}

// register writes the webhook configurations of the cluster.
func (k *keeper) register(ctx context.Context, caBundle []byte) error {
	owner := cmp.Or(k.OwnerNamespace, k.Namespace)
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := k.reader.Get(ctx, client.ObjectKey{Name: owner}, namespace); err != nil {
		return fmt.Errorf("read Namespace %q: %w", owner, err)
	}
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}}
	mutating, validating := Configurations(k.Options, caBundle)
	objects := present(mutating, validating)
	for _, object := range objects {
		object.SetOwnerReferences(owners)
	}
	errs := []error{kube.Apply(ctx, k.client, k.Name, objects...)}
	for _, configuration := range []client.Object{mutating, validating} {
		if !slices.Contains(objects, configuration) {
			errs = append(errs, k.unregister(ctx, configuration, namespace.UID))
		}
	}
	return errors.Join(errs...)
}

// unregister removes the webhooks of a configuration that this process had in another version, or with other settings: requests would fail, as they are not
// served any more. The configuration of another process of this name, as in a cluster that is a seed and that of the garden, has another namespace, and stays.
// It stays, too, if the chart does not grant its kind: then it never had such webhooks.
func (k *keeper) unregister(ctx context.Context, configuration client.Object, namespace types.UID) error {
	patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/ownerReferences/0/uid","value":%q},{"op":"add","path":"/webhooks","value":[]}]`, namespace)
	err := k.client.Patch(ctx, configuration, client.RawPatch(types.JSONPatchType, []byte(patch)))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) { // invalid is what a test is that fails
		return nil
	}
	return fmt.Errorf("remove webhooks that are not served any more from %T %q: %w", configuration, configuration.GetName(), err)
}

func (o Options) servicePort() int32 { return cmp.Or(o.ServicePort, defaultServicePort) }

// byService and byURL are how a kube-apiserver connects to the webhook with a name: in its own cluster by a Service, in others by a URL.
func (o Options) byService(caBundle []byte) func(string) admissionregistrationv1.WebhookClientConfig {
	return func(name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: caBundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: o.Namespace, Name: o.Service, Path: new("/" + name), Port: new(o.servicePort()),
		}}
	}
}

// byURL has a port of its own for shoots; zero means the usual one.
func (o Options) byURL(caBundle []byte, port int32) func(string) admissionregistrationv1.WebhookClientConfig {
	host := o.URL
	if host == "" {
		host = fmt.Sprintf("%s.%s:%d", o.Service, o.Namespace, cmp.Or(port, o.servicePort()))
	} else if name, _, err := net.SplitHostPort(o.URL); err == nil && port != 0 {
		host = net.JoinHostPort(name, strconv.Itoa(int(port)))
	}
	return func(name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: caBundle, URL: new("https://" + host + "/" + name)}
	}
}

// Configurations renders the registration of the webhooks in the cluster of the manager.
func Configurations(
	o Options, caBundle []byte,
) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	connection := o.byService(caBundle)
	if o.URL != "" || o.ByURL {
		connection = o.byURL(caBundle, 0)
	}
	return configurations(o, "", o.Webhooks, connection)
}

func configurations(
	o Options, suffix string, webhooks []Webhook, connection func(string) admissionregistrationv1.WebhookClientConfig,
) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	meta := metav1.ObjectMeta{Name: ConfigurationPrefix + strings.TrimPrefix(o.Name, ConfigurationPrefix) + suffix}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	for _, w := range webhooks {
		policy, timeout := admissionregistrationv1.Fail, w.Timeout
		if w.IgnoreFailure {
			policy = admissionregistrationv1.Ignore
		}
		if timeout == 0 {
			timeout = DefaultTimeout
		}
		rendered := admissionregistrationv1.ValidatingWebhook{
			Name: w.Name + "." + strings.TrimPrefix(o.Name, "provider-") + domain, ClientConfig: connection(w.Name), Rules: w.Rules,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, FailurePolicy: &policy, TimeoutSeconds: new(int32(timeout.Seconds())),
			MatchPolicy: new(admissionregistrationv1.Exact), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			MatchConditions: w.MatchConditions, AdmissionReviewVersions: []string{"v1"},
		}
		if w.Validating {
			validating.Webhooks = append(validating.Webhooks, rendered)
			continue
		}
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: rendered.Name, ClientConfig: rendered.ClientConfig, Rules: rendered.Rules,
			NamespaceSelector: rendered.NamespaceSelector, ObjectSelector: rendered.ObjectSelector, MatchConditions: rendered.MatchConditions,
			FailurePolicy: rendered.FailurePolicy, TimeoutSeconds: rendered.TimeoutSeconds, MatchPolicy: rendered.MatchPolicy,
			SideEffects: rendered.SideEffects, AdmissionReviewVersions: rendered.AdmissionReviewVersions,
			ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy),
		})
	}
	return mutating, validating
}

// direct is a client that reads from the API server, so that no cache has to hold Secrets.
type direct struct {
	client.Client
	reader client.Reader
}

// Get implements client.Reader.
func (d direct) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return d.reader.Get(ctx, key, obj, options...)
}

// List implements client.Reader.
func (d direct) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return d.reader.List(ctx, list, options...)
}
