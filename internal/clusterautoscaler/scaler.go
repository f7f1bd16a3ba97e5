// Package clusterautoscaler changes the number of nodes of a cluster: groups of nodes, which are MachineDeployments, grow for pods that the
// scheduler finds no node for, and idle nodes are removed.
//
// It reads pods, nodes and PodDisruptionBudgets of the cluster, evicts pods, taints nodes, and writes the ConfigMap cluster-autoscaler-status there.
// It reads Machines and MachineClasses, and writes MachineDeployments, in a namespace of the control cluster. What fits where is answered by a
// plan.Simulator, so that this module does not need that of Kubernetes; distribution/cluster-autoscaler has both.
package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

const (
	// Name is the name of the process, of its Lease and in events.
	Name = "cluster-autoscaler"
	// machineControllerManager is the Deployment without which no machine is created.
	machineControllerManager = "machine-controller-manager"
	// priorityConfigMap has the priorities of groups.
	priorityConfigMap = "cluster-autoscaler-priority-expander"

	reasonBackoff = "in backoff after failed scale-up"
	// scanTimeout limits a scan, besides the time that placing pods may take.
	scanTimeout = 2 * time.Minute
)

// Values are what a Scaler works with.
type Values struct {
	// Options are the flags.
	Options Options
	// Namespace is that of the machines.
	Namespace string
	// Shoot is the cluster whose nodes are scaled, and Factory has its informers. They are started after New.
	Shoot   kubernetes.Interface
	Factory informers.SharedInformerFactory
	// Simulator says what fits where.
	Simulator plan.Simulator
	// ControlCache and ControlAPI are the control cluster.
	ControlCache client.Reader
	ControlAPI   client.Client
	// Events records events in the shoot.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.WithTicker
}

// Scaler scales a cluster. Scan is for one goroutine.
type Scaler struct {
	options      Options
	namespace    string
	shoot        kubernetes.Interface
	simulator    plan.Simulator
	controlCache client.Reader
	controlAPI   client.Client
	events       record.EventRecorder
	clock        clock.WithTicker
	metrics      *metrics

	nodes      corelisters.NodeLister
	pods       corelisters.PodLister
	budgets    policylisters.PodDisruptionBudgetLister
	daemonSets appslisters.DaemonSetLister

	backoff plan.Backoff
	since   map[string]time.Time    // since when nodes are not needed
	seen    map[string]remembered   // the last node of each group
	wrote   map[types.UID]int64     // generations of MachineDeployments
	behind  time.Time               // since when the cache lacks one of them
	short   map[string]time.Time    // since when machines of a group do not exist
	growing map[string]growth       // groups that wait for nodes
	lost    map[types.UID]time.Time // since when machines that had joined have no node
	// draining are nodes that are drained, by name.
	draining map[string]*drain
	// reported are the events of pods that are pending.
	reported map[string]string
	status   string
	cleaned  bool

	lastUp, lastDelete, lastFail time.Time
	// lastScan is when a scan ended, and lastSuccess is when one did that was skipped, or decided which groups grow.
	lastScan, lastSuccess atomic.Int64
	// drains is how many nodes are drained, and leads is whether it scans at all.
	drains atomic.Int32
	leads  atomic.Bool
	wake   chan struct{}
}

// remembered is what a node of a group was like, or one of another zone if it is not its own.
type remembered struct {
	class    string
	wanted   machinev1alpha1.NodeTemplateSpec
	own      bool
	template plan.Occupied
}

// New returns a Scaler, and registers what it reads with the informers.
func New(v Values) *Scaler {
	core, start := v.Factory.Core().V1(), v.Clock.Now()
	s := &Scaler{
		options: v.Options, namespace: v.Namespace, shoot: v.Shoot, simulator: v.Simulator, controlCache: v.ControlCache, controlAPI: v.ControlAPI,
		events: v.Events, clock: v.Clock, metrics: newMetrics(),
		nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), budgets: v.Factory.Policy().V1().PodDisruptionBudgets().Lister(),
		daemonSets: v.Factory.Apps().V1().DaemonSets().Lister(),
		backoff:    plan.Backoff{Initial: v.Options.backoffInitial, Max: v.Options.backoffMax, Reset: v.Options.backoffReset},
		since:      map[string]time.Time{}, seen: map[string]remembered{}, wrote: map[types.UID]int64{}, short: map[string]time.Time{}, growing: map[string]growth{}, lost: map[types.UID]time.Time{},
		draining: map[string]*drain{}, reported: map[string]string{}, wake: make(chan struct{}, 1),
	}
	s.lastScan.Store(start.UnixNano())
	s.lastSuccess.Store(start.UnixNano())
	s.metrics.options(v.Options)
	return s
}

