// Package initializer gives admission plugins what they read.
//
// Plugins embed Base. What else k8s.io/apiserver has for plugins, they get by its own interfaces: feature gates by WantsFeatures,
// informers of a few kinds of the kube-apiserver by WantsExternalKubeInformerFactory.
package initializer

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	apiserverinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Base is embedded by plugins that read objects or authorize users.
type Base struct {
	// GardenCache reads objects of the garden API from the stores of this server: registry.Reader says how fresh that is. What it
	// returns is shared with all other readers, so it must not be changed: change a DeepCopy.
	//
	// Lists of a namespace are cheap, as are those by the fields that the kinds of the registry are indexed by; other selectors
	// read every object.
	GardenCache client.Reader
	// KubeAPI reads Secrets, ConfigMaps, ServiceAccounts and Namespaces of the kube-apiserver.
	//
	// Each read is a request: nothing is cached. To check only that an object exists, read its metav1.PartialObjectMetadata, so that
	// no data is sent.
	KubeAPI client.Reader
	// Authorizer decides whether users may send a request.
	Authorizer authorizer.Authorizer
}

var (
	_ admission.InitializationValidator    = &Base{}
	_ apiserverinitializer.WantsAuthorizer = &Base{}
)

// base returns the Base of a plugin that embeds it.
func (b *Base) base() *Base { return b }

// SetAuthorizer implements the interface WantsAuthorizer of k8s.io/apiserver.
func (b *Base) SetAuthorizer(a authorizer.Authorizer) { b.Authorizer = a }

// AuthorizeVerb refuses a request whose user may not use a verb on the object of the request: one that is not sent, but guards what a request changes.
// The refusal says what, and which verb is needed.
func (b *Base) AuthorizeVerb(ctx context.Context, a admission.Attributes, verb, refusal string) error {
	decision, _, err := b.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version,
		Resource: a.GetResource().Resource, Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorize %q to %s: %w", a.GetUserInfo().GetName(), verb, err))
	}
	return admission.NewForbidden(a, fmt.Errorf("%s: the verb %q is needed", refusal, verb))
}

// ValidateInitialization implements admission.InitializationValidator.
func (b *Base) ValidateInitialization() error {
	if b.GardenCache == nil || b.KubeAPI == nil || b.Authorizer == nil {
		return errors.New("the reader of the garden, the reader of the kube-apiserver or the authorizer is not set")
	}
	return nil
}

// New returns what initializes plugins.
func New(gardenCache, kubeAPI client.Reader) admission.PluginInitializer {
	// Objects of the garden API are counted; nothing else about them is part of quotas. Evaluators that count are created when needed.
	return initializer{gardenCache: gardenCache, kubeAPI: kubeAPI, quotas: generic.NewConfiguration(nil, nil)}
}

type initializer struct {
	gardenCache, kubeAPI client.Reader
	quotas               quota.Configuration
}

// Initialize implements admission.PluginInitializer.
func (i initializer) Initialize(plugin admission.Interface) {
	if p, ok := plugin.(interface{ base() *Base }); ok {
		p.base().GardenCache, p.base().KubeAPI = i.gardenCache, i.kubeAPI
	}
	if wants, ok := plugin.(apiserverinitializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(i.quotas)
	}
}

// Fresh as an option of GardenCache reads from etcd, not from the cache. Use it where an object written a moment ago must count, such
// as before a deletion; it costs a round trip.
var Fresh fresh

type fresh struct{}

// ApplyToGet implements client.GetOption.
func (fresh) ApplyToGet(options *client.GetOptions) { options.Raw = &metav1.GetOptions{} }

// ApplyToList implements client.ListOption.
func (fresh) ApplyToList(options *client.ListOptions) { options.Raw = &metav1.ListOptions{} }

// FromCache as an option of KubeAPI lets the kube-apiserver list from its cache in its present state. A list of the newest state waits
// until the cache is known to have it, which takes a tenth of a second if no object of the kind changes.
var FromCache client.ListOption = fromCache{}

type fromCache struct{}

// ApplyToList implements client.ListOption.
func (fromCache) ApplyToList(options *client.ListOptions) {
	options.Raw = &metav1.ListOptions{ResourceVersion: "0"}
}

// KubeClient returns a client of the kube-apiserver of config.
func KubeClient(config *rest.Config) (client.Client, error) {
	// Requests of users wait for these reads; the kube-apiserver limits how many there may be.
	config = rest.CopyConfig(config)
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register core types: %w", err)
	}
	// The few kinds are known, so nothing needs to be discovered.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for _, kind := range []string{"Secret", "ConfigMap", "ServiceAccount"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}
