package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

func TestRun(t *testing.T) {
	e := env.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := e.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	health, metrics := ports.Free(t, 1)[0], ports.Free(t, 1)[0]
	file := filepath.Join(t.TempDir(), "config.yaml")
	content := fmt.Sprintf(header+`
clientConnection: {kubeconfig: %s}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
debugging: {enableProfiling: true}
featureGates: {Fast: true, Former: true}
`, kubeconfig, health, metrics)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	url := func(port int, path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }
	lease := &coordinationv1.Lease{}
	leaseKey := types.NamespacedName{Namespace: "garden", Name: "gardener-scheduler-leader-election"}

	leading := make(chan struct{})
	component := example(func(_ context.Context, p *process.Process, _ *config) error {
		if !p.Gates.Enabled("Fast") {
			return errors.New("the feature gate is not as configured")
		}
		turns := prometheus.NewCounter(prometheus.CounterOpts{Name: "example_turns_total"})
		turns.Add(3)
		other, err := p.AddCluster("other", p.GetConfig(), func(o *cluster.Options) { o.Scheme = p.GetScheme() })
		if err != nil {
			return err
		}
		return errors.Join(p.Metrics.Register(turns), p.Add(manager.RunnableFunc(func(ctx context.Context) error {
			namespace := &corev1.Namespace{}
			if err := other.GetClient().Get(ctx, types.NamespacedName{Name: "garden"}, namespace); err != nil {
				return err
			}
			if len(namespace.ManagedFields) > 0 {
				return errors.New("the cache keeps managed fields")
			}
			close(leading)
			<-ctx.Done()
			return nil
		})))
	})
	config, err := component.Config.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(process.PodNameEnv, host)
	now := metav1.NowMicro()
	crashed := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: leaseKey.Namespace, Name: leaseKey.Name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(host + "_predecessor"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
		},
	}
	if err := e.Client.Create(t.Context(), crashed); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var ineffective atomic.Int32
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, `"Feature gate has no effect" "gate"="Former" "value"=true`) {
			ineffective.Add(1)
		}
	}, funcr.Options{})
	go func() { done <- component.Run(ctx, config, log) }()
	select {
	case <-leading:
	case err := <-done:
		t.Fatalf("it exited: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not lead after a minute")
	}

	if n := ineffective.Load(); n != 1 {
		t.Errorf("a feature gate without effect is logged %d times", n)
	}
	if err := e.Client.Get(t.Context(), leaseKey, lease); err != nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("the Lease has no holder: %v", err)
	}
	for url, want := range map[string]string{
		url(health, "/healthz"):                "ok",
		url(health, "/readyz/informers"):       "ok",
		url(health, "/readyz/informers-other"): "ok",
		url(metrics, "/metrics"):               "\nexample_turns_total 3\n",
		url(metrics, "/debug/pprof/cmdline"):   os.Args[0],
	} {
		if status, body := get(t, url); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, want %q in %q", url, status, want, body)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("it did not shut down gracefully: %v", err)
	}
	if err := e.Client.Get(t.Context(), leaseKey, lease); err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("the Lease was not released: held by %q, %v", *lease.Spec.HolderIdentity, err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