// Run scans until the context ends: at the interval, and when something happened that a scan would act on.
func (s *Scaler) Run(ctx context.Context) {
	ticker := s.clock.NewTicker(s.options.scanInterval)
	defer ticker.Stop()
	for {
		if err := s.Scan(ctx); err != nil && ctx.Err() == nil {
			s.metrics.errors.Inc()
			logf.FromContext(ctx).Error(err, "Scan failed, the next one tries again")
		}
		select {
		case <-ctx.Done():
			s.abandonDrains(ctx)
			return
		case <-ticker.C():
		case <-s.wake:
		}
	}
}

// Wake makes Run scan soon.
func (s *Scaler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // it will
	}
}

// Alive reports whether the last scan ended not long ago, and not all of them have failed since long.
func (s *Scaler) Alive() error {
	if idle := s.clock.Since(time.Unix(0, s.lastScan.Load())); idle > s.options.maxInactivity {
		return fmt.Errorf("the last scan was %s ago", idle.Round(time.Second))
	}
	if failing := s.clock.Since(time.Unix(0, s.lastSuccess.Load())); failing > s.options.maxFailing {
		return fmt.Errorf("scans have failed for %s", failing.Round(time.Second))
	}
	return nil
}

// Scan compares pods with nodes once, and acts.
func (s *Scaler) Scan(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.maxBinpackingTime+scanTimeout)
	defer cancel()
	began := s.clock.Now()
	var minor []error // such as of a single node: a new process would have them, too
	defer func() {
		if err == nil {
			s.lastSuccess.Store(s.clock.Now().UnixNano())
			s.metrics.activity("success", s.clock.Now())
		}
		err = errors.Join(append(minor, err)...)
		s.lastScan.Store(s.clock.Now().UnixNano())
		s.metrics.duration.WithLabelValues("main").Observe(s.clock.Since(began).Seconds())
	}()
	s.metrics.activity("main", began)
	manager := &appsv1.Deployment{}
	err = s.controlCache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: machineControllerManager}, manager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Deployment %q: %w", machineControllerManager, err)
	}
	if apierrors.IsNotFound(err) || manager.Status.AvailableReplicas == 0 {
		logf.FromContext(ctx).V(1).Info("Skipping the scan, as no machine-controller-manager is available")
		return nil
	}
	st, err := s.observe(ctx)
	if err != nil {
		return err
	}
	if current, err := s.current(ctx, st); !current {
		return err // the next scan sees the change
	}
	minor = append(minor, s.cordon(ctx, st))
	if !s.cleaned {
		err := s.forgetDrains(ctx, st)
		s.cleaned = err == nil
		minor = append(minor, err)
	}
	changed, err := s.fixSizes(ctx, st)
	if err != nil || changed {
		return err
	}
	healthy := s.healthy(st)
	s.metrics.observe(st, healthy, s.options)
	if !healthy { // pods that are evicted may find no other node, and nodes that are idle now may be needed when the others are back
		minor = append(minor, s.stopDrains(ctx, slices.Sorted(maps.Keys(s.draining))...))
		clear(s.since)
		s.drains.Store(0)
		minor = append(minor, s.writeStatus(ctx, st, false))
		return nil
	}
	after, err := s.up(ctx, st)
	if err == nil && s.options.scaleDown {
		minor = append(minor, s.down(ctx, st, after))
	}
	s.drains.Store(int32(len(s.draining))) //nolint:gosec // as many as flags allow
	minor = append(minor, s.writeStatus(ctx, st, true))
	return err
}

