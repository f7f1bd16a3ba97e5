// Package initializer hands admission plugins what they read.
//
// A plugin asks by having one of the methods below. What k8s.io/apiserver hands out, plugins get by its own interfaces: the
// authorizer by WantsAuthorizer, informers of a few kinds of the kube-apiserver by WantsExternalKubeInformerFactory.
package initializer

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	apiserverinitializer "k8s.io/apiserver/pkg/admission/initializer"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WantsGardenReader is a plugin that reads objects of the garden API.
//
// The reader answers from the stores of this server: registry.Reader says how fresh that is. What it returns is shared with
// all others who read, so it must not be changed: change a DeepCopy.
//
// Lists of a namespace are cheap, as are those by the fields that the kinds of the registry are indexed by; other selectors look
// at every object.
type WantsGardenReader interface {
	admission.InitializationValidator
	SetGardenReader(reader client.Reader)
}

// WantsKubeReader is a plugin that reads Secrets, ConfigMaps, ServiceAccounts and Namespaces of the kube-apiserver.
//
// Each read is a request: nothing is cached. Who only wants to know whether an object exists reads its
// metav1.PartialObjectMetadata, so that no data is sent.
type WantsKubeReader interface {
	admission.InitializationValidator
	SetKubeReader(reader client.Reader)
}

// New returns what hands readers to plugins.
func New(garden, kube client.Reader) admission.PluginInitializer {
	// Objects of our kinds are counted; nothing else about them takes part in quotas. Evaluators that count are made when needed.
	return handout{garden: garden, kube: kube, quotas: generic.NewConfiguration(nil, nil)}
}

type handout struct {
	garden, kube client.Reader
	quotas       quota.Configuration
}

// Initialize implements admission.PluginInitializer.
func (h handout) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsGardenReader); ok {
		wants.SetGardenReader(h.garden)
	}
	if wants, ok := plugin.(WantsKubeReader); ok {
		wants.SetKubeReader(h.kube)
	}
	if wants, ok := plugin.(apiserverinitializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(h.quotas)
	}
}

// Fresh as an option of a read from the garden asks for what is in etcd now, not in the cache. Use it where what was written a
// moment ago must count, such as before a deletion; it costs a round trip.
var Fresh fresh

type fresh struct{}

// ApplyToGet implements client.GetOption.
func (fresh) ApplyToGet(options *client.GetOptions) { options.Raw = &metav1.GetOptions{} }

// ApplyToList implements client.ListOption.
func (fresh) ApplyToList(options *client.ListOptions) { options.Raw = &metav1.ListOptions{} }

// FromCache lets the kube-apiserver answer a list from its cache as that is. A list of the newest state waits until the cache is known
// to have it, which takes a tenth of a second where nothing of the kind changes.
var FromCache client.ListOption = fromCache{}

type fromCache struct{}

// ApplyToList implements client.ListOption.
func (fromCache) ApplyToList(options *client.ListOptions) {
	options.Raw = &metav1.ListOptions{ResourceVersion: "0"}
}

// KubeClient returns a client of the kube-apiserver that config leads to.
func KubeClient(config *rest.Config) (client.Client, error) {
	// Requests of users wait for these reads; how many there may be is up to the kube-apiserver.
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

// Garden is embedded by plugins that read from the garden only.
type Garden struct{ GardenReader client.Reader }

// SetGardenReader implements WantsGardenReader.
func (g *Garden) SetGardenReader(reader client.Reader) { g.GardenReader = reader }

// ValidateInitialization implements admission.InitializationValidator.
func (g *Garden) ValidateInitialization() error {
	if g.GardenReader == nil {
		return errors.New("no reader of the garden is set")
	}
	return nil
}
