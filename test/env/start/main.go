// Command start runs a garden without controllers until it is interrupted: go run ./test/env/start --kubeconfig FILE. What follows
// two dashes are flags for gardener-apiserver.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"gardener.cloud/gardener/test/env"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file to write the administrator's kubeconfig to")
	verbose := flag.Bool("v", false, "print the logs of the servers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := run(ctx, *kubeconfig, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, verbose bool, flags []string) (err error) {
	if kubeconfig == "" {
		return fmt.Errorf("where should the kubeconfig go? Say it with --kubeconfig FILE")
	}
	logs := io.Discard
	if verbose {
		logs = os.Stderr
	}
	e, err := env.New(ctx, logs, env.Flags(flags...))
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := e.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := e.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "The garden is ready; interrupt to stop it. Try: kubectl --kubeconfig "+kubeconfig+" api-resources")
	<-ctx.Done()
	return nil
}
