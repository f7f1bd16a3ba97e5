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
	expiration := defaultExpiration
	cmd := &cobra.Command{
		Use: "kubeconfig", Short: "Issue a kubeconfig of the virtual garden for an administrator", Args: cobra.NoArgs,
		Long: c.examples(`garden kubeconfig --kubeconfig runtime.yaml       # writes a file and prints its path
  PROGRAM garden kubeconfig --kubeconfig runtime.yaml --expiration=8h --file garden.yaml
  PROGRAM garden kubeconfig --kubeconfig runtime.yaml -o yaml`) + `
The kubeconfig (--kubeconfig, else $KUBECONFIG) is that of the runtime cluster, where gardener-operator runs, and not that of the garden. It has
to allow to list Gardens, and Secrets in the namespace "garden": a client certificate is issued by the CA of the garden there. Its user has all
permissions, and is named "` + gardenUserPrefix + `" and the name in the runtime cluster. Until it expires, only a rotation of the CAs makes it invalid.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case expiration < shortestExpiration || expiration > longestGardenExpiration:
				return fmt.Errorf("--expiration must be between %s and %s", shortestExpiration, longestGardenExpiration)
			case output != "" && output != "yaml" && output != "json":
				return fmt.Errorf("--output must be yaml or json, not %q", output)
			case output != "" && file != "":
				return errors.New("--output and --file exclude each other")
			case c.flags.garden != "":
				return errors.New("--garden is for gardens of the configuration; set the kubeconfig of the runtime cluster with --kubeconfig")
			}
			ctx, cancel := within(cmd.Context(), requestTimeout)
			defer cancel()
			g, err := c.open("") // a target is a garden, and never a runtime cluster
			if err != nil {
				return err
			}
			raw, name, err := c.issueGardenKubeconfig(ctx, g, expiration)
			if err != nil {
				return err
			}
			config, err := clientcmd.Load(raw)
			if err != nil {
				return err
			}
			p := &place{garden: g, namespace: constants.GardenNamespace, name: name}
			return c.deliver(config, p, access{}, output, file, false)
		},
	}
	cmd.Flags().DurationVar(&expiration, "expiration", expiration, "how long the credentials are valid, up to "+longestGardenExpiration.String())
	cmd.Flags().StringVarP(&output, "output", "o", "", "print the kubeconfig, as yaml or json")
	cmd.Flags().StringVar(&file, "file", "", "write the kubeconfig to this file (default: a file in the cache directory)")
	return cmd
}

// issueGardenKubeconfig issues a kubeconfig of the virtual garden whose runtime cluster it is given. It returns the name of the Garden, too.
func (c *cli) issueGardenKubeconfig(ctx context.Context, g *garden, expiration time.Duration) (raw []byte, name string, err error) {
	api, err := client.New(g.config, client.Options{Scheme: runtimeScheme(), Mapper: runtimeMapper()})
	if err != nil {
		return nil, "", err
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := api.List(ctx, gardens); err != nil {
		return nil, "", fmt.Errorf("list Gardens in the cluster at %s: %w; it has to be the runtime cluster of the garden: set --kubeconfig", g.config.Host, err)
	}
	if len(gardens.Items) != 1 || len(gardens.Items[0].Spec.VirtualCluster.DNS.Domains) == 0 {
		return nil, "", fmt.Errorf("there are %d Gardens with a domain in the cluster at %s, and not one: set --kubeconfig to that of the runtime cluster of the garden",
			len(gardens.Items), g.config.Host)
	}
	garden := &gardens.Items[0]
	// Audit logs of the garden say so who it was.
	review := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, review); err != nil {
		return nil, "", fmt.Errorf("ask the runtime cluster at %s for your name: %w", g.config.Host, err)
	}
	raw, err = shootaccess.Kubeconfig(ctx, shootaccess.Values{
		SeedAPI: api, Namespace: constants.GardenNamespace, Host: "api." + garden.Spec.VirtualCluster.DNS.Domains[0].Name,
		CAPhase: caPhase(garden), User: gardenUserPrefix + cmp.Or(review.Status.UserInfo.Username, "unknown"), Validity: expiration, Now: c.Clock.Now(),
	})
	if err != nil {
		return nil, "", fmt.Errorf("issue a kubeconfig of Garden %q: %w; see its progress with: kubectl get gardens", garden.Name, err)
	}
	return raw, garden.Name, nil
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
	return mapper
}
