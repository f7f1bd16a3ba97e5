// Command rights compares what the identities of a running cluster may do with what its audit logs say that they did.
//
//	go run ./hack/rights -kubeconfig FILE -accepted test/rights/runtime.yaml DIR...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/test/rights"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster")
	file := flag.String("accepted", "", "file of findings that have a reason")
	flag.Parse()
	data, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	accepted, err := rights.ParseAccepted(data)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	left, idle, err := rights.Check(ctx, c, accepted, flag.Args()...)
	if err != nil {
		return err
	}
	fmt.Print(rights.Report(left))
	for _, reason := range idle {
		fmt.Fprintln(os.Stderr, "no finding has the reason for", reason)
	}
	if len(left) > 0 {
		return errors.New("there are findings without a reason")
	}
	return nil
}
