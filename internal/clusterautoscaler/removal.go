package clusterautoscaler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
	"gardener.cloud/gardener/internal/kube/removaltaint"
)

// evictionHeadroom is how much longer than its grace period a pod may take to end.
const evictionHeadroom = 30 * time.Second

// evictionTimeout is how long the response to an eviction may take. Webhooks of a shoot are expected to respond within 15 s.
const evictionTimeout = 20 * time.Second

// drain is a node that is being drained. Each scan continues it.
type drain struct {
	since   time.Time
	evicted map[types.UID]time.Time
}

// preserved reports whether a machine is kept for inspection.
func preserved(m *machineState, node *corev1.Node) bool {
	if m.Status.CurrentStatus.PreserveExpiryTime != nil {
		return true
	}
	value, ok := node.Annotations[machinev1alpha1.PreserveMachine]
	if !ok {
		value = m.Annotations[machinev1alpha1.PreserveMachine]
	}
	return value == "now"
}

// startRemovals removes empty nodes, and starts to drain others.
func (s *Scaler) startRemovals(ctx context.Context, st *state, removals []plan.Removal) error {
	empty := map[*groupState][]string{}
	var errs []error
	for _, r := range removals {
		name := r.Node.Name
		if err := s.taint(ctx, name, st.now); err != nil {
			s.cleaned = false // only the response may have got lost
			errs = append(errs, err)
			continue
		}
		pod, err := s.arrived(r, st.now)
		if err != nil || pod != nil {
			if pod != nil {
				logf.FromContext(ctx).Info("Keeping node, as a pod was scheduled to it meanwhile", "node", name, "pod", pod.Namespace+"/"+pod.Name)
			}
			errs = append(errs, err, s.untaint(ctx, name))
			continue
		}
		if len(r.Move) == 0 {
			g := st.groupOf[name]
			empty[g] = append(empty[g], name)
			continue
		}
		logf.FromContext(ctx).Info("Draining node", "node", name, "pods", len(r.Move))
		s.events.Event(r.Node, corev1.EventTypeNormal, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
		s.draining[name] = &drain{since: s.clock.Now(), evicted: map[types.UID]time.Time{}}
	}
	if len(s.draining) > 0 {
		errs = append(errs, s.continueDrains(ctx, st))
	}
	for _, g := range slices.SortedFunc(maps.Keys(empty), func(a, b *groupState) int { return cmp.Compare(a.Name, b.Name) }) {
		errs = append(errs, s.removeNodes(ctx, st, g, empty[g], "empty"))
	}
	return errors.Join(errs...)
}

// arrived returns a pod that was scheduled to a node since the scan began, nil if there is none. Placing pods may take minutes, and what keeps a node, or where
// the pod would fit, is checked by the next scan.
func (s *Scaler) arrived(r plan.Removal, now time.Time) (*corev1.Pod, error) {
	pods, err := s.pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	known := map[types.UID]bool{}
	for _, pod := range r.Pods {
		known[pod.UID] = true
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == r.Node.Name && !known[pod.UID] && !plan.Stays(pod, now) && !s.expendable(pod) {
			return pod, nil
		}
	}
	return nil, nil
}

// removeNodes removes the machines of nodes of a group.
func (s *Scaler) removeNodes(ctx context.Context, st *state, g *groupState, nodes []string, reason string) error {
	if len(nodes) == 0 {
		return nil
	}
	var machines []string
	byMachine := map[string]*corev1.Node{}
	for _, name := range nodes {
		m := st.owners[name]
		machines = append(machines, m.Name)
		byMachine[m.Name] = st.nodes[name].Node
	}
	logf.FromContext(ctx).Info("Removing nodes", "group", g.Name, "nodes", nodes)
	removed, err := s.remove(ctx, g, machines)
	if err != nil {
		s.lastFail = st.now
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		for _, name := range nodes {
			if s.draining[name] == nil { // otherwise the next scan tries again
				err = errors.Join(err, s.untaint(ctx, name))
			}
		}
		return err
	}
	g.Target -= len(removed)
	for _, machine := range machines {
		node := byMachine[machine]
		delete(s.draining, node.Name)
		if !slices.Contains(removed, machine) { // the group has its minimum by now
			err = errors.Join(err, s.untaint(ctx, node.Name))
			continue
		}
		delete(s.since, node.Name)
		s.lastDelete = st.now
		s.metrics.downs.WithLabelValues(reason).Inc()
		s.events.Event(node, corev1.EventTypeNormal, "ScaleDown", "node removed by cluster autoscaler")
		err = errors.Join(err, s.setUnschedulable(ctx, node))
	}
	return err
}

// continueDrains evicts the pods of nodes that are drained, and removes nodes without pods.
func (s *Scaler) continueDrains(ctx context.Context, st *state) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.draining)) {
		d, node, g := s.draining[name], st.nodes[name], st.groupOf[name]
		if g == nil || node.Node == nil || st.owners[name].going { // it is gone, or another controller removes it
			delete(s.draining, name)
			continue
		}
		if g.Rolling || preserved(st.owners[name], node.Node) { // only since then
			errs = append(errs, s.stopDrains(ctx, name))
			continue
		}
		left, failure := s.evict(ctx, d, node, st.now)
		switch {
		case failure != nil:
			s.lastFail = st.now
			s.metrics.failedDowns.Inc()
			logf.FromContext(ctx).Info("Draining node failed", "node", name, "reason", failure.Error())
			s.events.Eventf(node.Node, corev1.EventTypeWarning, "ScaleDownFailed", "failed to drain the node, aborting ScaleDown: %v", failure)
			errs = append(errs, s.stopDrains(ctx, name))
		case left == 0:
			errs = append(errs, s.removeNodes(ctx, st, g, []string{name}, "underutilized"))
		}
	}
	return errors.Join(errs...)
}

