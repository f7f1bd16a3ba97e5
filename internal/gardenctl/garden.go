package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// garden is a garden and a client of it.
type garden struct {
	client client.WithWatch
	config *rest.Config
	// kubeconfig and context are the files and the context of the access.
	kubeconfig, context string
	// namespace is that of the context, if it has one.
	namespace string
	// seeds are the seeds in the configuration.
	seeds []SeedConfig
}

// connect returns the garden, and the target with the values of flags.
func (c *cli) connect() (*garden, Target, error) {
	if c.flags.kubeconfig != "" && c.flags.garden != "" {
		return nil, Target{}, errors.New("--kubeconfig and --garden exclude each other")
	}
	if c.flags.project != "" && c.flags.namespace != "" {
		return nil, Target{}, errors.New("--project and --namespace exclude each other")
	}
	target, err := c.savedTarget()
	if err != nil {
		return nil, Target{}, err
	}
	name := target.Garden
	if c.flags.kubeconfig != "" || c.flags.garden != "" {
		name = c.flags.garden
	}
	g, err := c.open(name)
	if err != nil {
		return nil, Target{}, err
	}
	here := Target{Garden: name}
	if name == "" {
		here.Server = g.config.Host
	}
	// The target of one garden does not apply to another.
	if target.Garden != here.Garden || target.Server != here.Server {
		if target.Server != "" && name == "" && c.flags.kubeconfig == "" {
			fmt.Fprintf(c.ErrOut, "warning: the target is ignored, as it is in the garden at %s, and the current kubeconfig is for %s\n", target.Server, here.Server)
		}
		target = here
	}
	if c.flags.namespace != "" || c.flags.project != "" {
		target = here
		target.Project, target.Namespace = c.flags.project, c.flags.namespace
	}
	if c.flags.shoot != "" {
		target.Shoot = c.flags.shoot
	}
	return g, target, nil
}

// open reads the kubeconfig of a garden, and creates a client from it. It sends no request.
func (c *cli) open(name string) (*garden, error) {
	g := &garden{kubeconfig: c.Kubeconfig, context: c.flags.context}
	switch {
	case c.flags.kubeconfig != "":
		g.kubeconfig = c.flags.kubeconfig
	case name != "":
		config, err := c.config()
		if err != nil {
			return nil, err
		}
		known := config.garden(name)
		if known == nil {
			return nil, c.unknownGarden(name)
		}
		g.kubeconfig, g.seeds = known.Kubeconfig, known.Seeds
		if g.context == "" {
			g.context = known.Context
		}
	}
	if g.kubeconfig == "" {
		g.kubeconfig = clientcmd.RecommendedHomeFile
	}
	// The path is used by commands with other working directories.
	var err error
	files := slices.DeleteFunc(filepath.SplitList(g.kubeconfig), func(file string) bool { return file == "" })
	for i := range files {
		if files[i], err = filepath.Abs(files[i]); err != nil {
			return nil, err
		}
	}
	g.kubeconfig = strings.Join(files, string(filepath.ListSeparator))
	loaded, err := loadKubeconfig(g.kubeconfig, g.context)
	if err != nil {
		return nil, fmt.Errorf("%w; set --kubeconfig FILE, or run: %s config add garden NAME FILE", err, c.program())
	}
	g.config, g.context, g.namespace = loaded.config, loaded.context, loaded.namespace
	g.client, err = client.NewWithWatch(g.config, client.Options{Scheme: gardenScheme(), Mapper: gardenMapper()})
	return g, err
}

// unknownGarden is the error about a garden that is not in the configuration (any more).
func (c *cli) unknownGarden(name string) error {
	text := fmt.Sprintf("garden %q is not in the configuration; add it with: %s config add garden %s KUBECONFIG", name, c.program(), name)
	if target, err := c.savedTarget(); err == nil && target.Garden == name && c.flags.garden == "" {
		text += fmt.Sprintf(", or: %s target unset", c.program())
	}
	return errors.New(text)
}

// kubeconfig is a loaded kubeconfig.
type kubeconfig struct {
	config             *rest.Config
	context, namespace string
}

// loadKubeconfig reads one file or, as kubectl does, a list of files like $PATH.
func loadKubeconfig(files, context string) (*kubeconfig, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(files)}
	if len(rules.Precedence) == 1 {
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: files}
	}
	raw, err := rules.Load()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no kubeconfig in %s", files)
		}
		return nil, fmt.Errorf("read kubeconfig %s: %w", files, err)
	}
	if context == "" {
		context = raw.CurrentContext
	}
	if raw.Contexts[context] == nil {
		return nil, fmt.Errorf("kubeconfig %s has no context %q", files, context)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", files, err)
	}
	// A user waits for the few requests of a command; the server has its own limits.
	config.QPS = -1
	return &kubeconfig{config, context, raw.Contexts[context].Namespace}, nil
}

func gardenScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		coordinationv1.AddToScheme, corev1.AddToScheme, corev1beta1.AddToScheme, authenticationv1alpha1.AddToScheme, operationsv1alpha1.AddToScheme,
		seedmanagementv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // happens only for two types with the same name
		}
	}
	return scheme
}

// gardenMapper has the few resources that are requested, so that no discovery is needed.
func gardenMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, corev1beta1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion})
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Shoot"), meta.RESTScopeNamespace)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Project"), meta.RESTScopeRoot)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Seed"), meta.RESTScopeRoot)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("BackupEntry"), meta.RESTScopeNamespace)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("ShootState"), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(operationsv1alpha1.SchemeGroupVersion.WithKind("Bastion"), meta.RESTScopeNamespace)
	mapper.Add(seedmanagementv1alpha1.SchemeGroupVersion.WithKind("Gardenlet"), meta.RESTScopeNamespace)
	mapper.Add(seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed"), meta.RESTScopeNamespace)
	return mapper
}

// namespaceOf returns the namespace of the targeted project, or else that of the kubeconfig.
func (c *cli) namespaceOf(ctx context.Context, g *garden, target Target) (string, error) {
	switch {
	case target.Namespace != "":
		return target.Namespace, nil
	case target.Project != "":
		return c.projectNamespace(ctx, g, target.Project)
	case g.namespace != "":
		return g.namespace, nil
	}
	return "", fmt.Errorf("no project is given or targeted; set --project NAME, or run: %s target project NAME", c.program())
}

func (c *cli) projectNamespace(ctx context.Context, g *garden, name string) (string, error) {
	project := &corev1beta1.Project{}
	if err := g.client.Get(ctx, client.ObjectKey{Name: name}, project); err != nil {
		return "", c.explain(err, g, fmt.Sprintf("project %q", name), c.program()+" get projects")
	}
	if project.Spec.Namespace == nil {
		return "", fmt.Errorf("project %q has no namespace yet; see its status with: %s get projects %s", name, c.program(), name)
	}
	return *project.Spec.Namespace, nil
}

// place is the garden, namespace and name of the shoot of a command.
type place struct {
	*garden
	target    Target
	namespace string
	name      string
}

// find returns the place of the shoot that arguments name. It need not exist.
func (c *cli) find(ctx context.Context, args []string) (*place, error) {
	g, target, err := c.connect()
	if err != nil {
		return nil, err
	}
	name, err := c.shootArgument(args, target)
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespaceOf(ctx, g, target)
	if err != nil {
		return nil, err
	}
	return &place{garden: g, target: target, namespace: namespace, name: name}, nil
}

func (p *place) key() client.ObjectKey { return client.ObjectKey{Namespace: p.namespace, Name: p.name} }

// read returns the shoot.
func (c *cli) read(ctx context.Context, p *place) (*corev1beta1.Shoot, error) {
	shoot := &corev1beta1.Shoot{}
	if err := p.client.Get(ctx, p.key(), shoot); err != nil {
		return nil, c.explainShoot(err, p)
	}
	return shoot, nil
}

func (c *cli) explainShoot(err error, p *place) error {
	what := fmt.Sprintf("shoot %q in namespace %q", p.name, p.namespace)
	return c.explain(err, p.garden, what, fmt.Sprintf("%s get shoots -n %s", c.program(), p.namespace))
}

// explain adds the next step to an error of the API.
func (c *cli) explain(err error, g *garden, what, list string) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse): // the server does not serve the kind
		return fmt.Errorf("the cluster at %s is no garden; kubeconfig %s may be that of a shoot: set the garden's with --kubeconfig or --garden", g.config.Host, g.kubeconfig)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s not found; list existing ones with: %s", what, list)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; ask an administrator of the project for access", what, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the garden rejects your credentials (%w); renew those in kubeconfig %s", what, err, g.kubeconfig)
	case errors.As(err, &status):
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: no response from the garden at %s (%w); check kubeconfig %s", what, g.config.Host, err, g.kubeconfig)
}

func projectNames(ctx context.Context, g *garden, _ Target) ([]string, error) {
	return names(ctx, g, &corev1beta1.ProjectList{})
}

func seedNames(ctx context.Context, g *garden, _ Target) ([]string, error) {
	return names(ctx, g, &corev1beta1.SeedList{})
}

func (c *cli) shootNames(ctx context.Context, g *garden, target Target) ([]string, error) {
	namespace, err := c.namespaceOf(ctx, g, target)
	if err != nil {
		return nil, err
	}
	return names(ctx, g, &corev1beta1.ShootList{}, client.InNamespace(namespace))
}

func names(ctx context.Context, g *garden, list client.ObjectList, options ...client.ListOption) ([]string, error) {
	if err := g.client.List(ctx, list, options...); err != nil {
		return nil, err
	}
	var found []string
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		accessor, err := meta.Accessor(obj)
		if err == nil {
			found = append(found, accessor.GetName())
		}
		return err
	})
	slices.SortFunc(found, strings.Compare)
	return found, err
}
