// Command gardenctl is the command line for owners of shoots. Named kubectl-garden, it is a plugin of kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/internal/apiserver/openapi"
	"gardener.cloud/gardener/internal/gardenctl"
)

func main() {
	// Logs of libraries would mix with the results; what matters is returned as errors.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	code := run(ctx)
	stop()
	os.Exit(code)
}

func run(ctx context.Context) int {
	configDir := os.Getenv("GCTL_CONFIG_DIR")
	if configDir == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			fmt.Fprintln(os.Stderr, "error: no directory for the configuration: "+err.Error()+"; set one with GCTL_CONFIG_DIR")
			return 1
		}
		configDir = filepath.Join(dir, "gardenctl")
	}
	cacheDir, err := os.UserCacheDir()
	if err != nil {
		cacheDir = filepath.Join(configDir, "cache")
	} else {
		cacheDir = filepath.Join(cacheDir, "gardenctl")
	}
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return gardenctl.Run(ctx, gardenctl.Options{
		Program: filepath.Base(os.Args[0]), Executable: executable,
		In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr,
		Interactive: term.IsTerminal(int(os.Stdin.Fd())),
		Color:       term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		ConfigDir:   configDir, CacheDir: cacheDir, Session: os.Getenv("GCTL_SESSION_ID"), Kubeconfig: os.Getenv("KUBECONFIG"),
		Clock: clock.RealClock{}, Definitions: openapi.GetOpenAPIDefinitions,
	}, os.Args[1:])
}
