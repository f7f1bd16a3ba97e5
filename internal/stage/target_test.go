package stage_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/stage"
)

// Tasks that run at the same time share one connection. A failure is not kept.
func TestTargetConnectsOnce(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["a"], config.Contexts["a"], config.CurrentContext = &clientcmdapi.Cluster{Server: "https://a.example"}, &clientcmdapi.Context{Cluster: "a"}, "a"
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	connections, lists, fails := 0, 0, errors.New("no answer")
	target := stage.NewTarget(
		func(context.Context) ([]byte, error) { return kubeconfig, nil },
		func(c *rest.Config) (client.WithWatch, error) {
			if c.Host != "https://a.example" {
				t.Errorf("host is %q", c.Host)
			}
			connections++
			return fake.NewFakeClient(), fails
		},
		func(*rest.Config) ([]*metav1.APIResourceList, error) {
			lists++
			return []*metav1.APIResourceList{{}}, nil
		})
	if c, err := target.Client(t.Context()); !errors.Is(err, fails) || c != nil {
		t.Errorf("a failed connection returns %v, %v", c, err)
	}
	fails = nil
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			c, err := target.Client(t.Context())
			served, errs := target.Resources(t.Context())
			if c == nil || len(served) != 1 || errors.Join(err, errs) != nil {
				t.Errorf("got %v, %v, %v, %v", c, served, err, errs)
			}
		})
	}
	group.Wait()
	if connections != 2 || lists != 1 {
		t.Errorf("%d connections and %d lists of kinds, want 2 and 1", connections, lists)
	}
}
