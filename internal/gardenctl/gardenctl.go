// Package gardenctl is the command line for owners of shoots: it reads and annotates Shoots in a garden, requests credentials for
// them, and reads the logs of their control planes from the seed. It keeps a target and credentials in files of the user.
package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/subcommand"
)

const (
	// Name is the name of the program.
	Name = "gardenctl"
	// pluginName is its name as a plugin of kubectl.
	pluginName = "kubectl-garden"
	// requestTimeout is how long a request, or the few of a command, may take. Watches and logs have their own timeouts.
	requestTimeout = 30 * time.Second
)

// Options are the streams and the environment of the process.
type Options struct {
	// Program is the name that it was started by; for "kubectl-garden", its help has "kubectl garden".
	Program string
	// Executable is the path of the program, for kubeconfigs that run it.
	Executable string
	// In is read for confirmations, results go to Out, and progress and errors to ErrOut.
	In          io.Reader
	Out, ErrOut io.Writer
	// Interactive says that a user can answer questions.
	Interactive bool
	// Color allows colour in results.
	Color bool
	// ConfigDir holds the configuration and the targets, CacheDir credentials.
	ConfigDir, CacheDir string
	// Session identifies the terminal, so that it has a target of its own. Empty for the target that all others share.
	Session string
	// Kubeconfig are the files of the garden's kubeconfig, as in $KUBECONFIG. Empty for kubectl's usual file.
	Kubeconfig string
	// Clock is the source of the current time.
	Clock clock.PassiveClock
	// Definitions are the OpenAPI definitions of gardener-apiserver.
	Definitions common.GetOpenAPIDefinitions
}

// Run runs the program and returns its exit code: 0, 1 for an error, 130 if it was interrupted.
func Run(ctx context.Context, options Options, args []string) int {
	root := newCommand(options) //nolint:contextcheck // commands get theirs when they run
	root.SetArgs(args)
	understood := false
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(options.ErrOut, "interrupted")
		return 130
	case !understood: // the error is about flags or arguments, and has no next step
		err = fmt.Errorf("%w; usage: %s; see: %s --help", err, cmd.UseLine(), cmd.CommandPath())
	}
	fmt.Fprintln(options.ErrOut, "error: "+oneLine(err))
	return 1
}

// oneLine returns an error as one line.
func oneLine(err error) string { return line(err.Error()) }

// cli is what all subcommands share.
type cli struct {
	Options
	flags flags
}

// flags are those of all subcommands.
type flags struct {
	kubeconfig, context               string
	garden, project, namespace, shoot string
}

// program is the command that the user runs it by.
func (c *cli) program() string {
	if c.Program == pluginName {
		return "kubectl garden"
	}
	return Name
}

func newCommand(options Options) *cobra.Command {
	c := &cli{Options: options}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Manage shoots of a Gardener landscape",
		Long: c.examples(`get shoots -A
  PROGRAM target project dev                     # from now on: shoots of this project
  PROGRAM describe shoot my-cluster              # how it is, what fails, and what to do about it
  PROGRAM wait shoot my-cluster --for=healthy
  export KUBECONFIG=$(PROGRAM kubeconfig my-cluster --exec)
  PROGRAM logs shoot my-cluster kube-apiserver -f`) + `
The garden is the cluster of the current kubeconfig, or of one that was added with "` + c.program() + ` config add garden".`,
		SilenceUsage: true, SilenceErrors: true, Args: cobra.ArbitraryArgs, RunE: subcommand.Choose,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: c.program()},
	}
	cmd.SetIn(options.In)
	cmd.SetOut(options.Out)
	cmd.SetErr(options.ErrOut)
	all := cmd.PersistentFlags()
	all.StringVar(&c.flags.kubeconfig, "kubeconfig", "", "kubeconfig of the garden (default: that of the targeted garden, else $KUBECONFIG, else ~/.kube/config)")
	all.StringVar(&c.flags.context, "context", "", "context in the kubeconfig (default: the current one)")
	all.StringVar(&c.flags.garden, "garden", "", "a garden of the configuration (default: the targeted one)")
	all.StringVar(&c.flags.project, "project", "", "project (default: the targeted one)")
	all.StringVarP(&c.flags.namespace, "namespace", "n", "", "namespace of a project, in place of its name")
	all.StringVar(&c.flags.shoot, "shoot", "", "shoot, where its name is not an argument (default: the targeted one)")
	for name, complete := range map[string]cobra.CompletionFunc{
		"garden": c.completeGardens, "project": c.completion(projectNames), "shoot": c.completion(c.shootNames),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, complete) // it fails for unknown flags only
	}
	cmd.AddCommand(
		c.targetCommand(), c.configCommand(), c.getCommand(), c.describeCommand(), c.waitCommand(),
		c.operationCommand(reconcileOperation), c.operationCommand(retryOperation), c.operationCommand(maintainOperation),
		c.rotateCommand(), c.slumberCommand(hibernate), c.slumberCommand(wake), c.migrateCommand(), c.recoverCommand(), c.upgradeCommand(),
		c.kubeconfigCommand(), c.credentialCommand(), c.logsCommand(), c.sshCommand(), c.deleteCommand(), c.gardenCommand(), c.schemaCommand(),
		c.versionCommand(),
	)
	return cmd
}

// examples is the beginning of a help text.
func (c *cli) examples(lines string) string {
	return "Examples:\n  " + strings.ReplaceAll("PROGRAM "+lines, "PROGRAM", c.program()) + "\n"
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.Out, version.Get().GitVersion)
			return err
		},
	}
}

// shootArgument returns the shoot that arguments name: "shoot NAME", "shoot/NAME", or NAME. Without a name it is the one that is targeted.
func (c *cli) shootArgument(args []string, target Target) (string, error) {
	if len(args) > 0 {
		kind, name, slash := strings.Cut(args[0], "/")
		switch {
		case slash && !isShoot(kind):
			return "", fmt.Errorf("unknown kind %q; use: shoot NAME", kind)
		case slash:
			args = append([]string{name}, args[1:]...)
		case isShoot(kind):
			args = args[1:]
		}
	}
	switch {
	case len(args) > 1:
		return "", errors.New("one shoot at a time; use: shoot NAME")
	case len(args) == 1 && args[0] == "": // most likely a variable that is not set
		return "", errors.New("the name of the shoot is empty; use: shoot NAME")
	case len(args) == 1:
		return args[0], nil
	case target.Shoot != "":
		return target.Shoot, nil
	}
	return "", fmt.Errorf("no shoot is given or targeted; add its name, or run: %s target shoot NAME", c.program())
}

func isShoot(kind string) bool { return kind == "shoot" || kind == "shoots" }

// within limits the time of a few requests.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %s", limit))
}
