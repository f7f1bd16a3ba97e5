package process

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"gardener.cloud/gardener/internal/configfile"
)

// AddToScheme registers kinds.
type AddToScheme = func(*runtime.Scheme) error

// Component describes a component whose configuration file holds a T.
type Component[T any] struct {
	// Name is the name of the command, such as gardener-scheduler.
	Name string
	// Short is a one-line description of the component.
	Short string
	// Config reads the configuration file.
	Config configfile.Kind[T]
	// Settings returns the common settings of the configuration, which has its defaults and is valid.
	Settings func(*T) Settings
	// Features are the feature gates of the component.
	Features map[featuregate.Feature]featuregate.FeatureSpec
	// WithoutEffect are feature gates of the original that a configuration may have and that change nothing, with the only value that is true here.
	// Another value is logged.
	WithoutEffect map[featuregate.Feature]bool
	// Kinds are added to the scheme of the manager's cluster, besides those of Kubernetes.
	Kinds []AddToScheme
	// Protobuf are those of the Kinds that are served as protobuf too, which takes less time and memory than JSON. Those of
	// Kubernetes itself always are, those of a CustomResourceDefinition never.
	Protobuf []AddToScheme
	// Flags adds flags that say more than where the configuration file is. The function that it returns sets what they were given into a
	// configuration, which is validated after that. It may be nil.
	Flags func(*pflag.FlagSet) func(*T)
	// Options changes the options of the manager, such as those of its cache. It may be nil.
	Options func(*T, *manager.Options)
	// Wire adds controllers, webhooks, checks and clusters to the process. The context ends with the process.
	Wire func(context.Context, *Process, *T) error
}

// Command returns the command that runs the component until its context ends.
func (c Component[T]) Command() *cobra.Command {
	var file string
	var set func(*T)
	cmd := &cobra.Command{
		Use:     c.Name,
		Short:   c.Short,
		Example: "  " + c.Name + " --config=config.yaml",
		Version: Version(),
		Args:    cobra.NoArgs,
		// Errors are printed here, so that each of several errors in a file gets its line.
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := c.Config.Read(file)
			if err == nil && set != nil {
				set(config)
				err = c.Config.Check(config)
			}
			if err == nil {
				settings := c.Settings(config)
				log := NewLogger(cmd.ErrOrStderr(), settings.LogLevel, settings.LogFormat)
				// The loggers of libraries without a logger of their own.
				crlog.SetLogger(log)
				klog.SetLogger(log)
				err = c.Run(cmd.Context(), config, log)
			}
			if err != nil {
				printError(cmd.ErrOrStderr(), err)
			}
			return err
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		printError(cmd.ErrOrStderr(), err)
		return err
	})
	if c.Flags != nil {
		set = c.Flags(cmd.Flags())
	}
	cmd.Flags().StringVar(&file, "config", "", "path of the configuration file")
	return cmd
}

// printError prints one line per error.
func printError(w io.Writer, err error) {
	var aggregate utilerrors.Aggregate
	if !errors.As(err, &aggregate) || len(aggregate.Errors()) == 1 {
		fmt.Fprintln(w, "error:", err)
		return
	}
	fmt.Fprintln(w, "error: several things are wrong:")
	for _, err := range utilerrors.Flatten(aggregate).Errors() {
		fmt.Fprintln(w, "-", err)
	}
}
