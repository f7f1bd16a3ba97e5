// Package webhook serves the webhooks of an extension in the seed: it creates and renews their certificates, and registers them.
//
// It reads and writes Secrets with certificates in the namespace of the extension, and writes its MutatingWebhookConfiguration. Every replica serves
// webhooks, whether it leads or not.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// ConfigurationPrefix is what the name of a MutatingWebhookConfiguration has before that of the extension.
	ConfigurationPrefix = "gardener-extension-"
	// domain is what names of webhooks end with. The gardenlet knows by it whose webhook did not respond.
	domain = ".extensions.gardener.cloud"
	// DefaultTimeout is for how long the kube-apiserver waits for a response.
	DefaultTimeout = 10 * time.Second

	// checkInterval is how often it is checked whether a certificate has to be renewed, and retryInterval the same after an error.
	checkInterval, retryInterval = time.Hour, 5 * time.Second
	// writtenWithin limits one check.
	writtenWithin = time.Minute

	// Validities of the certificates. They are renewed without a restart, so they need not be long.
	authorityValidity, serverValidity = 2 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// trustedFor is how long an old CA is trusted beside a new one. Server certificates are renewed within this time.
	trustedFor = serverValidity
)

// Webhook is a mutating webhook.
type Webhook struct {
	// Name is the first part of its name, such as "controlplane". It is its path, too.
	Name string
	// Handler answers the requests.
	Handler admission.Handler
	// Rules are the requests that it is called for.
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector select the objects.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
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
	// Service is the name of the Service of its pods, with the port 443.
	Service string
	// URL is the address, as host:port, by which the kube-apiserver connects to a process that runs outside of the cluster. Then there is no Service.
	URL string
	// BindAddress and Port are where it listens.
	BindAddress string
	Port        int
	// Webhooks are all that it serves.
	Webhooks []Webhook
	// Clock says when certificates are renewed. Nil means the real clock.
	Clock clock.WithTicker
}

// Add adds the server, and what keeps its certificate and registration up to date, to a manager whose cluster is the seed.
func Add(mgr manager.Manager, o Options) error {
	if o.Name == "" || o.Namespace == "" || len(o.Webhooks) == 0 || (o.Service == "") == (o.URL == "") {
		return errors.New("webhooks need the name and the namespace of the extension, and either a Service or a URL")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	k := &keeper{Options: o, client: mgr.GetClient(), reader: mgr.GetAPIReader()}
	server := crwebhook.NewServer(crwebhook.Options{
		Host: o.BindAddress, Port: o.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.GetCertificate = tls.VersionTLS12, k.certificate }},
	})
	for _, w := range o.Webhooks {
		server.Register("/"+w.Name, &admission.Webhook{Handler: w.Handler})
	}
	return errors.Join(mgr.Add(server), mgr.Add(k), mgr.AddReadyzCheck("webhooks", server.StartedChecker()))
}

// keeper keeps the certificate of the server and the registration of the webhooks up to date.
type keeper struct {
	Options
	client  client.Client
	reader  client.Reader
	current atomic.Pointer[tls.Certificate]
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

// renew creates certificates that are missing or about to expire. The CA is in the registration before the server has a certificate of it: while an
// old CA is kept, it signs.
func (k *keeper) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writtenWithin)
	defer cancel()
	certificates, err := secrets.New(ctx, secrets.Values{
		Client: direct{k.client, k.reader}, Namespace: k.Namespace, Identity: k.Name + "-webhook", Clock: k.Clock,
	})
	if err != nil {
		return err
	}
	ca, server := "ca-"+k.Name+"-webhook", k.Name+"-webhook-server"
	if _, err := certificates.Generate(ctx, &secrets.CertificateAuthority{Name: ca, Validity: authorityValidity},
		secrets.KeepOld(), secrets.RenewCA(), secrets.IgnoreOldSecretsAfter(trustedFor)); err != nil {
		return err
	}
	config := &secrets.Certificate{Name: server, CommonName: k.Name, Usage: secrets.ServerCert, Validity: serverValidity, DNSNames: k.names()}
	if host, _, err := net.SplitHostPort(k.URL); err == nil {
		if ip := net.ParseIP(host); ip != nil {
			config.IPAddresses = []net.IP{ip}
		} else {
			config.DNSNames = append(config.DNSNames, host)
		}
	}
	secret, err := certificates.Generate(ctx, config, secrets.SignedBy(ca))
	if err != nil {
		return err
	}
	bundle, ok := certificates.Get(ca, secrets.Bundle)
	if !ok {
		return fmt.Errorf("there is no bundle of CA %q", ca)
	}
	if err := k.register(ctx, bundle.Data[secrets.DataKeyCertificateBundle]); err != nil {
		return err
	}
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

// register writes the MutatingWebhookConfiguration.
func (k *keeper) register(ctx context.Context, caBundle []byte) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := k.reader.Get(ctx, client.ObjectKey{Name: k.Namespace}, namespace); err != nil {
		return fmt.Errorf("read Namespace %q: %w", k.Namespace, err)
	}
	config := Configuration(k.Options, caBundle)
	config.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if err := k.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(k.Name), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply MutatingWebhookConfiguration %q: %w", config.Name, err)
	}
	return nil
}

// Configuration renders the registration of the webhooks.
func Configuration(o Options, caBundle []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationPrefix + strings.TrimPrefix(o.Name, "gardener-extension-")},
	}
	for _, w := range o.Webhooks {
		connection := admissionregistrationv1.WebhookClientConfig{CABundle: caBundle}
		if o.URL != "" {
			connection.URL = new("https://" + o.URL + "/" + w.Name)
		} else {
			connection.Service = &admissionregistrationv1.ServiceReference{Namespace: o.Namespace, Name: o.Service, Path: new("/" + w.Name), Port: new(int32(443))}
		}
		policy, timeout := admissionregistrationv1.Fail, w.Timeout
		if w.IgnoreFailure {
			policy = admissionregistrationv1.Ignore
		}
		if timeout == 0 {
			timeout = DefaultTimeout
		}
		config.Webhooks = append(config.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: w.Name + "." + strings.TrimPrefix(o.Name, "provider-") + domain, ClientConfig: connection, Rules: w.Rules,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, FailurePolicy: &policy, TimeoutSeconds: new(int32(timeout.Seconds())),
			MatchPolicy: new(admissionregistrationv1.Exact), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy),
		})
	}
	return config
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
