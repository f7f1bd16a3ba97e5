package machine

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/preservation"
)

const (
	preserve    = machinev1alpha1.PreserveMachine
	lastApplied = machinev1alpha1.LastAppliedNodePreserveValue
)

// keptIn is a machine that is kept for some time.
func keptIn(phase machinev1alpha1.MachinePhase, left time.Duration, value string) *machinev1alpha1.Machine {
	m := machineIn(phase, time.Minute)
	m.Spec.ProviderID = "fake:///m"
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	m.Status.CurrentStatus.PreserveExpiryTime = new(metav1.NewTime(now.Add(left)))
	if value != "" {
		m.Annotations = map[string]string{preserve: value}
	}
	return m
}

func TestTakenOver(t *testing.T) {
	const running, failed = machinev1alpha1.MachineRunning, machinev1alpha1.MachineFailed
	for name, tc := range map[string]struct {
		machine *machinev1alpha1.Machine
		more    map[string]string // annotations of the Machine
		node    map[string]string
		want    map[string]string
		over    bool
	}{
		"neither has one":              {machine: machineIn(running, 0), want: map[string]string{}},
		"that of the Machine":          {machine: keptIn(running, time.Hour, "now"), want: map[string]string{preserve: "now"}},
		"that of the Node replaces it": {machine: keptIn(running, time.Hour, "now"), node: map[string]string{preserve: "when-failed"}, want: map[string]string{lastApplied: "when-failed"}},
		"an empty one does, too":       {machine: keptIn(running, time.Hour, "now"), node: map[string]string{preserve: ""}, want: map[string]string{lastApplied: ""}},
		"an unknown one does not":      {machine: keptIn(running, time.Hour, "now"), node: map[string]string{preserve: "x"}, want: map[string]string{preserve: "now"}},
		"that of the Node was removed": {machine: machineIn(failed, 0), more: map[string]string{lastApplied: "now"}, want: map[string]string{}},
		"an automatic one stays beside none": {
			machine: keptIn(failed, time.Hour, "auto-preserved"), node: map[string]string{preserve: ""}, want: map[string]string{preserve: "auto-preserved", lastApplied: ""},
		},
		"an automatic one goes with a value":    {machine: keptIn(failed, time.Hour, "auto-preserved"), node: map[string]string{preserve: "false"}, want: map[string]string{lastApplied: "false"}},
		"an automatic one goes with a recovery": {machine: keptIn(running, time.Hour, "auto-preserved"), want: map[string]string{}},
		"one for failures stays":                {machine: keptIn(running, time.Hour, "when-failed"), want: map[string]string{preserve: "when-failed"}},
		"the time is over":                      {machine: keptIn(running, 0, "now"), want: map[string]string{}},
		"the time is over, and it has failed":   {machine: keptIn(failed, 0, "now"), want: map[string]string{preserve: "now"}},
		"the time is over, by the Node": {
			machine: keptIn(running, 0, ""), more: map[string]string{lastApplied: "now"}, node: map[string]string{preserve: "now"}, want: map[string]string{lastApplied: "now"}, over: true,
		},
		"the time is over, and the Node's was removed": {machine: keptIn(running, 0, ""), more: map[string]string{lastApplied: "now"}, want: map[string]string{}},
		"never stays": {machine: keptIn(running, 0, ""), node: map[string]string{preserve: "false"}, want: map[string]string{lastApplied: "false"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.more != nil {
				tc.machine.Annotations = maps.Clone(tc.more)
			}
			got, over := takenOver(tc.machine, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: tc.node}}, now)
			if diff := cmp.Diff(tc.want, got); diff != "" || over != tc.over {
				t.Errorf("over is %t, want %t; (-want +got):\n%s", over, tc.over, diff)
			}
		})
	}
}

