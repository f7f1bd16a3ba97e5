// Command local-storage provisions PersistentVolumes as directories on the node that the scheduler chose for a claim.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const usage = `Example:
  local-storage --node=$NODE_NAME --directory=/var/lib/local-storage

local-storage provisions PersistentVolumes as directories on the node that the scheduler chose for a claim. It runs on every
node, as root, with the directory mounted from the node at the same path. It serves the claims of StorageClasses with
its name as provisioner and volumeBindingMode WaitForFirstConsumer. A volume's size is not enforced. When a node is deleted,
the data of its volumes is lost: their claims are deleted, so that a StatefulSet gets new ones on other nodes. If the node was
not cordoned before, this is done after --grace, unless the node is registered again: it may have been deleted by mistake.

It needs to get, list, watch, create, patch and delete persistentvolumes; get, list and watch persistentvolumeclaims,
storageclasses and nodes; update and delete persistentvolumeclaims; create, update and patch events.

Flags:
`

// options are the flags.
type options struct {
	node, directory, name, kubeconfig string
	grace                             time.Duration
}

// parse takes the node that the environment names as the default.
func parse(args []string, node string, out io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("local-storage", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.node, "node", node, "the node this process runs on (default: $NODE_NAME)")
	flags.StringVar(&o.directory, "directory", "/var/lib/local-storage", "directory of volumes on the node; created if missing")
	flags.StringVar(&o.name, "name", "local-storage.gardener.cloud", "the provisioner's name, as in StorageClasses")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: the pod's service account)")
	flags.DurationVar(&o.grace, "grace", 5*time.Minute, "how long claims of volumes stay when their node was deleted without being cordoned before")
	klog.InitFlags(flags)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	case o.node == "":
		return o, errors.New("the node is not known: set --node or NODE_NAME")
	case !filepath.IsAbs(o.directory) || filepath.Clean(o.directory) == "/":
		return o, fmt.Errorf("--directory must be an absolute path below /, not %q", o.directory)
	case o.grace < 0:
		return o, fmt.Errorf("--grace must not be negative, as %s is", o.grace)
	case o.name == "":
		return o, errors.New("--name must not be empty")
	}
	o.directory = filepath.Clean(o.directory)
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Getenv("NODE_NAME"), os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, o.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %q: %w", o.node, err)
	}
	p, err := newProvisioner(o.directory, node, client.CoreV1().Nodes())
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Provisioning volumes", "provisioner", o.name, "node", o.node, "directory", o.directory)
	go func() {
		if err := newLost(client, o.grace).run(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Claims of volumes whose node is gone are not deleted")
		}
	}()
	// Every node has its own instance and its own claims, so there is no leader election.
	controller.NewProvisionController(ctx, client, o.name, p, controller.LeaderElection(false)).Run(ctx)
	return nil
}