// healthy reports whether so many nodes are ready that the reason for pending pods is not something else, such as a network that does not work.
func (s *Scaler) healthy(st *state) bool {
	unready := 0
	for _, g := range st.groups {
		unready += g.unready
	}
	return unready <= s.options.okUnready || float64(unready) <= s.options.maxUnreadyPercentage/100*float64(len(st.nodes))
}

// fixSizes notices machines that do not become nodes: their group rests, and they are removed. While machines of a group are being replaced, it only
// rests: with fewer replicas, a node of the old template would go instead. It reports whether it changed something.
func (s *Scaler) fixSizes(ctx context.Context, st *state) (bool, error) {
	log, changed := logf.FromContext(ctx), false
	s.forgetLost(st)
	for _, g := range st.groups {
		var gone []string
		active, stuck := 0, s.stuck(g, st.now)
		for _, m := range g.machines {
			if m.going {
				continue
			}
			active++
			late := m.node == nil && !m.kept && st.now.Sub(s.withoutNode(m, st.now)) >= g.Options.MaxNodeProvisionTime
			switch {
			case m.exhausted() && !m.kept:
				s.fail(g, "resourceExhausted", m.Status.LastOperation.Description, st.now)
			case late:
				s.fail(g, "timeout", fmt.Sprintf("machine %s did not join within %s", m.Name, g.Options.MaxNodeProvisionTime), st.now)
			case stuck && m.node == nil && !m.kept:
				s.fail(g, "timeout", fmt.Sprintf("no machine joined within %s", g.Options.MaxNodeProvisionTime), st.now)
			default:
				continue
			}
			gone = append(gone, m.Name)
		}
		if len(gone) > 0 && !g.Rolling {
			log.Info("Removing machines that did not become nodes", "group", g.Name, "machines", gone)
			removed, err := s.remove(ctx, g, gone)
			if err != nil {
				return changed, err
			}
			changed = changed || len(removed) > 0
		}
		if g.Target <= active {
			delete(s.short, g.Name)
		} else if since, ok := s.short[g.Name]; !ok {
			s.short[g.Name] = st.now
		} else if st.now.Sub(since) >= g.Options.MaxNodeProvisionTime {
			s.fail(g, "timeout", "machines were not created", st.now)
			delete(s.short, g.Name)
			if size := max(active, g.Min); size < g.Target && !g.Rolling {
				log.Info("Reducing the size to that of existing machines", "group", g.Name, "size", size)
				if err := s.shrink(ctx, g, size); err != nil {
					return changed, err
				}
				changed = true
			}
		}
		if _, growing := s.growing[g.Name]; growing && g.Upcoming == 0 && len(gone) == 0 {
			delete(s.growing, g.Name)
			s.backoff.Succeed(g.Name)
		}
		if until, _ := s.backoff.Resting(g.Name, st.now); !until.IsZero() {
			g.Refuses = reasonBackoff
		}
	}
	return changed, nil
}

// growth is since when a group waits for the next node, and how many it has.
type growth struct {
	since      time.Time
	registered int
}

// stuck reports whether a group has waited for the next node for as long as a machine may take to become one. None of its machines need be that old: the
// machine-controller-manager replaces those that take longer than the creation timeout of the pool.
func (s *Scaler) stuck(g *groupState, now time.Time) bool {
	waiting, ok := s.growing[g.Name]
	if !ok {
		return false
	}
	if g.registered > waiting.registered {
		waiting.since = now
	}
	waiting.registered = g.registered
	s.growing[g.Name] = waiting
	return g.Upcoming > 0 && now.Sub(waiting.since) >= g.Options.MaxNodeProvisionTime
}

// withoutNode returns since when a machine has no node: since its creation or, if it had joined, since that was noticed first. The
// machine-controller-manager replaces the latter.
func (s *Scaler) withoutNode(m *machineState, now time.Time) time.Time {
	if phase := m.Status.CurrentStatus.Phase; phase != machinev1alpha1.MachineRunning && phase != machinev1alpha1.MachineUnknown {
		return m.CreationTimestamp.Time
	}
	since, ok := s.lost[m.UID]
	if !ok {
		since = now
		s.lost[m.UID] = since
	}
	return since
}