func TestKeptNode(t *testing.T) {
	const down, byMCM = machinev1alpha1.ScaleDownDisabled, machinev1alpha1.ScaleDownDisabledByMCM
	taint := []corev1.Taint{{Key: machinev1alpha1.NodePreservedKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	was := []corev1.NodeCondition{condition(machinev1alpha1.NodePreserved, corev1.ConditionTrue)}
	both := map[string]string{down: "true", byMCM: "true"}
	for name, tc := range map[string]struct {
		node         corev1.Node
		kept, failed bool
		annotations  map[string]string
		taints       []corev1.Taint
		cordoned     bool
	}{
		"a Node that was never kept is left alone": {
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: both}, Spec: corev1.NodeSpec{Unschedulable: true}}, annotations: both, cordoned: true,
		},
		"it is not scaled down":          {kept: true, annotations: both},
		"if it has failed, it is marked": {kept: true, failed: true, annotations: both, taints: taint},
		"the user's annotation stays": {
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{down: "false"}}}, kept: true, annotations: map[string]string{down: "false"},
		},
		"it recovers": {
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: both}, Spec: corev1.NodeSpec{Taints: taint, Unschedulable: true}, Status: corev1.NodeStatus{Conditions: was}},
			kept: true, annotations: both,
		},
		"it recovers and is not kept": {
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: both}, Spec: corev1.NodeSpec{Taints: taint, Unschedulable: true}, Status: corev1.NodeStatus{Conditions: was}},
		},
		"one that waits for its update in place keeps them": {
			node: corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Annotations: both, Labels: map[string]string{machinev1alpha1.NodeCandidateForUpdate: "true"}}, Status: corev1.NodeStatus{Conditions: was},
			},
			annotations: both,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := keptNode(&tc.node, tc.kept, tc.failed)
			if diff := cmp.Diff([]any{tc.annotations, tc.taints, tc.cordoned}, []any{got.Annotations, got.Spec.Taints, got.Spec.Unschedulable}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A failed machine that is kept runs again when its Node is healthy, and is replaced if it is lost.
func TestDecideKept(t *testing.T) {
	for name, tc := range map[string]struct {
		left time.Duration
		node *corev1.Node
		lost string
		want machinev1alpha1.MachinePhase
		code string
	}{
		"it is still unhealthy":       {time.Hour, unknownNode, "", machinev1alpha1.MachineFailed, ""},
		"it has recovered":            {time.Hour, readyNode, "", machinev1alpha1.MachineRunning, ""},
		"it was lost":                 {time.Hour, readyNode, "gone", machinev1alpha1.MachineFailed, "NotFound"},
		"it recovers when it is late": {0, readyNode, "", machinev1alpha1.MachineFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := keptIn(machinev1alpha1.MachineFailed, tc.left, "when-failed")
			v := decide(observation{machine: m, nodeName: "n", node: tc.node, lost: tc.lost, limits: limits, now: now})
			code := ""
			if v.operation != nil {
				code = v.operation.ErrorCode
			}
			if v.phase != tc.want || code != tc.code {
				t.Errorf("phase is %s, want %s; code is %q", v.phase, tc.want, code)
			}
		})
	}
}

// The user annotates a Node when its machine is about to fail, which the cache does not have yet.
func TestFailsWhenAnnotated(t *testing.T) {
	m, node := machineIn(machinev1alpha1.MachineUnknown, time.Hour), unknownNode.DeepCopy()
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	node.Name = "n"
	annotated := node.DeepCopy()
	annotated.Annotations = map[string]string{preserve: "when-failed"}
	r, current := newReconciler(t, infrastructure{}, m, node, nil), newReconciler(t, infrastructure{}, machineIn("", 0), annotated, nil)
	r.targetAPI, r.limits.Preserve = current.targetAPI, time.Hour
	_, _ = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}) // the Node changes again when it is cordoned
	if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	if got := m.Status.CurrentStatus; got.Phase != machinev1alpha1.MachineFailed || got.PreserveExpiryTime == nil {
		t.Errorf("%+v", got)
	}
}

