package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Target is the cluster that a control plane is for. The first task that needs it connects; all tasks of a run share the connection. A
// failure is not kept, so that a task that is retried tries again. Tasks use it after the kube-apiserver is ready.
type Target struct {
	kubeconfig func(context.Context) ([]byte, error)
	connect    func(*rest.Config) (client.WithWatch, error)
	discover   func(*rest.Config) ([]*metav1.APIResourceList, error)

	mu     sync.Mutex // tasks that do not depend on each other connect at the same time
	config *rest.Config
	client client.WithWatch
	served []*metav1.APIResourceList
}

// NewTarget returns a cluster that is reached by a kubeconfig, with the functions that make a client and that list the kinds which the
// kube-apiserver serves.
func NewTarget(
	kubeconfig func(context.Context) ([]byte, error), connect func(*rest.Config) (client.WithWatch, error),
	discover func(*rest.Config) ([]*metav1.APIResourceList, error),
) *Target {
	return &Target{kubeconfig: kubeconfig, connect: connect, discover: discover}
}

// Client returns a client for the cluster, with all permissions and without a cache.
func (t *Target) Client(ctx context.Context) (client.WithWatch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.ensure(ctx)
	return t.client, err
}

// Resources returns which kinds of objects the kube-apiserver serves. All tasks of a run see the same.
func (t *Target) Resources(ctx context.Context) ([]*metav1.APIResourceList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ensure(ctx); err != nil || t.served != nil {
		return t.served, err
	}
	served, err := t.discover(t.config)
	if err != nil {
		return nil, fmt.Errorf("list the kinds that the kube-apiserver serves: %w", err)
	}
	t.served = served
	return served, nil
}

// ensure connects if no task has before.
func (t *Target) ensure(ctx context.Context) error {
	if t.client != nil {
		return nil
	}
	kubeconfig, err := t.kubeconfig(ctx)
	if err != nil {
		return fmt.Errorf("create kubeconfig for the cluster: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return errors.New("the kubeconfig for the cluster is invalid") // the error may quote it
	}
	c, err := t.connect(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	t.config, t.client = config, c
	return nil
}

// NewConnectedTarget returns a cluster whose client is there already.
func NewConnectedTarget(c client.WithWatch, discover func(*rest.Config) ([]*metav1.APIResourceList, error)) *Target {
	return &Target{client: c, discover: discover}
}
