// Package controllermanager tests the controllers of the gardener-controller-manager against real API servers.
package controllermanager

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/maintenance"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// timeout is how long a test waits for a change. It takes well below a second on an idle machine.
const timeout = time.Minute

// garden is the environment that the tests share, with its controllers.
type garden struct {
	*env.Env
	client client.WithWatch
	config *controllermanagerconfigv1alpha1.ControllerManagerConfiguration
	// all is the top-level test. Controllers that a subtest started run until it ends.
	all *testing.T

	running *controllers
	// leftOver is the work that earlier controllers had when they were stopped; it stays in the metrics.
	leftOver float64
}

// controllers are those of one manager.
type controllers struct {
	stop   context.CancelFunc
	done   chan error
	writes *writes
	// cache is theirs, which may be a moment behind.
	cache client.Reader
}

// counting is a manager that counts its controllers.
type counting struct {
	manager.Manager
	controllers int
}

// Add adds a runnable, and counts it if it is a controller.
func (c *counting) Add(runnable manager.Runnable) error {
	if _, ok := runnable.(controller.Controller); ok {
		c.controllers++
	}
	return c.Manager.Add(runnable)
}

// writes records the requests that are not reads.
type writes struct {
	next  http.RoundTripper
	mu    sync.Mutex
	lines []string
}

func (w *writes) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/leases/") {
		w.mu.Lock()
		w.lines = append(w.lines, request.Method+" "+request.URL.Path)
		w.mu.Unlock()
	}
	return w.next.RoundTrip(request)
}

func (w *writes) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines...)
}

func newGarden(t *testing.T, config string) *garden {
	t.Helper()
	e := env.Start(t, env.Lenient())
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := controllermanager.Component().Config.Decode([]byte(
		"apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n" + config))
	if err != nil {
		t.Fatal(err)
	}
	return &garden{Env: e, client: c, config: decoded, all: t}
}

// blocked is destination.Host, except that the clusters of Plants are on this machine.
func blocked(host string) string {
	if host == "127.0.0.1" {
		return ""
	}
	return destination.Host(host)
}

// start starts the controllers and waits until their workers have started.
func (g *garden) start(t *testing.T) {
	t.Helper()
	run := &controllers{writes: &writes{}, done: make(chan error, 1)}
	started := make(chan struct{}, 100)
	crlog.SetLogger(logr.Discard())
	log := logr.New(funcr.NewJSON(func(line string) {
		switch {
		case strings.Contains(line, `"msg":"Starting workers"`):
			started <- struct{}{}
		case strings.Contains(line, `"msg":"Starting `), strings.Contains(line, `"msg":"All workers finished"`):
			// They would hide the output of a failing test.
		default:
			g.all.Log(line)
		}
	}, funcr.Options{}).GetSink())
	config := rest.CopyConfig(g.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		run.writes.next = next
		return run.writes
	})
	options := manager.Options{Scheme: g.Scheme, Logger: log, Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Controller.SkipNameValidation = new(true) // there is more than one manager in this process, one after the other
	controllermanager.Component().Options(g.config, &options)
	inner, err := manager.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	mgr := &counting{Manager: inner}
	run.cache = mgr.GetClient()
	if err := controllermanager.AddControllers(g.all.Context(), mgr, &g.config.Controllers, blocked); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(g.all.Context())
	run.stop = cancel
	go func() { run.done <- mgr.Start(ctx) }()
	g.running = run
	deadline := time.After(timeout)
	for range mgr.controllers {
		select {
		case <-started:
		case err := <-run.done:
			t.Fatalf("controllers ended: %v", err)
		case <-deadline:
			t.Fatal("controllers do not start")
		}
	}
}

func (g *garden) stop(t *testing.T) {
	t.Helper()
	g.running.stop()
	if err := <-g.running.done; err != nil {
		t.Fatalf("stop controllers: %v", err)
	}
	g.leftOver = work(t)
}

// awaitCached waits until the cache of the controllers has objects in the given version.
func (g *garden) awaitCached(t *testing.T, objects ...client.Object) {
	t.Helper()
	env.AwaitKnown(t, g.running.cache, objects...)
}

// awaitUnknown waits until objects are deleted, and the cache of the controllers does not have them any more.
func (g *garden) awaitUnknown(t *testing.T, objects ...client.Object) {
	t.Helper()
	env.AwaitUnknown(t, g.running.cache, objects...)
}

// settle waits until no controller has been busy for a moment. On a busy machine, the watch events of what a test has just written may
// arrive later: a test that depends on them calls awaitCached or awaitUnknown first.
func (g *garden) settle(t *testing.T) {
	t.Helper()
	g.settleFor(t, 300*time.Millisecond)
}

// settleFor waits until no controller has been busy for some time. A write causes an event a moment later, and a conflict a retry.
func (g *garden) settleFor(t *testing.T, quiet time.Duration) {
	t.Helper()
	const interval = 20 * time.Millisecond
	idle := time.Duration(0)
	err := wait.PollUntilContextTimeout(t.Context(), interval, timeout, true, func(context.Context) (bool, error) {
		if idle += interval; work(t) > g.leftOver {
			idle = 0
		}
		return idle > quiet, nil
	})
	if err != nil {
		t.Fatal("controllers do not settle:", err)
	}
}

// work returns how many objects are in work queues or being reconciled.
func work(t *testing.T) float64 {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	busy := 0.0
	for _, family := range families {
		if name := family.GetName(); name == "workqueue_depth" || name == "controller_runtime_active_workers" {
			for _, metric := range family.GetMetric() {
				busy += metric.GetGauge().GetValue()
			}
		}
	}
	return busy
}

func (g *garden) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := g.client.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (g *garden) delete(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := g.client.Delete(t.Context(), obj); err != nil {
			t.Fatalf("delete %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// edit changes an object as another client would, and retries after conflicts.
func edit[T client.Object](t *testing.T, g *garden, obj T, change func(T)) {
	t.Helper()
	env.Edit(t, g.client, obj, change)
}

// editStatus does the same for its status.
func editStatus[T client.Object](t *testing.T, g *garden, obj T, change func(T)) {
	t.Helper()
	env.EditStatus(t, g.client, obj, change)
}

// finishNamespace finalizes a namespace that is being deleted and empty, as the kube-controller-manager does.
func (g *garden) finishNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := env.Await(t, g.client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp == nil {
			return errors.New("namespace is not being deleted")
		}
		return nil
	})
	namespace.Spec.Finalizers = nil
	if err := g.client.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// shoot returns a valid Shoot without workers.
func shoot(namespace, name string, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	s := builder.Shoot(name, builder.In(namespace), builder.Confirmed, func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.Version = builder.NewerVersion
		s.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: windowIn(12 * time.Hour)}
	})
	for _, c := range change {
		c(s)
	}
	return s
}

// windowIn returns a maintenance time window that opens later. A default one may open at any hour of the night.
func windowIn(later time.Duration) *corev1beta1.MaintenanceTimeWindow {
	begin := time.Now().Add(later)
	return &corev1beta1.MaintenanceTimeWindow{Begin: begin.Format(maintenance.Layout), End: begin.Add(time.Hour).Format(maintenance.Layout)}
}

// withWorkers adds a worker pool and credentials to a Shoot.
func withWorkers(binding string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		builder.Workers(1)(s)
		s.Spec.CredentialsBindingName = &binding
	}
}

func credentialsBinding(namespace, name string, ref corev1.ObjectReference, quotas ...corev1.ObjectReference) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: ref, Quotas: quotas,
	}
}
