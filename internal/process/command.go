package process

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
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
	// Short says in a line what the component does.
	Short string
	// Config says how the configuration file is read.
	Config configfile.Kind[T]
	// Settings picks what every process has from the configuration, which is complete and valid.
	Settings func(*T) Settings
	// Features are the feature gates that the component knows.
	Features map[featuregate.Feature]featuregate.FeatureSpec
	// Kinds are those that the clients of the manager's cluster know, besides those of Kubernetes.
	Kinds []AddToScheme
	// Protobuf are those of the Kinds that are served as protobuf too, which takes less time and memory than JSON. Those of
	// Kubernetes itself always count as such, those of a CustomResourceDefinition never.
	Protobuf []AddToScheme
	// Options changes the options of the manager, for instance what its cache keeps. It may be nil.
	Options func(*T, *manager.Options)
	// Wire adds controllers, webhooks, checks and clusters to the process. The context ends with the process.
	Wire func(context.Context, *Process, *T) error
}

// Command returns the command that runs the component until its context ends.
func (c Component[T]) Command() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     c.Name,
		Short:   c.Short,
		Example: "  " + c.Name + " --config=config.yaml",
		Version: Version(),
		Args:    cobra.NoArgs,
		// Errors are printed here, so that each of several mistakes in a file gets its line.
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := c.Config.Read(file)
			if err == nil {
				settings := c.Settings(config)
				log := NewLogger(cmd.ErrOrStderr(), settings.LogLevel, settings.LogFormat)
				// Libraries that take no logger log to these.
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
	cmd.Flags().StringVar(&file, "config", "", "path of the configuration file")
	return cmd
}

// printError prints one line per mistake.
func printError(w io.Writer, err error) {
	var mistakes utilerrors.Aggregate
	if !errors.As(err, &mistakes) || len(mistakes.Errors()) == 1 {
		fmt.Fprintln(w, "error:", err)
		return
	}
	fmt.Fprintln(w, "error: several things are wrong:")
	for _, mistake := range utilerrors.Flatten(mistakes).Errors() {
		fmt.Fprintln(w, "-", mistake)
	}
}
