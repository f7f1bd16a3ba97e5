// Command cluster-autoscaler changes the number of nodes of a cluster. It decides by the plugins of the kube-scheduler; all else is in
// internal/clusterautoscaler of Gardener's module, which must not depend on that of Kubernetes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/internal/clusterautoscaler"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o, err := clusterautoscaler.Parse(os.Args[1:], os.Getenv, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logf.SetLogger(klog.Background())
	ctx = logf.IntoContext(klog.NewContext(ctx, klog.Background()), klog.Background())
	shoot, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("find the cluster whose nodes are scaled: %w", err)
	}
	var control *rest.Config
	if path := os.Getenv("CONTROL_KUBECONFIG"); path != "" {
		control, err = clientcmd.BuildConfigFromFlags("", path)
	} else {
		control, err = rest.InClusterConfig()
	}
	if err != nil {
		return fmt.Errorf("find the cluster of the machines: %w", err)
	}
	namespace := os.Getenv("CONTROL_NAMESPACE")
	if namespace == "" {
		return errors.New("the namespace of the machines is not known: set CONTROL_NAMESPACE")
	}
	return clusterautoscaler.Run(ctx, o, clusterautoscaler.Clusters{Shoot: shoot, Control: control, Namespace: namespace, Clock: clock.RealClock{}}, newSimulator)
}
