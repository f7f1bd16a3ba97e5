// Package health restarts containerd and the kubelet when they run, but are not healthy.
//
// It calls the health endpoints of both, reads the agent's Node, and restarts units. A process that ends is restarted by systemd.
package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// checkEvery is how often both are checked.
	checkEvery = 30 * time.Second
	// tolerance is how long a unit may be unhealthy before it is restarted: a machine under load is slow, and a start takes a while.
	tolerance = time.Minute
	// answerTimeout is how long a check may take.
	answerTimeout = 10 * time.Second
	// passTimeout limits a pass, which may restart both.
	passTimeout = 5 * time.Minute
)

// Systemd is the part of systemd that the controller needs.
type Systemd interface {
	Restart(ctx context.Context, unit string) error
}

// Check is the health check of a unit.
type Check struct {
	// Unit is restarted if it is unhealthy.
	Unit string
	// Run returns why the unit is unhealthy, nil if it is healthy. The Node is nil if it does not exist any more, which may be since before the agent started.
	Run func(ctx context.Context, node *corev1.Node) error

	since time.Time // when the first of the failures in a row was observed; zero if the last check succeeded
}

// Values configure the controller.
type Values struct {
	// Client reads the Node from a cache.
	Client client.Client
	// Recorder records events about the Node.
	Recorder events.EventRecorder
	// Clock measures how long units are unhealthy.
	Clock clock.PassiveClock
	// Systemd is that of the machine.
	Systemd Systemd
	// Hostname is the name of the Node.
	Hostname string
	// Joined reports whether the kubelet has had a Node: it has a certificate, for which it asks before it creates one.
	Joined func() bool
	// Checks are run one after the other.
	Checks []*Check
}

// reconciler checks units, and restarts those that are unhealthy.
type reconciler struct{ Values }

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	c, err := controller.New("health-check", mgr, controller.Options{Reconciler: &reconciler{Values: v}, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	// Once, and periodically from then on: a Node that is missing when the agent starts must not keep its kubelet from being checked.
	start := make(chan event.GenericEvent, 1)
	start <- event.GenericEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: v.Hostname}}}
	return c.Watch(source.Channel(start, &handler.EnqueueRequestForObject{}))
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); apierrors.IsNotFound(err) {
		node = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if node == nil && !r.Joined() { // a new machine: both start for the first time when its configuration is applied, and that may take a while
		return reconcile.Result{RequeueAfter: checkEvery}, nil
	}
	for _, check := range r.Checks {
		if err := r.check(ctx, check, node); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: checkEvery}, nil
}

func (r *reconciler) check(ctx context.Context, check *Check, node *corev1.Node) error {
	checkCtx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	unhealthy, now := check.Run(checkCtx, node), r.Clock.Now()
	switch {
	case unhealthy == nil:
		check.since = time.Time{}
		return nil
	case check.since.IsZero():
		check.since = now
		return nil
	case now.Sub(check.since) < tolerance:
		return nil
	}
	logf.FromContext(ctx).Info("Restarting unit", "unit", check.Unit, "reason", unhealthy.Error(), "since", check.since)
	if node != nil {
		r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "Unhealthy", "Restart", "Restarting unit %s, which has been unhealthy for %s: %v",
			check.Unit, now.Sub(check.since).Round(time.Second), unhealthy)
	}
	check.since = time.Time{}
	if err := r.Systemd.Restart(ctx, check.Unit); err != nil {
		return fmt.Errorf("restart unit %s: %w", check.Unit, err)
	}
	return nil
}

// Containerd checks containerd at its socket.
func Containerd(socket string) *Check {
	return &Check{Unit: extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService, Run: func(ctx context.Context, _ *corev1.Node) error {
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // the answer has been read
		answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
		if err != nil {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
		if answer.Status != healthv1.HealthCheckResponse_SERVING {
			return fmt.Errorf("containerd reports the status %s", answer.Status)
		}
		return nil
	}}
}

// Kubelet checks the kubelet at its health endpoint, and that its Node exists, and has an address, without which pods get no network. The Node of a machine that
// joined after the last backup of etcd is gone when that is restored, and the kubelet creates it only when it starts.
func Kubelet(url string) *Check {
	return &Check{Unit: extensionsv1alpha1.OperatingSystemConfigUnitNameKubeletService, Run: func(ctx context.Context, node *corev1.Node) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("kubelet does not answer: %w", err)
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("kubelet answers %s", answer.Status)
		}
		if node == nil {
			return errors.New("its Node does not exist any more")
		}
		return hasAddress(node)
	}}
}

// hasAddress returns an error if a Node has no internal address, unless it is up to a cloud controller manager to add one.
func hasAddress(node *corev1.Node) error {
	for _, taint := range node.Spec.Taints {
		if taint.Key == "node.cloudprovider.kubernetes.io/uninitialized" {
			return nil
		}
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return nil
		}
	}
	return fmt.Errorf("Node %q has no internal IP address", node.Name)
}
