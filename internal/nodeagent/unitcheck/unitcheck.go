// Package unitcheck reports in a condition of the Node whether the systemd units of the operating system config run.
//
// It reads the configuration that the agent applied last and the state of its units, and writes the condition SystemdUnitsReady of the
// agent's Node, as its only writer.
package unitcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/nodeagent/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

// passTimeout limits a pass, which reads the states of a few units.
const passTimeout = time.Minute

// Systemd is the part of systemd that the controller needs.
type Systemd interface {
	State(ctx context.Context, unit string) (systemd.State, error)
}

// Values configure the controller.
type Values struct {
	// Client reads the Node from a cache, and writes it.
	Client client.Client
	// Clock has the time of transitions.
	Clock clock.PassiveClock
	// Root and Systemd are those of the machine.
	Root    rootfs.Dir
	Systemd Systemd
	// SyncPeriod is how often units are checked.
	SyncPeriod time.Duration
	// StuckThreshold is how long a unit may be starting or stopping.
	StuckThreshold time.Duration
}

// reconciler checks units.
type reconciler struct{ Values }

// Add adds the controller to a manager whose cache has no other Node than that of the agent.
func Add(mgr manager.Manager, v Values) error {
	c, err := controller.New("systemd-unit-check", mgr, controller.Options{Reconciler: &reconciler{Values: v}, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		predicate.TypedFuncs[*corev1.Node]{ // periodically, once there is a Node, and when another configuration was applied
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
				const key = nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig
				return e.ObjectOld.Annotations[key] != e.ObjectNew.Annotations[key]
			},
			DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
		}))
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	osc, _, err := operatingsystemconfig.LastApplied(r.Root)
	if osc == nil || err != nil {
		return reconcile.Result{}, err // unknown until a configuration was applied
	}
	problems, err := r.problems(ctx, operatingsystemconfig.Units(osc))
	if err != nil {
		return reconcile.Result{}, err
	}
	desired := condition(problems)
	current := find(node.Status.Conditions)
	if current == nil || current.Status != desired.Status || current.Reason != desired.Reason || current.Message != desired.Message {
		now := metav1.NewTime(r.Clock.Now())
		desired.LastHeartbeatTime, desired.LastTransitionTime = now, now
		if current != nil && current.Status == desired.Status {
			desired.LastTransitionTime = current.LastTransitionTime
		}
		before := node.DeepCopy()
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == desired.Type })
		node.Status.Conditions = append(node.Status.Conditions, desired)
		// Conditions of Nodes have a merge key, so the patch does not touch those of the kubelet.
		if err := r.Client.Status().Patch(ctx, node, client.StrategicMergeFrom(before)); err != nil {
			return kube.Result(fmt.Errorf("write condition of Node %q: %w", node.Name, err))
		}
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

func find(conditions []corev1.NodeCondition) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == nodeagentconfigv1alpha1.ConditionTypeSystemdUnitsReady {
			return &conditions[i]
		}
	}
	return nil
}

func condition(problems []string) corev1.NodeCondition {
	if len(problems) == 0 {
		return corev1.NodeCondition{
			Type: nodeagentconfigv1alpha1.ConditionTypeSystemdUnitsReady, Status: corev1.ConditionTrue, Reason: "AllUnitsReady",
			Message: "All systemd units of the operating system config run.",
		}
	}
	return corev1.NodeCondition{
		Type: nodeagentconfigv1alpha1.ConditionTypeSystemdUnitsReady, Status: corev1.ConditionFalse, Reason: "UnitsNotReady",
		Message: strings.Join(problems, "; "),
	}
}

// problems describes the units that do not run as configured, in the order of their names.
func (r *reconciler) problems(ctx context.Context, units []extensionsv1alpha1.Unit) ([]string, error) {
	var problems []string
	for _, unit := range units {
		if ptr.Deref(unit.Command, extensionsv1alpha1.CommandRestart) == extensionsv1alpha1.CommandStop {
			continue
		}
		state, err := r.Systemd.State(ctx, unit.Name)
		if err != nil {
			return nil, err
		}
		if problem := problem(state, r.Clock.Now(), r.StuckThreshold); problem != "" {
			problems = append(problems, fmt.Sprintf("unit %s %s", unit.Name, problem))
		}
	}
	slices.Sort(problems)
	return problems, nil
}

// problem is what is wrong with a unit, empty if nothing is. A unit that is inactive has completed or waits for a condition.
func problem(state systemd.State, now time.Time, stuck time.Duration) string {
	switch {
	case state.Load == systemd.LoadMasked:
		return ""
	case state.Load == systemd.LoadNotFound:
		return "does not exist"
	case state.Active == systemd.ActiveFailed:
		return "failed"
	case (state.Active == systemd.ActiveActivating || state.Active == systemd.ActiveDeactivating) && now.Sub(state.Since) > stuck:
		return "is stuck in " + state.Active
	}
	return ""
}
