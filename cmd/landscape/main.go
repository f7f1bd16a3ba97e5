// Command landscape runs a garden, a seed and shoots on this computer, without Docker.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/internal/subcommand"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/landscape/progress"
)

func main() {
	// Files of this process and of containerd must be readable for other users: its snapshotter creates the root directories of containers with
	// the mask of its parent, and processes that are not root could not enter them.
	unix.Umask(0o022)
	keepDescriptors()
	// Logs of libraries would break the progress lines; what matters is returned as errors.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	if err := landscape.BypassProxy(os.Getenv, os.Setenv); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	cmd, err := newCommand(os.Stdin, os.Stdout, os.Stderr).ExecuteContextC(ctx)
	message, code := outcome(cmd.Name(), err, ctx.Err() != nil)
	if message != "" {
		fmt.Fprintln(os.Stderr, message)
	}
	os.Exit(code)
}

// keepDescriptors keeps files that this command has inherited from the programs that it starts: containerd outlives it, and would hold the lock of
// "flock FILE landscape up" until "down".
func keepDescriptors() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Kernels before 5.11 lack it.
}

// outcome is the last message of a command, and its exit code.
func outcome(command string, err error, interrupted bool) (message string, code int) {
	var exit exitCode
	switch {
	case err == nil:
		return "", 0
	case errors.As(err, &exit):
		return "", int(exit)
	case interrupted && (command == "up" || command == "down"):
		return "interrupted; the same command continues", 130
	case interrupted:
		return "", 130
	}
	return "error: " + err.Error(), 1
}

// exitCode is an error that ends the process without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// cli is what all subcommands share.
type cli struct {
	in          io.Reader
	out, errOut io.Writer

	name, root, cache string
}

func newCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	c := &cli{in: in, out: out, errOut: errOut}
	cmd := &cobra.Command{
		Use:   "landscape",
		Short: "Run Kubernetes clusters on this computer, without Docker",
		Long: `Examples:
  landscape up                              # a garden, a seed, and a shoot with a node
  landscape status
  export KUBECONFIG=$(landscape kubeconfig)
  kubectl get shoots -A
  landscape down

landscape starts machines, which are containers with systemd, and makes Kubernetes clusters from them. It has a
containerd, a registry and a network of its own; "down" leaves nothing behind.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          subcommand.Choose,
	}
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	cmd.PersistentFlags().StringVar(&c.name, "name", landscape.DefaultName, "name of the landscape; several can run side by side")
	cmd.PersistentFlags().StringVar(&c.root, "dir", "", "directory that holds landscapes (default: .landscape in the checkout)")
	cmd.PersistentFlags().StringVar(&c.cache, "cache", "", "the distribution's cache (default: $GARDENER_CACHE, else gardener/distribution in the user's cache directory)")
	cmd.AddCommand(c.upCommand(), c.downCommand(), c.statusCommand(), c.kubeconfigCommand(), c.shellCommand(), c.stopCommand(), c.startCommand(), c.imagesCommand(), c.logsCommand())
	return cmd
}

// builds opens the distribution that belongs to this checkout.
func (c *cli) builds() (*distribution.Distribution, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	cache := c.cache
	if cache == "" {
		if cache, err = distribution.DefaultCache(); err != nil {
			return nil, err
		}
	}
	return distribution.Open(root, cache)
}

// checkout finds the checkout that the working directory or this program is in.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root, err := distribution.FindRoot(dir)
	if err == nil {
		return root, nil
	}
	if program, programErr := os.Executable(); programErr == nil {
		if root, programErr := distribution.FindRoot(filepath.Dir(program)); programErr == nil {
			return root, nil
		}
	}
	return "", err
}

func (c *cli) open() (*landscape.Landscape, error) {
	root := c.root
	if root == "" {
		dir, err := checkout()
		if err != nil {
			return nil, err
		}
		root = filepath.Join(dir, ".landscape")
	}
	return landscape.Open(root, c.name)
}

func (c *cli) printer() *progress.Printer { return progress.New(c.errOut) }