// forgetLost forgets machines that have a node again, or do not exist any more.
func (s *Scaler) forgetLost(st *state) {
	still := map[types.UID]bool{}
	for _, g := range st.groups {
		for _, m := range g.machines {
			still[m.UID] = m.node == nil
		}
	}
	maps.DeleteFunc(s.lost, func(uid types.UID, _ time.Time) bool { return !still[uid] })
}

func (s *Scaler) fail(g *groupState, kind, message string, now time.Time) {
	if until, _ := s.backoff.Resting(g.Name, now); until.IsZero() {
		s.metrics.failedUps.WithLabelValues(kind).Inc()
	}
	delete(s.growing, g.Name)
	s.backoff.Fail(g.Name, message, now)
}

// outcome is what the cluster is like after groups have grown.
type outcome struct {
	// grown is whether one has.
	grown bool
	// cluster has the pods that will be scheduled to existing nodes, which waiting lists by node.
	cluster plan.Simulation
	waiting map[string][]*corev1.Pod
	// nodes are the names of nodes that pods are scheduled to.
	nodes []string
}

// up lets groups grow.
func (s *Scaler) up(ctx context.Context, st *state) (outcome, error) {
	log := logf.FromContext(ctx)
	var occupied []plan.Occupied
	var names []string
	for _, name := range slices.Sorted(maps.Keys(st.nodes)) {
		node := st.nodes[name]
		m := st.owners[name]
		if !s.usable(node.Node) || s.draining[name] != nil || m != nil && (m.going || m.kept) || node.Node.DeletionTimestamp != nil {
			continue
		}
		occupied, names = append(occupied, node), append(names, name)
	}
	in := plan.UpInput{
		Pods: st.pending, Cluster: s.simulator.Start(occupied), Nodes: names, Balance: s.options.balance, Total: st.total, MaxTotal: s.options.maxNodesTotal,
		Timeout: s.options.maxBinpackingTime, Clock: s.clock, Expander: plan.Expander{Names: s.options.Expanders, Intn: rand.IntN},
	}
	byName := map[string]*groupState{}
	for _, g := range st.groups {
		in.Groups = append(in.Groups, &g.Group)
		byName[g.Name] = g
	}
	if len(st.pending) > 0 && slices.Contains(s.options.Expanders, plan.Priority) {
		priorities, err := s.priorities(ctx)
		if err != nil {
			return outcome{}, err
		}
		in.Expander.Priorities = priorities
	}
	s.metrics.activity("scaleUp", st.now)
	result, err := plan.Up(ctx, in)
	if err != nil {
		return outcome{}, fmt.Errorf("decide which groups grow: %w", err)
	}
	texts := map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(result.Increases)) {
		g := byName[name]
		log.Info("Adding nodes", "group", name, "nodes", result.Increases[name])
		from, to, err := s.increase(ctx, g, result.Increases[name])
		if err != nil {
			errs = append(errs, err)
			continue // other groups grow, and their pods get events: for the next scan they only wait for a node
		}
		texts[name] = fmt.Sprintf("%s %d->%d (max: %d)", name, from, to, g.Max)
		g.Target, g.Upcoming = to, g.Upcoming+to-from
		if _, waits := s.growing[name]; !waits {
			s.growing[name] = growth{since: st.now, registered: g.registered}
		}
		s.lastUp = st.now
		s.metrics.ups.Add(float64(to - from))
	}
	s.report(st, result, texts)
	if err := errors.Join(errs...); err != nil {
		return outcome{}, err
	}
	return outcome{grown: len(result.Increases) > 0, cluster: in.Cluster, waiting: result.Waiting, nodes: names}, nil
}

