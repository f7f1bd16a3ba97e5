package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	validation "gardener.cloud/gardener/internal/validation/kubeconfig" // this package has a type with the name of the other
)

const (
	// defaultExpiration is how long credentials are valid by default.
	defaultExpiration = time.Hour
	// shortestExpiration is the minimum of the API.
	shortestExpiration = 10 * time.Minute
)

// access is the kind and validity of credentials.
type access struct {
	viewer     bool
	expiration time.Duration
}

func (a *access) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.viewer, "viewer", false, "read-only, without access to Secrets")
	cmd.Flags().DurationVar(&a.expiration, "expiration", defaultExpiration, "how long the credentials are valid; the garden may allow less")
}

func (a *access) check() error {
	if a.expiration < shortestExpiration {
		return fmt.Errorf("--expiration must be at least %s", shortestExpiration)
	}
	return nil
}

func (a *access) role() string {
	if a.viewer {
		return "viewer"
	}
	return "admin"
}

// requestKubeconfig requests a kubeconfig from the garden.
func (c *cli) requestKubeconfig(ctx context.Context, p *place, a access) (*clientcmdapi.Config, time.Time, error) {
	shoot := &corev1beta1.Shoot{}
	shoot.Namespace, shoot.Name = p.namespace, p.name
	seconds := int64(a.expiration / time.Second)
	var raw []byte
	var until time.Time
	var err error
	if a.viewer {
		request := &authenticationv1alpha1.ViewerKubeconfigRequest{Spec: authenticationv1alpha1.ViewerKubeconfigRequestSpec{ExpirationSeconds: &seconds}}
		err = p.client.SubResource("viewerkubeconfig").Create(ctx, shoot, request)
		raw, until = request.Status.Kubeconfig, request.Status.ExpirationTimestamp.Time
	} else {
		request := &authenticationv1alpha1.AdminKubeconfigRequest{Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds}}
		err = p.client.SubResource("adminkubeconfig").Create(ctx, shoot, request)
		raw, until = request.Status.Kubeconfig, request.Status.ExpirationTimestamp.Time
	}
	if err != nil {
		return nil, until, c.explainShoot(err, p)
	}
	config, err := loadOfGarden(raw)
	return config, until, err
}

// loadOfGarden reads a kubeconfig that a garden has sent. Clients of it must neither run what the garden likes, nor read files of the user.
func loadOfGarden(raw []byte) (*clientcmdapi.Config, error) {
	if errs := validation.SelfContained(raw, nil); len(errs) > 0 {
		return nil, fmt.Errorf("the kubeconfig in the garden's response is not used: %w", validation.Summary(errs))
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errors.New("the garden's response is not a kubeconfig") // the original error could quote credentials
	}
	return config, nil
}

func (c *cli) kubeconfigCommand() *cobra.Command {
	var a access
	var output, file string
	var renewing bool
	cmd := &cobra.Command{
		Use: "kubeconfig [SHOOT]", Short: "Request a kubeconfig of a shoot", Args: cobra.MaximumNArgs(2),
		Long: c.examples(`kubeconfig my-cluster                       # writes a file and prints its path
  export KUBECONFIG=$(PROGRAM kubeconfig my-cluster --exec)
  PROGRAM kubeconfig my-cluster --viewer --expiration=12h -o yaml
  PROGRAM kubeconfig my-cluster --file my-cluster.yaml`) + `
With --exec the file holds no credentials: kubectl gets them from this program, which requests new ones before they expire.`,
		ValidArgsFunction: c.completion(c.shootNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if output != "" && output != "yaml" && output != "json" {
				return fmt.Errorf("--output must be yaml or json, not %q", output)
			}
			if output != "" && file != "" {
				return errors.New("--output and --file exclude each other")
			}
			ctx, cancel := within(cmd.Context(), requestTimeout)
			defer cancel()
			p, err := c.find(ctx, args)
			if err != nil {
				return err
			}
			config, until, err := c.requestKubeconfig(ctx, p, a)
			if err != nil {
				return err
			}
			if renewing {
				if err := c.renewThroughUs(config, p, a, until); err != nil {
					return err
				}
			}
			return c.deliver(config, p, a, output, file, renewing)
		},
	}
	a.addFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "print the kubeconfig, as yaml or json")
	cmd.Flags().StringVar(&file, "file", "", "write the kubeconfig to this file (default: a file in the cache directory)")
	cmd.Flags().BoolVar(&renewing, "exec", false, "without credentials: clients get them from this program, which renews them")
	return cmd
}

// deliver prints a kubeconfig, or writes it and prints where.
func (c *cli) deliver(config *clientcmdapi.Config, p *place, a access, output, file string, renewing bool) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	switch output {
	case "json":
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return err
		}
		data = append(data, '\n')
		fallthrough
	case "yaml":
		_, err := c.Out.Write(data)
		return err
	}
	if file == "" {
		name := p.name + "-" + a.role()
		if renewing {
			name += "-exec"
		}
		file = c.kubeconfigFile(p, name)
	}
	if err := writePrivate(file, data); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, file)
	return err
}

// kubeconfigFile is where a kubeconfig is written to by default.
func (c *cli) kubeconfigFile(p *place, name string) string {
	return filepath.Join(c.CacheDir, "kubeconfigs", fingerprint(p.config.Host), p.namespace, name+".yaml")
}

// renewThroughUs replaces the credentials in a kubeconfig by this program as exec plugin, and caches them for it.
func (c *cli) renewThroughUs(config *clientcmdapi.Config, p *place, a access, until time.Time) error {
	credential, err := credentialOf(config, until)
	if err != nil {
		return err
	}
	if err := c.keep(c.cacheFile(p, a), credential); err != nil {
		return err
	}
	args := []string{"credential", p.name, "--namespace=" + p.namespace, "--expiration=" + a.expiration.String()}
	if a.viewer {
		args = append(args, "--viewer")
	}
	// The target and $KUBECONFIG may be others when it runs.
	args = append(args, "--kubeconfig="+p.kubeconfig, "--context="+p.context)
	plugin := &clientcmdapi.ExecConfig{
		APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: c.Executable, Args: args,
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		InstallHint:     "gardenctl requests the credentials of this cluster; recreate the kubeconfig with: gardenctl kubeconfig " + p.name + " --exec",
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: plugin}
	}
	return nil
}

// userOf returns the user of the current context of a kubeconfig.
func userOf(config *clientcmdapi.Config) (*clientcmdapi.AuthInfo, error) {
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, errors.New("the garden's response has no user")
	}
	return config.AuthInfos[current.AuthInfo], nil
}