// Phase and time are written together: the set of the machine deletes those that have failed without a time.
func TestFailsAndIsKept(t *testing.T) {
	m, node := machineIn(machinev1alpha1.MachineUnknown, time.Hour), unknownNode.DeepCopy()
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	node.Name, node.Annotations = "n", map[string]string{preserve: "when-failed"}
	r := newReconciler(t, infrastructure{}, m, node, nil)
	r.limits.Preserve = 24 * time.Hour
	get := func() (*machinev1alpha1.Machine, *corev1.Node) {
		t.Helper()
		for i := range 5 { // conflicts, and changes of the Node that begin another pass
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			if err != nil {
				t.Fatalf("pass %d: %v, %v", i, result, err)
			}
		}
		if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		if err := r.targetCache.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		return m, node
	}
	pass := func(phase machinev1alpha1.MachinePhase, expires, cordoned bool, reason string) {
		t.Helper()
		m, node := get()
		c := nodeCondition(node, machinev1alpha1.NodePreserved)
		if m.Status.CurrentStatus.Phase != phase || (m.Status.CurrentStatus.PreserveExpiryTime != nil) != expires || node.Spec.Unschedulable != cordoned ||
			hasTaint(node, machinev1alpha1.NodePreservedKey) != cordoned || c == nil || c.Reason != reason {
			t.Errorf("want phase %s, time: %t, cordoned: %t, reason %q; got %+v, %+v, %+v", phase, expires, cordoned, reason, m.Status.CurrentStatus, node.Spec, c)
		}
	}
	pass(machinev1alpha1.MachineFailed, true, true, machinev1alpha1.PreservedByUser)
	if got := m.Status.CurrentStatus.PreserveExpiryTime.Sub(now); got != 24*time.Hour {
		t.Errorf("it is kept for %s", got)
	}
	before := node.DeepCopy()
	nodeCondition(node, corev1.NodeReady).Status = corev1.ConditionTrue
	if err := r.targetCache.Status().Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	pass(machinev1alpha1.MachineRunning, false, false, machinev1alpha1.PreservationStopped)
}

// When the time is over, but the shoot refuses that the annotation of the Node is removed, or adds it again, the machine is replaced as others are.
func TestAnnotationCannotBeRemoved(t *testing.T) {
	refused := errors.New("denied by a webhook")
	for name, refuse := range map[string]error{"it is added again": nil, "it is refused": refused} {
		t.Run(name, func(t *testing.T) {
			m, node := keptIn(machinev1alpha1.MachineRunning, -time.Hour, ""), unknownNode.DeepCopy()
			m.Annotations = map[string]string{lastApplied: "now"}
			node.Name, node.Annotations = "n", map[string]string{preserve: "now"}
			r := newReconciler(t, infrastructure{}, m, node, nil)
			r.targetCache = interceptor.NewClient(r.targetCache.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return refuse
				},
			})
			clock := testingclock.NewFakePassiveClock(now)
			r.clock = clock
			for _, want := range []machinev1alpha1.MachinePhase{machinev1alpha1.MachineUnknown, machinev1alpha1.MachineFailed} {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); !errors.Is(err, refuse) {
					t.Errorf("error is %v", err)
				}
				if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Status.CurrentStatus.Phase != want {
					t.Fatalf("phase is %q (%v), want %q", m.Status.CurrentStatus.Phase, err, want)
				}
				clock.SetTime(clock.Now().Add(limits.Health))
			}
			if preservation.Kept(m, clock.Now()) {
				t.Error("it is kept once more")
			}
		})
	}
}

