package gardenctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	shootaccess "gardener.cloud/gardener/internal/shoot/access"
	"gardener.cloud/gardener/internal/subcommand"
)

const (
	// longestGardenExpiration is the maximum for credentials of a virtual garden: they cannot be revoked other than by a rotation of its CAs.
	longestGardenExpiration = 24 * time.Hour
	// gardenUserPrefix begins the names of users of a virtual garden, which end with those in the runtime cluster.
	gardenUserPrefix = "gardenctl:"
)

// gardenCommand has what is for operators of a garden that gardener-operator has brought up.
func (c *cli) gardenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "garden", Short: "For operators of a garden: get access to it by its runtime cluster", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose,
		Long: c.examples(`garden kubeconfig --kubeconfig runtime.yaml`),
	}
	cmd.AddCommand(c.gardenKubeconfigCommand())
	return cmd
}

func (c *cli) gardenKubeconfigCommand() *cobra.Command {
	var output, file string
	var oidc oidcLogin
	expiration := defaultExpiration
	cmd := &cobra.Command{
		Use: "kubeconfig", Short: "Issue a kubeconfig of the virtual garden, for an administrator or for users of an OpenID Connect issuer", Args: cobra.NoArgs,
		Long: c.examples(`garden kubeconfig --kubeconfig runtime.yaml       # writes a file and prints its path
  PROGRAM garden kubeconfig --kubeconfig runtime.yaml --expiration=8h --file garden.yaml
  PROGRAM garden kubeconfig --kubeconfig runtime.yaml -o yaml
  PROGRAM garden kubeconfig --kubeconfig runtime.yaml --oidc --file users.yaml`) + `
The kubeconfig (--kubeconfig, else $KUBECONFIG) is that of the runtime cluster, where gardener-operator runs, and not that of the garden. It has
to allow to list Gardens, and Secrets in the namespace "garden": a client certificate is issued by the CA of the garden there. Its user has all
permissions, and is named "` + gardenUserPrefix + `" and the name in the runtime cluster. Until it expires, only a rotation of the CAs makes it invalid.

With --oidc the kubeconfig has no credentials and can be given to all users, who log in at the issuer in the structured authentication of the
Garden, by the plugin "oidc-login" of kubectl (kubelogin). Their permissions are those of their names and groups in the garden.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case expiration < shortestExpiration || expiration > longestGardenExpiration:
				return fmt.Errorf("--expiration must be between %s and %s", shortestExpiration, longestGardenExpiration)
			case output != "" && output != "yaml" && output != "json":
				return fmt.Errorf("--output must be yaml or json, not %q", output)
			case output != "" && file != "":
				return errors.New("--output and --file exclude each other")
			case !oidc.enabled && (oidc.issuer != "" || oidc.client != "" || oidc.host != "" || len(oidc.scopes) > 0):
				return errors.New("--oidc-issuer-url, --oidc-client-id, --oidc-extra-scope and --host are for --oidc")
			case oidc.enabled && cmd.Flags().Changed("expiration"):
				return errors.New("--expiration is not for --oidc: the issuer says how long tokens are valid")
			case c.flags.garden != "":
				return errors.New("--garden is for gardens of the configuration; set the kubeconfig of the runtime cluster with --kubeconfig")
			}
			ctx, cancel := within(cmd.Context(), requestTimeout)
			defer cancel()
			g, err := c.open("") // a target is a garden, and never a runtime cluster
			if err != nil {
				return err
			}
			api, garden, err := c.virtualGarden(ctx, g)
			if err != nil {
				return err
			}
			p := &place{garden: g, namespace: constants.GardenNamespace, name: garden.Name}
			if oidc.enabled {
				config, err := oidc.kubeconfig(ctx, api, garden, c.Clock.Now())
				if err != nil {
					return err
				}
				if output == "" && file == "" {
					file = c.kubeconfigFile(p, p.name+"-oidc")
				}
				return c.deliver(config, p, access{}, output, file, false)
			}
			raw, err := c.issueGardenKubeconfig(ctx, g, api, garden, expiration)
			if err != nil {
				return err
			}
			config, err := clientcmd.Load(raw)
			if err != nil {
				return err
			}
			return c.deliver(config, p, access{}, output, file, false)
		},
	}
	cmd.Flags().DurationVar(&expiration, "expiration", expiration, "how long the credentials are valid, up to "+longestGardenExpiration.String())
	cmd.Flags().StringVarP(&output, "output", "o", "", "print the kubeconfig, as yaml or json")
	cmd.Flags().StringVar(&file, "file", "", "write the kubeconfig to this file (default: a file in the cache directory)")
	oidc.addFlags(cmd)
	return cmd
}

// virtualGarden returns the Garden of a runtime cluster, and a client of that cluster.
func (c *cli) virtualGarden(ctx context.Context, g *garden) (client.Client, *operatorv1alpha1.Garden, error) {
	api, err := client.New(g.config, client.Options{Scheme: runtimeScheme(), Mapper: runtimeMapper()})
	if err != nil {
		return nil, nil, err
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := api.List(ctx, gardens); err != nil {
		return nil, nil, fmt.Errorf("list Gardens in the cluster at %s: %w; it has to be the runtime cluster of the garden: set --kubeconfig", g.config.Host, err)
	}
	if len(gardens.Items) != 1 || len(gardens.Items[0].Spec.VirtualCluster.DNS.Domains) == 0 {
		return nil, nil, fmt.Errorf("there are %d Gardens with a domain in the cluster at %s, and not one: set --kubeconfig to that of the runtime cluster of the garden",
			len(gardens.Items), g.config.Host)
	}
	return api, &gardens.Items[0], nil
}

// issueGardenKubeconfig issues a kubeconfig of the virtual garden.
func (c *cli) issueGardenKubeconfig(ctx context.Context, g *garden, api client.Client, garden *operatorv1alpha1.Garden, expiration time.Duration) ([]byte, error) {
	// Audit logs of the garden say so who it was.
	review := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask the runtime cluster at %s for your name: %w", g.config.Host, err)
	}
	raw, err := shootaccess.Kubeconfig(ctx, shootaccess.Values{
		SeedAPI: api, Namespace: constants.GardenNamespace, Host: "api." + garden.Spec.VirtualCluster.DNS.Domains[0].Name,
		CAPhase: caPhase(garden), User: gardenUserPrefix + cmp.Or(review.Status.UserInfo.Username, "unknown"), Validity: expiration, Now: c.Clock.Now(),
	})
	if err != nil {
		return nil, fmt.Errorf("issue a kubeconfig of Garden %q: %w; see its progress with: kubectl get gardens", garden.Name, err)
	}
	return raw, nil
}

// caPhase is the phase of the rotation of the CAs of a Garden.
func caPhase(garden *operatorv1alpha1.Garden) corev1beta1.CredentialsRotationPhase {
	if c := garden.Status.Credentials; c != nil && c.Rotation != nil && c.Rotation.CertificateAuthorities != nil {
		return c.Rotation.CertificateAuthorities.Phase
	}
	return ""
}

func runtimeScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // happens only for two types with the same name
		}
	}
	return scheme
}

// runtimeMapper has the few resources that are requested, so that no discovery is needed.
func runtimeMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(operatorv1alpha1.SchemeGroupVersion.WithKind("Garden"), meta.RESTScopeRoot)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}
