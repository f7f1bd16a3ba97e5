// Package apiserver is gardener-apiserver, which serves the garden API next to a kube-apiserver.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericadmission "k8s.io/apiserver/pkg/admission"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/apiserver/admission"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/bootstrap"
	"gardener.cloud/gardener/internal/apiserver/features"
	"gardener.cloud/gardener/internal/apiserver/frontproxy"
	"gardener.cloud/gardener/internal/apiserver/gardenletauthorizer"
	"gardener.cloud/gardener/internal/apiserver/openapi"
	"gardener.cloud/gardener/internal/apiserver/registry"
	"gardener.cloud/gardener/internal/apiserver/scheme"
	"gardener.cloud/gardener/internal/kube/quantities"
)

// Name is the name of the command.
const Name = "gardener-apiserver"

// etcdPrefix is where objects are in etcd.
const etcdPrefix = "/registry-gardener"

// watchGracePeriod is how long a shutdown waits for watches to end, which are notified: without it each would delay the shutdown for a minute.
const watchGracePeriod = 10 * time.Second

// NewCommand returns the command that serves until its context ends.
func NewCommand() *cobra.Command {
	gates := utilfeature.DefaultMutableFeatureGate
	s, err := scheme.New()
	err = errors.Join(err, features.AddTo(gates))
	codecs := serializer.NewCodecFactory(s)
	options := genericoptions.NewRecommendedOptions(etcdPrefix, nil)
	options.Admission = admission.NewOptions()
	// Cheaper and smaller than JSON, which is read as well; docs/performance.md has the figures.
	options.Etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	own := &flags{}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Serve the garden API, aggregated by a kube-apiserver",
		Example: "  " + Name + " --cluster-identity=garden --etcd-servers=http://127.0.0.1:2379 --kubeconfig=garden.yaml \\\n" +
			"    --authentication-kubeconfig=garden.yaml --authorization-kubeconfig=garden.yaml",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(append(options.Validate(), own.validate(), err)...); err != nil {
				return err
			}
			klog.SetLogger(own.logger(cmd.ErrOrStderr()))
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			codec, err := scheme.StorageCodec(codecs, options.Etcd.DefaultStorageMediaType)
			if err != nil {
				return err
			}
			options.Etcd.StorageConfig.Codec = codec
			return run(cmd.Context(), options, own, s, codecs)
		},
	}
	options.AddFlags(cmd.Flags())
	own.addTo(cmd.Flags())
	gates.AddFlag(cmd.Flags())
	return cmd
}

func run(
	ctx context.Context, options *genericoptions.RecommendedOptions, own *flags, s *runtime.Scheme, codecs serializer.CodecFactory,
) error {
	config := genericapiserver.NewRecommendedConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapinamer.NewDefinitionNamer(s)
	named := func(name string) (string, spec.Extensions) { return withoutHub(namer.GetDefinitionName(name)) }
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIConfig.GetDefinitionName = "Gardener", named
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title, config.OpenAPIV3Config.GetDefinitionName = "Gardener", named
	reader := &registry.Reader{}
	options.ExtraAdmissionInitializers = func(config *genericapiserver.RecommendedConfig) ([]genericadmission.PluginInitializer, error) {
		kube, err := initializer.KubeClient(config.ClientConfig)
		return []genericadmission.PluginInitializer{initializer.New(reader, kube)}, err
	}
	own.applyTo(&config.Config)
	if err := options.ApplyTo(config); err != nil {
		return fmt.Errorf("apply flags: %w", err)
	}
	config.ShutdownWatchTerminationGracePeriod = watchGracePeriod
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			request.Body = quantities.Body(request.Body, request.Header.Get("Content-Type"), config.MaxRequestBodyBytes)
			handler.ServeHTTP(w, request)
		}), config)
	}
	config.Authentication.Authenticator = frontproxy.New(
		config.Authentication.RequestHeaderConfig, config.Authentication.Authenticator, clock.RealClock{})
	gardenlets := gardenletauthorizer.New(config.Authorization.Authorizer)
	config.Authorization.Authorizer = gardenlets
	server, err := config.Complete().New(Name, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("assemble server: %w", err)
	}
	kube, err := initializer.KubeClient(config.ClientConfig)
	if err != nil {
		return fmt.Errorf("connect to the kube-apiserver: %w", err)
	}
	settings, err := own.settings(config, reader, kube, options.FeatureGate)
	if err != nil {
		return err
	}
	groups, err := registry.Groups(s, codecs, config.RESTOptionsGetter, settings)
	if err != nil {
		return err
	}
	reader.Use(groups)
	if err := install(server, &config.Config, groups); err != nil {
		return err
	}
	for name, try := range map[string]func(context.Context) error{
		"bootstrap-garden-cluster":   func(ctx context.Context) error { return bootstrap.Namespaces(ctx, kube) },
		"bootstrap-cluster-identity": func(ctx context.Context) error { return bootstrap.Identity(ctx, kube, own.clusterIdentity) },
	} {
		// An error would end the process.
		server.AddPostStartHookOrDie(name, func(ctx genericapiserver.PostStartHookContext) error { //nolint:contextcheck // it has one of its own
			bootstrap.Until(ctx, try)
			return nil
		})
	}
	server.AddPostStartHookOrDie("gardenlet-authorizer", func(ctx genericapiserver.PostStartHookContext) error { //nolint:contextcheck // it has one of its own
		go func() {
			if err := gardenlets.Run(ctx, ctx.LoopbackClientConfig); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Requests of gardenlets are authorized by the kube-apiserver only")
			}
		}()
		return nil
	})
	return server.PrepareRun().RunWithContext(ctx)
}

// withoutHub removes the internal version from the kinds of a definition: clients know the served versions only.
func withoutHub(name string, extensions spec.Extensions) (string, spec.Extensions) {
	out := spec.Extensions{}
	for key, value := range extensions {
		if kinds, ok := value.([]any); ok {
			var served []any
			for _, kind := range kinds {
				if gvk, ok := kind.(map[string]any); !ok || gvk["version"] != runtime.APIVersionInternal {
					served = append(served, kind)
				}
			}
			value = served
		}
		out[key] = value
	}
	return name, out
}