// stopDrains stops to drain nodes, which get pods again.
func (s *Scaler) stopDrains(ctx context.Context, nodes ...string) error {
	var errs []error
	for _, name := range nodes {
		delete(s.draining, name)
		delete(s.since, name)
		errs = append(errs, s.untaint(ctx, name))
	}
	return errors.Join(errs...)
}

// evict evicts the pods of a node that are not evicted yet, and returns how many are left. An error means that draining has failed.
func (s *Scaler) evict(ctx context.Context, d *drain, node plan.Occupied, now time.Time) (int, error) {
	left, silent := 0, false
	for _, pod := range node.Pods {
		if plan.Stays(pod, now) || returned(ctx, pod, d.since) {
			continue
		}
		left++
		grace := min(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds), int64(s.options.maxGracefulTermination))
		at, evicted := d.evicted[pod.UID]
		switch {
		case evicted && now.Sub(at) > time.Duration(grace)*time.Second+evictionHeadroom:
			return left, fmt.Errorf("pod %s/%s did not end within %d s", pod.Namespace, pod.Name, grace)
		case evicted:
			continue
		case pod.DeletionTimestamp != nil:
			d.evicted[pod.UID] = now
			continue
		case silent: // pods that are pending wait for one response a node at most
			continue
		}
		var err error
		silent, err = s.requestEviction(ctx, pod, grace)
		switch {
		case err == nil:
			d.evicted[pod.UID] = s.clock.Now() // it may be some time since the scan began
			s.metrics.evictions.WithLabelValues("succeeded").Inc()
			s.events.Event(pod, corev1.EventTypeNormal, "ScaleDown", "deleting pod for node scale down")
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // another pod has its name by now
			left--
		case now.Sub(d.since) >= s.options.maxPodEvictionTime:
			s.metrics.evictions.WithLabelValues("failed").Inc()
			return left, fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
		default:
			logf.FromContext(ctx).V(1).Info("The eviction is refused, the next scan tries again", "pod", pod.Namespace+"/"+pod.Name, "reason", err.Error())
		}
	}
	return left, nil
}

