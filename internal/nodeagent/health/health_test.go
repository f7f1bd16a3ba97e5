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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer server.Close()
	clock, units := clocktesting.NewFakeClock(time.Unix(1000, 0)), &systemdfake.Systemd{}
	r := &reconciler{Values{
		Client: fake.NewFakeClient(), Recorder: events.NewFakeRecorder(10), Clock: clock, Systemd: units, Checks: []*Check{Kubelet(server.URL)},
	}}
	request := reconcile.Request{}
	request.Name = "n"
	for _, want := range []int{0, 0, 1, 1} {
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
