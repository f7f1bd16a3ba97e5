package care

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Connector returns what connects to shoots with objects of a scheme. Connections to the same API server are shared.
func Connector(scheme *runtime.Scheme, userAgent string) func(kubeconfig []byte) (Access, error) {
	return func(kubeconfig []byte) (Access, error) {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		config = rest.AddUserAgent(config, userAgent)
		reader, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return nil, err
		}
		config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, serializer.NewCodecFactory(scheme)
		raw, err := rest.UnversionedRESTClientFor(config)
		return &access{reader, raw}, err
	}
}

type access struct {
	client.Reader
	rest rest.Interface
}

// Healthz implements Access.
func (a *access) Healthz(ctx context.Context) error {
	if err := a.rest.Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("API server /healthz endpoint does not respond with success: %w", err)
	}
	return nil
}
