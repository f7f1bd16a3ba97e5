package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	systemdfake "gardener.cloud/gardener/internal/nodeagent/systemd/fake"
)

func node(addresses ...corev1.NodeAddress) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: addresses}}
}

var internal = corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}

func TestUnitIsRestartedWhenItIsUnhealthyForAWhile(t *testing.T) {
	bad := errors.New("bad")
	for name, tc := range map[string]struct {
		answers []error // every 30 seconds
		starts  int
	}{
		"healthy":                   {answers: []error{nil, nil, nil, nil}},
		"unhealthy for a moment":    {answers: []error{bad, bad, nil, bad, bad, nil}},
		"unhealthy for a minute":    {answers: []error{nil, bad, bad, bad}, starts: 1},
		"and still after a restart": {answers: []error{bad, bad, bad, bad, bad}, starts: 1},
		"and a minute later":        {answers: []error{bad, bad, bad, bad, bad, bad}, starts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			clock, units := clocktesting.NewFakeClock(time.Unix(1000, 0)), &systemdfake.Systemd{}
			var answer error
			r := &reconciler{Values{
				Client: fake.NewFakeClient(node()), Recorder: events.NewFakeRecorder(10), Clock: clock, Systemd: units,
				Checks: []*Check{{Unit: "x.service", Run: func(context.Context, *corev1.Node) error { return answer }}},
			}}
			request := reconcile.Request{}
			request.Name = "n"
			for _, answer = range tc.answers {
				result, err := r.Reconcile(t.Context(), request)
				if err != nil || result.RequeueAfter != checkEvery {
					t.Fatalf("Reconcile() = %v, %v", result, err)
				}
				clock.Step(checkEvery)
			}
			if got := units.Unit("x.service").Starts; got != tc.starts {
				t.Errorf("unit was started %d times, want %d", got, tc.starts)
			}
		})
	}
}

// A restored etcd may not have the Node, which the kubelet creates when it starts.
func TestKubeletIsRestartedWhenItsNodeIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		joined bool
		starts []int // after each check
	}{
		"a machine that had one": {joined: true, starts: []int{0, 0, 1, 1}},
		"a new machine":          {starts: []int{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) { nodeIsGone(t, tc.joined, tc.starts) })
	}
}

func nodeIsGone(t *testing.T, joined bool, starts []int) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer server.Close()
	clock, units := clocktesting.NewFakeClock(time.Unix(1000, 0)), &systemdfake.Systemd{}
	r := &reconciler{Values{
		Client: fake.NewFakeClient(), Recorder: events.NewFakeRecorder(10), Clock: clock, Systemd: units, Checks: []*Check{Kubelet(server.URL)},
		Joined: func() bool { return joined },
	}}
	request := reconcile.Request{}
	request.Name = "n"
	for _, want := range starts {
		result, err := r.Reconcile(t.Context(), request)
		if err != nil || result.RequeueAfter != checkEvery {
			t.Fatalf("Reconcile() = %v, %v", result, err)
		}
		if got := units.Unit("kubelet.service").Starts; got != want {
			t.Errorf("kubelet was started %d times, want %d", got, want)
		}
		clock.Step(checkEvery)
	}
}

// The Node may also be gone when the agent starts.
func TestUnitsAreCheckedFromTheStart(t *testing.T) {
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Controller: crconfig.Controller{SkipNameValidation: new(true)}, // a test may run more than once
		Metrics:    metricsserver.Options{BindAddress: "0"},
		NewCache:   func(*rest.Config, cache.Options) (cache.Cache, error) { return &informertest.FakeInformers{}, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	checked := make(chan string, 1)
	api := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			checked <- key.String()
			return c.Get(ctx, key, obj, options...)
		},
	})
	err = Add(mgr, Values{
		Client: api, Recorder: events.NewFakeRecorder(10), Clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), Systemd: &systemdfake.Systemd{}, Hostname: "n",
		Joined: func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case name := <-checked:
		if name != "/n" {
			t.Errorf("Node %q is read", name)
		}
	case <-time.After(time.Minute): // it takes well below a second
		t.Error("nothing is checked")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestContainerd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	check := Containerd(socket)
	ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
	defer cancel()
	if err := check.Run(ctx, nil); err == nil {
		t.Error("nothing answers, and the check succeeds")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server, health := grpc.NewServer(), grpchealth.NewServer()
	healthv1.RegisterHealthServer(server, health)
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(server.Stop)
	if err := check.Run(t.Context(), nil); err != nil {
		t.Error(err)
	}
	health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	if err := check.Run(t.Context(), nil); err == nil {
		t.Error("it does not serve, and the check succeeds")
	}
}

func TestKubelet(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	check := Kubelet(server.URL)
	if err := check.Run(t.Context(), node(internal)); err != nil {
		t.Error(err)
	}
	if err := check.Run(t.Context(), node()); err == nil {
		t.Error("the Node has no address, and the check succeeds")
	}
	waiting := node()
	waiting.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized"}}
	if err := check.Run(t.Context(), waiting); err != nil {
		t.Errorf("a Node that waits for its address: %v", err)
	}
	status = http.StatusInternalServerError
	if err := check.Run(t.Context(), node(internal)); err == nil {
		t.Error("it answers with an error, and the check succeeds")
	}
	server.Close()
	if err := check.Run(t.Context(), node(internal)); err == nil {
		t.Error("nothing answers, and the check succeeds")
	}
}
