// Command local-loadbalancer gives Services of type LoadBalancer an address from a pool that is routed to one of the
// cluster's nodes, whose kube-proxy handles it. It is the cloud provider of local clusters, for the service controller of
// k8s.io/cloud-provider.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cloud-provider/controllers/service"
	"k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/klog/v2"
)

func main() {
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, `local-loadbalancer gives LoadBalancer Services of one cluster addresses from a pool.

Example: local-loadbalancer --pool 172.30.0.128/28

Without --kubeconfig it runs inside the cluster. Run one instance per cluster and pool.

`)
		flag.PrintDefaults()
	}
	pool := flag.String("pool", "", "addresses to assign, in CIDR notation; they must be routed to a node (required)")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig `file` for use outside the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *pool, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "local-loadbalancer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pool, kubeconfig string) error {
	prefix, err := netip.ParsePrefix(pool)
	if err != nil {
		return fmt.Errorf("--pool must be a network such as 172.30.0.128/28: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "local-loadbalancer"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	const never = 0 * time.Second // Watches deliver every change, so no resync is needed.
	factory := informers.NewSharedInformerFactory(client, never)
	services := factory.Core().V1().Services()
	balancer := newBalancer(prefix, func() ([]*corev1.Service, error) { return services.Lister().List(labels.Everything()) })
	controller, err := service.New(balancer, client, services, factory.Core().V1().Nodes(), "local", utilfeature.DefaultFeatureGate)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	klog.FromContext(ctx).Info("Assigning addresses", "pool", prefix)
	// One worker, so that two Services never get the same free address.
	controller.Run(ctx, 1, controllers.NewControllerManagerMetrics("local-loadbalancer"))
	return nil
}