// returned reports whether a pod was created while its node is drained, and tolerates that: if it were evicted, the scheduler might put its successor there
// again, for ever. It ends with the machine.
func returned(ctx context.Context, pod *corev1.Pod, since time.Time) bool {
	taint := &corev1.Taint{Key: removaltaint.Key, Effect: corev1.TaintEffectNoSchedule}
	return !pod.CreationTimestamp.Time.Before(since) && slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logf.FromContext(ctx), taint, false)
	})
}

// requestEviction evicts a pod. It reports whether there was no response in time, such as if a webhook hangs.
func (s *Scaler) requestEviction(ctx context.Context, pod *corev1.Pod, grace int64) (silent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	err = s.shoot.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
	return err != nil && ctx.Err() != nil, err
}

// forgetDrains removes the taints of drains that another process has begun, or that could not be removed, unless the machines are being deleted. A node may have
// no group any more: its pool was elastic when the other process ended.
func (s *Scaler) forgetDrains(ctx context.Context, st *state) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(st.nodes)) {
		m := st.owners[name]
		if s.draining[name] == nil && (m == nil || !m.going) && slices.ContainsFunc(st.nodes[name].Node.Spec.Taints, removaltaint.Is) {
			errs = append(errs, s.untaint(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// abandonDrains removes the taints of nodes that are being drained when the process stops: there may be no other one that does.
func (s *Scaler) abandonDrains(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(s.draining)) {
		if err := s.untaint(ctx, name); err != nil {
			logf.FromContext(ctx).Error(err, "Node stays tainted, although it is not drained any more", "node", name)
		}
	}
}

// cordon keeps nodes whose machines are listed for deletion from getting new pods.
func (s *Scaler) cordon(ctx context.Context, st *state) error {
	var errs []error
	for _, g := range st.groups {
		listed := triggered(g.deployment)
		for _, m := range g.machines {
			if _, ok := listed[m.Name]; ok && m.node != nil {
				errs = append(errs, s.setUnschedulable(ctx, m.node))
			}
		}
	}
	return errors.Join(errs...)
}

func (s *Scaler) setUnschedulable(ctx context.Context, node *corev1.Node) error {
	if node.Spec.Unschedulable {
		return nil
	}
	return s.changeNode(ctx, node.Name, func(node *corev1.Node) bool {
		changed := !node.Spec.Unschedulable
		node.Spec.Unschedulable = true
		return changed
	})
}

// taint keeps new pods away from a node that is drained.
func (s *Scaler) taint(ctx context.Context, name string, now time.Time) error {
	return s.changeNode(ctx, name, func(node *corev1.Node) bool {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == removaltaint.Key }) {
			return false
		}
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: removaltaint.Key, Value: strconv.FormatInt(now.Unix(), 10), Effect: corev1.TaintEffectNoSchedule,
		})
		return true
	})
}

// untaint lets new pods be scheduled to a node again. What the scan has observed may be older than the taint.
func (s *Scaler) untaint(ctx context.Context, name string) error {
	err := s.changeNode(ctx, name, func(node *corev1.Node) bool {
		before := len(node.Spec.Taints)
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, removaltaint.Is)
		return len(node.Spec.Taints) != before
	})
	s.cleaned = s.cleaned && err == nil // otherwise, the next scan tries again
	return err
}

// changeNode changes a node as it is now. A node that is gone needs no change.
func (s *Scaler) changeNode(ctx context.Context, name string, change func(*corev1.Node) bool) error {
	nodes := s.shoot.CoreV1().Nodes()
	for range 3 {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err == nil && change(node) {
			_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		}
		switch {
		case apierrors.IsConflict(err): // it has changed meanwhile
			continue
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("change node %q: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("change node %q: it changes all the time", name)
}