// Users of the shoot can change the annotation of a Node as often as they like. Its Machine, in the seed, is written now and then only, with the current
// value at last, and that its Node is not healthy is noticed meanwhile.
func TestFlappingAnnotation(t *testing.T) {
	m, node := machineIn(machinev1alpha1.MachineRunning, time.Minute), readyNode.DeepCopy()
	m.Labels, node.Name = map[string]string{machinev1alpha1.NodeLabelKey: "n"}, "n"
	r := newReconciler(t, infrastructure{}, m, node, nil)
	r.limits.Preserve = time.Hour
	writes := 0
	r.controlCache = interceptor.NewClient(r.controlCache.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, options...)
		},
	})
	clock := testingclock.NewFakePassiveClock(now)
	r.clock = clock
	value, requeue := "", time.Duration(0)
	pass := func() {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		if err != nil {
			t.Fatal(err)
		}
		requeue = result.RequeueAfter
		if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 99 { // two per second
		clock.SetTime(now.Add(time.Duration(i) * 500 * time.Millisecond))
		value = []string{"now", "when-failed"}[i%2]
		if err := r.targetCache.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, preserve, value)
		if err := r.targetCache.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if i == 50 {
			nodeCondition(node, corev1.NodeReady).Status = corev1.ConditionFalse
			if err := r.targetCache.Status().Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
		pass()
	}
	if most := writesAtOnce + 5; writes < writesAtOnce || writes > most {
		t.Errorf("%d writes in 50s, want at most %d", writes, most)
	}
	if m.Status.CurrentStatus.Phase != machinev1alpha1.MachineUnknown {
		t.Errorf("phase is %q", m.Status.CurrentStatus.Phase)
	}
	if requeue <= 0 || requeue > writeEvery {
		t.Fatalf("the next pass is after %v, want one within %v", requeue, writeEvery)
	}
	clock.SetTime(clock.Now().Add(writeEvery))
	pass()
	if got := m.Annotations[lastApplied]; got != value {
		t.Errorf("the Machine has value %q, want %q", got, value)
	}
}

// While machines of a pool fail one after the other, one that is kept counts until its Node is drained, and until others could report their health.
func TestKeptKeepsOthersFromFailing(t *testing.T) {
	nodeThat := func(status corev1.ConditionStatus, message string) *corev1.Node {
		node := nodeWith(corev1.NodeCondition{Type: machinev1alpha1.NodePreserved, Status: status, Message: message})
		node.Name = "other"
		return node
	}
	const draining = "The machine has failed. Its node is being drained. pods that are ending: a/b"
	for name, tc := range map[string]struct {
		since, left time.Duration
		node        *corev1.Node // nil if it does not exist
		want        machinev1alpha1.MachinePhase
	}{
		"it has just failed":                     {time.Second, time.Hour, nodeThat("", ""), machinev1alpha1.MachineUnknown},
		"it was drained soon":                    {limits.Health - time.Minute, time.Hour, nodeThat(corev1.ConditionTrue, drained), machinev1alpha1.MachineUnknown},
		"it has no Node, and has just failed":    {limits.Health - time.Minute, time.Hour, nil, machinev1alpha1.MachineUnknown},
		"it is being drained for long":           {time.Hour, time.Hour, nodeThat(corev1.ConditionTrue, draining), machinev1alpha1.MachineUnknown},
		"it was kept before it failed":           {time.Hour, time.Hour, nodeThat(corev1.ConditionTrue, "The machine is kept."), machinev1alpha1.MachineUnknown},
		"it was drained, and failed a while ago": {limits.Health, time.Hour, nodeThat(corev1.ConditionTrue, drained), machinev1alpha1.MachineFailed},
		"it has no Node that could be drained":   {limits.Health, time.Hour, nil, machinev1alpha1.MachineFailed},
		"it is not kept any more":                {time.Hour, 0, nodeThat(corev1.ConditionTrue, drained), machinev1alpha1.MachineUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			m, node := machineIn(machinev1alpha1.MachineUnknown, time.Hour), unknownNode.DeepCopy()
			m.Labels, node.Name = map[string]string{machinev1alpha1.NodeLabelKey: "n", "name": "pool"}, "n"
			r := newReconciler(t, infrastructure{}, m, node, nil)
			other := keptIn(machinev1alpha1.MachineFailed, tc.left, "when-failed")
			other.Namespace, other.Name, other.Status.CurrentStatus.LastUpdateTime = m.Namespace, "other", ago(tc.since)
			other.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "other", "name": "pool"}
			if err := r.controlCache.Create(t.Context(), other.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if err := r.controlCache.Status().Patch(t.Context(), other, client.MergeFrom(&machinev1alpha1.Machine{ObjectMeta: other.ObjectMeta})); err != nil {
				t.Fatal(err)
			}
			if tc.node != nil {
				if err := r.targetCache.Create(t.Context(), tc.node); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
				t.Fatal(err)
			}
			if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Status.CurrentStatus.Phase != tc.want {
				t.Errorf("phase is %q (%v), want %q", m.Status.CurrentStatus.Phase, err, tc.want)
			}
		})
	}
}
