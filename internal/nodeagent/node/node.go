// Package node restarts the systemd units that are named in an annotation of the Node.
//
// It reads the Node of the agent, restarts units, and removes the annotation. Source: concepts.txt, Gardener Node Agent,
// "Node Controller".
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a pass, which restarts a few units.
const passTimeout = 10 * time.Minute

// Systemd is the part of systemd that the controller needs.
type Systemd interface {
	Restart(ctx context.Context, unit string) error
	RestartWithoutWaiting(ctx context.Context, unit string) error
}

// Values configure the controller.
type Values struct {
	// Client reads the Node from a cache, and writes it.
	Client client.Client
	// Recorder records events about the Node.
	Recorder events.EventRecorder
	// Systemd is that of the machine.
	Systemd Systemd
}

// reconciler restarts units.
type reconciler struct{ Values }

// Add adds the controller to a manager whose cache has no other Node than that of the agent.
func Add(mgr manager.Manager, v Values) error {
	c, err := controller.New("node", mgr, controller.Options{Reconciler: &reconciler{Values: v}, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		predicate.NewTypedPredicateFuncs(func(node *corev1.Node) bool {
			return node.Annotations[nodeagentconfigv1alpha1.AnnotationRestartSystemdServices] != ""
		})))
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	units, self := parse(node.Annotations[nodeagentconfigv1alpha1.AnnotationRestartSystemdServices])
	if len(units) == 0 && !self {
		return reconcile.Result{}, nil
	}
	var errs []error
	for _, unit := range units {
		logf.FromContext(ctx).Info("Restarting unit", "unit", unit)
		if err := r.Systemd.Restart(ctx, unit); err != nil {
			errs = append(errs, fmt.Errorf("restart unit %s: %w", unit, err))
			r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "SystemdServiceRestartFailed", "Restart",
				"Unit %s could not be restarted: %v", unit, err)
			continue
		}
		r.Recorder.Eventf(node, nil, corev1.EventTypeNormal, "SystemdServiceRestarted", "Restart", "Unit %s has been restarted", unit)
	}
	// The annotation is removed even if a unit did not start: systemd restarts it by its own policy, and a retry would restart the others.
	err := kube.PatchMetadata(ctx, r.Client, node, func(o *metav1.PartialObjectMetadata) {
		delete(o.Annotations, nodeagentconfigv1alpha1.AnnotationRestartSystemdServices)
	})
	if err != nil {
		return kube.Result(fmt.Errorf("remove annotation of Node %q: %w", node.Name, err))
	}
	if len(errs) > 0 {
		logf.FromContext(ctx).Error(errors.Join(errs...), "Could not restart units")
	}
	if self { // last, as it ends this process
		return reconcile.Result{}, r.Systemd.RestartWithoutWaiting(ctx, nodeagentconfigv1alpha1.UnitName)
	}
	return reconcile.Result{}, nil
}

// parse returns the units that an annotation names, without the agent's own, and whether the agent's own is among them. Names may lack
// ".service".
func parse(annotation string) (units []string, self bool) {
	for name := range strings.SplitSeq(annotation, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !strings.Contains(name, ".") {
			name += ".service"
		}
		switch {
		case name == nodeagentconfigv1alpha1.UnitName:
			self = true
		case !slices.Contains(units, name):
			units = append(units, name)
		}
	}
	return units, self
}