// report records what happens for pods that are pending, once. texts are what became of the groups that grew.
func (s *Scaler) report(st *state, result plan.UpPlan, texts map[string]string) {
	reported := map[string]string{}
	for _, pod := range st.pending {
		uid := string(pod.UID)
		if groups := result.Triggered[pod]; len(groups) > 0 {
			var parts []string
			for _, name := range groups {
				if text, grew := texts[name]; grew {
					parts = append(parts, "{"+text+"}")
				}
			}
			if len(parts) == 0 {
				continue // the next scan tries again
			}
			s.events.Eventf(pod, corev1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up: [%s]", strings.Join(parts, " "))
			continue
		}
		reason, ok := result.Refused[pod]
		if !ok {
			continue
		}
		text := "pod didn't trigger scale-up"
		if reason != "" {
			text += ": " + reason
		}
		if s.reported[uid] != text {
			s.events.Event(pod, corev1.EventTypeNormal, "NotTriggerScaleUp", text)
		}
		reported[uid] = text
	}
	s.reported = reported
	s.metrics.pending.WithLabelValues("unschedulable").Set(float64(len(result.Triggered) + len(result.Refused)))
}

// priorities reads the priorities of groups.
func (s *Scaler) priorities(ctx context.Context) (plan.Priorities, error) {
	config, err := s.shoot.CoreV1().ConfigMaps(s.options.Namespace).Get(ctx, priorityConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %q: %w", priorityConfigMap, err)
	}
	out, err := plan.ParsePriorities(config.Data["priorities"])
	if err != nil {
		// Nodes are more important than which of them.
		s.events.Eventf(config, corev1.EventTypeWarning, "PriorityConfigMapInvalid", "Wrong configuration for priority expander: %v", err)
		return nil, nil
	}
	return out, nil
}

// down drains nodes that are not needed, and removes those that are empty.
func (s *Scaler) down(ctx context.Context, st *state, after outcome) error {
	if err := s.continueDrains(ctx, st); err != nil {
		return err
	}
	s.metrics.activity("scaleDown", st.now)
	budgets, err := s.budgets.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	in := plan.DownInput{
		Cluster: after.cluster, Waiting: after.waiting, Budgets: budgets, Replicas: s.replicasOf(st), Since: s.since,
		Rules: s.options.rules, Now: st.now, RemovingDrained: len(s.draining),
	}
	for _, name := range after.nodes {
		node := st.nodes[name].Node
		if !node.Spec.Unschedulable {
			in.Destinations = append(in.Destinations, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.groupOf)) {
		m := st.owners[name]
		switch {
		case m.chosen:
			in.RemovingEmpty++ // its machine is deleted, so nothing is evicted any more
			continue
		case m.going || s.draining[name] != nil:
			continue
		}
		node := st.nodes[name]
		c := plan.Candidate{Occupied: node, Group: &st.groupOf[name].Group, Ready: s.usable(node.Node)}
		switch {
		case preserved(m, node.Node):
			c.Kept = "its machine is preserved"
		case !c.Ready && st.now.Sub(node.Node.CreationTimestamp.Time) < c.Group.Options.MaxNodeProvisionTime:
			c.Kept = "it is starting"
		}
		in.Candidates = append(in.Candidates, c)
	}
	result, err := plan.Down(ctx, in)
	if err != nil {
		return fmt.Errorf("decide which nodes are removed: %w", err)
	}
	s.since = result.Since
	for name, reason := range result.Kept {
		logf.FromContext(ctx).V(4).Info("Keeping node", "node", name, "reason", reason)
	}
	cooldown := after.grown || s.coolsDown(st.now)
	s.metrics.down(result, cooldown)
	if cooldown {
		return nil
	}
	return s.startRemovals(ctx, st, result.Remove)
}

// coolsDown reports whether something happened not long ago, so that nothing is removed.
func (s *Scaler) coolsDown(now time.Time) bool {
	recent := func(last time.Time, delay time.Duration) bool { return !last.IsZero() && now.Sub(last) < delay }
	return recent(s.lastUp, s.options.delayAfterAdd) || recent(s.lastDelete, s.options.delayAfterDelete) || recent(s.lastFail, s.options.delayAfterFailure)
}

// replicasOf returns a function that counts the pods of a pod's controller.
func (s *Scaler) replicasOf(st *state) func(*corev1.Pod) (int, bool) {
	var counts map[string]int
	return func(pod *corev1.Pod) (int, bool) {
		if s.options.rules.MinReplicas == 0 {
			return 0, false
		}
		if counts == nil {
			counts = map[string]int{}
			for _, node := range st.nodes {
				for _, p := range node.Pods {
					if owner := metav1.GetControllerOf(p); owner != nil {
						counts[string(owner.UID)]++
					}
				}
			}
		}
		return counts[string(ptr.Deref(metav1.GetControllerOf(pod), metav1.OwnerReference{}).UID)], true
	}
}
