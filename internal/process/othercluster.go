package process

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/destination"
)

// identifyTimeout is the end of the request that identifies the cluster with the machines.
const identifyTimeout = 30 * time.Second

// OtherCluster is the cluster of a user, which may not be that of the process: the one with local machines.
type OtherCluster struct {
	// Kubeconfig is the file with the kubeconfig of the cluster. It is a user's. Empty means the cluster of the process.
	Kubeconfig string
	// UID is that of the namespace kube-system there. Empty means any.
	UID string
	// Blocked returns why not to connect to a host, or "".
	Blocked func(host string) string
}

// AddFlags adds the flags of a process that works with the cluster.
func (c *OtherCluster) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Kubeconfig, "infrastructure-kubeconfig", c.Kubeconfig, "kubeconfig of the cluster whose pods are the machines; empty for the one of this process")
	fs.StringVar(&c.UID, "infrastructure-cluster", c.UID, "UID of the namespace kube-system of the cluster whose pods are the machines; empty for any")
}

// Config returns the configuration of its clients, or nil if it is the cluster of the process.
func (c *OtherCluster) Config() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return nil, nil
	}
	content, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cluster with the machines: %w", err)
	}
	config, err := kube.ConfigOfUser(content, c.Blocked)
	if err != nil {
		return nil, fmt.Errorf("cluster with the machines: %w", err)
	}
	config.Dial = destination.Dialer(c.Blocked).DialContext
	kube.LimitResponses(config, kube.MaxShootResponse)
	return config, nil
}

// Check fails if a cluster is another one than that with the machines, whose kubeconfig may have changed since: those that exist would be lost.
func (c *OtherCluster) Check(ctx context.Context, api client.Reader) error {
	if c.UID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	uid, err := kube.ClusterUID(ctx, api)
	if err != nil {
		return fmt.Errorf("cluster with the machines: %w", err)
	}
	if string(uid) != c.UID {
		return fmt.Errorf("cluster with the machines: the kubeconfig is for another cluster: Namespace %q has the UID %q, and must have %q", metav1.NamespaceSystem, uid, c.UID)
	}
	return nil
}
