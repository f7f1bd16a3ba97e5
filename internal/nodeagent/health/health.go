// Package health restarts containerd and the kubelet when they run, but do not answer.
//
// It asks both, reads the agent's Node, and restarts units. A process that ends is restarted by systemd.
package health

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// checkEvery is how often both are asked.
	checkEvery = 30 * time.Second
	// tolerance is how long one may give no answer before it is restarted; a machine under load is slow, and a start takes its time.
	tolerance = time.Minute
	// answerTimeout is how long an answer may take.
	answerTimeout = 10 * time.Second
	// passTimeout limits a pass, which may restart both.
	passTimeout = 5 * time.Minute
)

// Systemd is what the controller needs of systemd.
type Systemd interface {
	Restart(ctx context.Context, unit string) error
}

// Check asks a unit whether it is well.
type Check struct {
	// Unit is restarted if it is not.
	Unit string
	// Ask returns what is wrong.
	Ask func(ctx context.Context, node *corev1.Node) error

	since time.Time // when it went wrong; zero if it is well
}

// Reconciler looks after units.
type Reconciler struct {
	// Client reads the Node from a cache.
	Client client.Client
	// Recorder writes events about the Node.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Systemd is that of the machine.
	Systemd Systemd
	// Checks are what is looked at, in this order.
	Checks []*Check
}

// Add adds the controller to a manager whose cache has no other Node than that of the agent.
func (r *Reconciler) Add(mgr manager.Manager) error {
	c, err := controller.New("health-check", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		predicate.TypedFuncs[*corev1.Node]{ // by the clock, once there is a Node
			UpdateFunc: func(event.TypedUpdateEvent[*corev1.Node]) bool { return false },
			DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
		}))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for _, check := range r.Checks {
		if err := r.look(ctx, check, node); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: checkEvery}, nil
}

func (r *Reconciler) look(ctx context.Context, check *Check, node *corev1.Node) error {
	asking, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	wrong, now := check.Ask(asking, node), r.Clock.Now()
	switch {
	case wrong == nil:
		check.since = time.Time{}
		return nil
	case check.since.IsZero():
		check.since = now
		return nil
	case now.Sub(check.since) < tolerance:
		return nil
	}
	logf.FromContext(ctx).Info("Restarting unit", "unit", check.Unit, "reason", wrong.Error(), "since", check.since)
	r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "Unhealthy", "Restart", "Restarting unit %s, which has not been well for %s: %v",
		check.Unit, now.Sub(check.since).Round(time.Second), wrong)
	check.since = time.Time{}
	if err := r.Systemd.Restart(ctx, check.Unit); err != nil {
		return fmt.Errorf("restart unit %s: %w", check.Unit, err)
	}
	return nil
}

// Containerd asks containerd at its socket.
func Containerd(socket string) *Check {
	return &Check{Unit: extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService, Ask: func(ctx context.Context, _ *corev1.Node) error {
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // there is nothing to lose
		answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
		if err != nil {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
		if answer.Status != healthv1.HealthCheckResponse_SERVING {
			return fmt.Errorf("containerd says that it is %s", answer.Status)
		}
		return nil
	}}
}

// Kubelet asks the kubelet at its health endpoint, and wants its Node to have an address, without which pods get no network.
func Kubelet(url string) *Check {
	return &Check{Unit: extensionsv1alpha1.OperatingSystemConfigUnitNameKubeletService, Ask: func(ctx context.Context, node *corev1.Node) error {
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
		return hasAddress(node)
	}}
}

// hasAddress tells whether a Node has an internal address, or nobody but a cloud controller manager will give it one.
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
