package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var limits = Limits{Creation: 20 * time.Minute, Health: 10 * time.Minute, Drain: 2 * time.Hour, NodeConditions: []string{"KernelDeadlock"}}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// machineIn is a machine that has been in its phase for some time.
func machineIn(phase machinev1alpha1.MachinePhase, since time.Duration) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: ago(since)}}
	m.Status.CurrentStatus = machinev1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: ago(since)}
	return m
}

func nodeWith(conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
}

func condition(typ corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: typ, Status: status, Reason: "Why"}
}

var (
	readyNode   = nodeWith(condition(corev1.NodeReady, corev1.ConditionTrue))
	unknownNode = nodeWith(condition(corev1.NodeReady, corev1.ConditionUnknown))
)

func TestDecide(t *testing.T) {
	const (
		pending = machinev1alpha1.MachinePending
		running = machinev1alpha1.MachineRunning
		unknown = machinev1alpha1.MachineUnknown
		failed  = machinev1alpha1.MachineFailed
		updated = machinev1alpha1.MachineInPlaceUpdateSuccessful
	)
	tainted := readyNode.DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: constants.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}}
	for name, tc := range map[string]struct {
		machine *machinev1alpha1.Machine
		node    *corev1.Node
		change  func(*observation)
		want    verdict
		says    string
	}{
		"a new one waits for its Node": {
			machine: machineIn("", time.Minute), want: verdict{phase: pending, recheck: 20 * time.Minute},
			says: "Waiting for the machine to join. Node n does not exist",
		},
		"one whose creation took long gets the whole timeout for joining": {
			machine: machineIn(machinev1alpha1.MachineCrashLoopBackOff, 30*time.Minute), want: verdict{phase: pending, recheck: 20 * time.Minute},
			says: "Waiting for the machine to join. Node n does not exist",
		},
		"its time begins when it waits": {
			machine: machineIn(pending, time.Minute), change: func(o *observation) { o.machine.CreationTimestamp = ago(time.Hour) },
			want: verdict{phase: pending, recheck: 19 * time.Minute},
			says: "Waiting for the machine to join. Node n does not exist",
		},
		"one that has joined runs": {
			machine: machineIn(pending, time.Minute), node: readyNode, want: verdict{phase: running, joined: true}, says: "The machine joined the cluster as Node n.",
		},
		"one whose Node refuses its labels waits": {
			machine: machineIn(pending, time.Minute), node: readyNode, change: func(o *observation) { o.unlabeled = true },
			want: verdict{phase: pending, recheck: 19 * time.Minute},
			says: "Waiting for the machine to join. Node n: its labels, annotations and taints cannot be applied",
		},
		"one whose Node refuses its labels fails in the end": {
			machine: machineIn(pending, 20*time.Minute), node: readyNode, change: func(o *observation) { o.unlabeled = true },
			want: verdict{phase: failed},
			says: "The machine did not join within 20m0s. Node n: its labels, annotations and taints cannot be applied",
		},
		"one whose creation failed before runs when it has joined": {
			machine: machineIn(machinev1alpha1.MachineCrashLoopBackOff, time.Minute), node: readyNode, want: verdict{phase: running, joined: true},
			says: "The machine joined the cluster as Node n.",
		},
		"one without its network waits": {
			machine: machineIn(pending, time.Minute), node: tainted, want: verdict{phase: pending, recheck: 19 * time.Minute},
			says: "Waiting for the machine to join. Node n: critical components are not ready",
		},
		"one that does not join fails": {
			machine: machineIn(pending, 20*time.Minute), node: unknownNode, want: verdict{phase: failed},
			says: "The machine did not join within 20m0s. Node n: Ready is Unknown (Why)",
		},
		"one that could not join as the cluster was not reachable gets another timeout": {
			machine: machineIn(pending, 30*time.Minute), change: func(o *observation) { o.reachableSince = now.Add(-time.Minute) },
			want: verdict{phase: pending, recheck: 19 * time.Minute}, says: "Waiting for the machine to join. Node n does not exist",
		},
		"one that is lost before it joins fails": {
			machine: machineIn(pending, time.Minute), change: func(o *observation) { o.lost = "gone" }, want: verdict{phase: failed},
			says: "The machine was lost before it joined: gone",
		},
		"one that is lost as soon as it is created waits before it fails": {
			machine: machineIn(pending, 10*time.Second), change: func(o *observation) { o.lost = "gone" },
			want: verdict{phase: machinev1alpha1.MachineCrashLoopBackOff, recheck: 20 * time.Second}, says: "The machine was lost before it joined: gone",
		},
		"and fails then": {
			machine: machineIn(machinev1alpha1.MachineCrashLoopBackOff, retryCreation), change: func(o *observation) { o.lost = "gone" },
			want: verdict{phase: failed}, says: "The machine was lost before it joined: gone",
		},
		"one that is lost as soon as it has joined fails at once": {
			machine: machineIn(running, 10*time.Second), node: readyNode, change: func(o *observation) { o.lost = "gone" },
			want: verdict{phase: failed}, says: "The machine is lost: gone",
		},
		"one that is lost as it joins fails": {
			machine: machineIn(pending, time.Minute), node: readyNode, change: func(o *observation) { o.lost = "gone" }, want: verdict{phase: failed},
			says: "The machine was lost before it joined: gone",
		},
		"a healthy one stays": {machine: machineIn(running, time.Hour), node: readyNode, want: verdict{phase: running}},
		"one that stops to report is unknown": {
			machine: machineIn(running, time.Hour), node: unknownNode, want: verdict{phase: unknown, recheck: 10 * time.Minute},
			says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"one with a bad condition is unknown": {
			machine: machineIn(running, time.Hour), want: verdict{phase: unknown, recheck: 10 * time.Minute},
			node: nodeWith(condition(corev1.NodeReady, corev1.ConditionTrue), condition("KernelDeadlock", corev1.ConditionTrue), condition("Other", corev1.ConditionTrue)),
			says: "The machine is unhealthy. Node n: KernelDeadlock is True (Why)",
		},
		"a running one that is lost fails at once": {
			machine: machineIn(running, time.Hour), node: unknownNode, change: func(o *observation) { o.lost = "gone" }, want: verdict{phase: failed},
			says: "The machine is lost: gone",
		},
		"one that is lost fails before its Node is not Ready": {
			machine: machineIn(running, time.Hour), node: readyNode, change: func(o *observation) { o.lost = "gone"; o.mayFail = false },
			want: verdict{phase: failed}, says: "The machine is lost: gone",
		},
		"an unknown one that is lost fails, whatever the state of its Node": {
			machine: machineIn(unknown, time.Minute), node: readyNode, change: func(o *observation) { o.lost = "gone" }, want: verdict{phase: failed},
			says: "The machine is lost: gone",
		},
		"one that is unhealthy for a while stays unknown": {
			machine: machineIn(unknown, 4*time.Minute), node: unknownNode, want: verdict{phase: unknown, recheck: 6 * time.Minute},
			says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"one that is unhealthy for long fails": {
			machine: machineIn(unknown, 10*time.Minute), node: unknownNode, want: verdict{phase: failed},
			says: "The machine was unhealthy for more than 10m0s. Node n: Ready is Unknown (Why)",
		},
		"but not while others are being replaced": {
			machine: machineIn(unknown, 10*time.Minute), node: unknownNode, change: func(o *observation) { o.mayFail = false },
			want: verdict{phase: unknown, recheck: undecided}, says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"nor when no kubelet could report": {
			machine: machineIn(unknown, time.Hour), node: unknownNode, change: func(o *observation) { o.reachableSince = now.Add(-time.Minute) },
			want: verdict{phase: unknown, recheck: 9 * time.Minute}, says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"nor if it is not to be replaced": {
			machine: machineIn(unknown, time.Hour), node: unknownNode, change: func(o *observation) { o.limits.DisableHealth = true },
			want: verdict{phase: unknown}, says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"an unknown one that is healthy again runs": {
			machine: machineIn(unknown, time.Hour), node: readyNode, want: verdict{phase: running}, says: "Node n is healthy again.",
		},
		"one that comes from another seed runs, whether or not critical components are ready": {
			machine: machineIn("", 0), node: tainted, change: func(o *observation) { o.restored = true }, want: verdict{phase: running, joined: true},
			says: "Node n is healthy.",
		},
		"one that is not Ready there is unknown": {
			machine: machineIn("", 0), node: unknownNode, change: func(o *observation) { o.restored = true },
			want: verdict{phase: unknown, recheck: 10 * time.Minute}, says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"and not replaced if it is not to be": {
			machine: machineIn("", 0), change: func(o *observation) { o.restored, o.limits.DisableHealth = true, true },
			want: verdict{phase: unknown}, says: "The machine is unhealthy. Node n does not exist",
		},
		"and fails if it is lost": {
			machine: machineIn("", 0), node: readyNode, change: func(o *observation) { o.restored, o.lost = true, "gone" }, want: verdict{phase: failed},
			says: "The machine is lost: gone",
		},
		"a failed one stays so":          {machine: machineIn(failed, time.Hour), node: readyNode, want: verdict{phase: failed}},
		"one that is updated is ignored": {machine: machineIn(machinev1alpha1.MachineInPlaceUpdating, time.Hour), want: verdict{phase: machinev1alpha1.MachineInPlaceUpdating}},
		"and while its Node is a candidate": {
			machine: machineIn(updated, time.Hour), node: unknownNode, change: func(o *observation) {
				o.node = o.node.DeepCopy()
				o.node.Labels = map[string]string{machinev1alpha1.NodeCandidateForUpdate: "true"}
			}, want: verdict{phase: updated},
		},
		"one that is not Ready after its update is unknown": {
			machine: machineIn(updated, time.Hour), node: unknownNode, want: verdict{phase: unknown, recheck: 10 * time.Minute},
			says: "The machine is unhealthy. Node n: Ready is Unknown (Why)",
		},
		"and waits for critical components when it is Ready": {
			machine: machineIn(unknown, time.Minute), node: tainted, want: verdict{phase: updated}, says: "Node n was updated, and its critical components are not ready.",
		},
		"one whose critical components are not ready after it waits": {machine: machineIn(updated, time.Hour), node: tainted, want: verdict{phase: updated}},
		"one that is healthy after it runs": {
			machine: machineIn(updated, time.Hour), node: readyNode, want: verdict{phase: running}, says: "Node n was updated, and is healthy.",
		},
		"one whose update has failed is ignored": {
			machine: machineIn(machinev1alpha1.MachineInPlaceUpdateFailed, time.Hour), node: unknownNode, want: verdict{phase: machinev1alpha1.MachineInPlaceUpdateFailed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observation{machine: tc.machine, nodeName: "n", node: tc.node, mayFail: true, limits: limits, now: now}
			if tc.change != nil {
				tc.change(&o)
			}
			got := decide(o)
			says := ""
			if got.operation != nil {
				says = got.operation.Description
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(verdict{}), cmpopts.IgnoreFields(verdict{}, "operation")); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
			if says != tc.says {
				t.Errorf("the description is %q, want %q", says, tc.says)
			}
		})
	}
}

func TestDecideAfterFailedCreation(t *testing.T) {
	for name, tc := range map[string]struct {
		age     time.Duration
		code    driver.Code
		phase   machinev1alpha1.MachinePhase
		recheck time.Duration
	}{
		"is retried soon":                 {time.Minute, driver.Unavailable, machinev1alpha1.MachineCrashLoopBackOff, retryCreation},
		"is retried rarely without quota": {time.Minute, driver.ResourceExhausted, machinev1alpha1.MachineCrashLoopBackOff, retryRarely},
		"is retried rarely if invalid":    {time.Minute, driver.InvalidArgument, machinev1alpha1.MachineCrashLoopBackOff, retryRarely},
		"is retried until the timeout":    {19*time.Minute + 50*time.Second, driver.Unavailable, machinev1alpha1.MachineCrashLoopBackOff, 10 * time.Second},
		"fails in the end":                {20 * time.Minute, driver.Unavailable, machinev1alpha1.MachineFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideAfterFailedCreation(machineIn("", tc.age), &driver.Error{Code: tc.code, Err: errors.New("no")}, limits, now)
			if got.phase != tc.phase || got.recheck != tc.recheck || got.operation.ErrorCode != string(tc.code) {
				t.Errorf("got %+v with %+v", got, got.operation)
			}
		})
	}
}

func TestLimitsOf(t *testing.T) {
	m := &machinev1alpha1.Machine{}
	if diff := cmp.Diff(limits, limitsOf(m, limits)); diff != "" {
		t.Errorf("without own settings (-want +got):\n%s", diff)
	}
	m.Spec.MachineConfiguration = machinev1alpha1.MachineConfiguration{
		CreationTimeout: &metav1.Duration{Duration: time.Minute}, HealthTimeout: &metav1.Duration{Duration: 2 * time.Minute}, DisableHealthTimeout: new(true),
		DrainTimeout: &metav1.Duration{Duration: time.Hour}, MaxEvictRetries: new(int32(9)), NodeConditions: new("A,B"),
	}
	want := Limits{
		Creation: time.Minute, Health: 2 * time.Minute, DisableHealth: true, Drain: 3 * time.Minute, MaxEvictRetries: 9, NodeConditions: []string{"A", "B"},
	}
	if diff := cmp.Diff(want, limitsOf(m, limits)); diff != "" {
		t.Errorf("with own settings (-want +got):\n%s", diff)
	}
}

func TestDrainForce(t *testing.T) {
	longGone := nodeWith(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: ago(6 * time.Minute)})
	justGone := nodeWith(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: ago(4 * time.Minute)})
	readOnly := func(since time.Duration) *corev1.Node {
		return nodeWith(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
			corev1.NodeCondition{Type: "ReadonlyFilesystem", Status: corev1.ConditionTrue, LastTransitionTime: ago(since)})
	}
	own := "KernelDeadlock,ReadonlyFilesystem"
	for name, tc := range map[string]struct {
		labels  map[string]string
		node    *corev1.Node
		lost    bool
		deleted time.Duration
		unwell  *string // conditions that make Nodes unhealthy
		want    string
	}{
		"for one that cannot write for long": {
			node: readOnly(6 * time.Minute), deleted: time.Minute, unwell: &own, want: "the Node has had a read-only file system for more than 5m0s",
		},
		"not for one that cannot write just now":      {node: readOnly(4 * time.Minute), deleted: time.Minute, unwell: &own},
		"not if its pool does not take it for unwell": {node: readOnly(6 * time.Minute), deleted: time.Minute, unwell: new("KernelDeadlock")},
		"not for a healthy Node":                      {node: readyNode, deleted: time.Hour},
		"not for one not Ready just now":              {node: justGone, deleted: time.Hour},
		"for one not Ready for long":                  {node: longGone, deleted: time.Minute, want: "the Node has not been Ready for more than 5m0s"},
		"for a lost machine":                          {node: readyNode, lost: true, deleted: time.Minute, want: "the machine is lost"},
		"after the drain timeout":                     {node: readyNode, deleted: 3 * time.Hour, want: "it took longer than 2h0m0s"},
		"with the label": {
			labels: map[string]string{"force-deletion": "True"}, node: readyNode, deleted: time.Minute, want: "the machine is deleted by force",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machineIn(machinev1alpha1.MachineTerminating, tc.deleted)
			m.Labels, m.DeletionTimestamp = tc.labels, new(ago(tc.deleted))
			m.Spec.MachineConfiguration.NodeConditions = tc.unwell
			if got := drainForce(m, tc.node, limitsOf(m, limits), tc.lost, now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// What a class adds to the capacity is on the Node until it is removed from the class, and what the kubelet writes stays.
func TestWithVirtualCapacity(t *testing.T) {
	list := func(entries ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(entries); i += 2 {
			out[corev1.ResourceName(entries[i])] = resource.MustParse(entries[i+1])
		}
		return out
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}, Status: corev1.NodeStatus{Capacity: list("cpu", "4", "example.com/theirs", "1")}}
	class := &machinev1alpha1.MachineClass{}
	step := func(text string, want corev1.ResourceList) {
		t.Helper()
		got, annotation, err := withVirtualCapacity(class, node)
		if err != nil || annotation != text {
			t.Errorf("annotation is %s, %v, want %s", annotation, err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("capacity (-want +got):\n%s", diff)
		}
		node.Status.Capacity, node.Annotations[machinev1alpha1.LastAppliedVirtualCapacityAnnotation] = got, annotation
	}
	step("", list("cpu", "4", "example.com/theirs", "1"))
	class.NodeTemplate = &machinev1alpha1.NodeTemplate{VirtualCapacity: list("cpu", "100", "example.com/a", "5", "example.com/b", "1")}
	step(`{"example.com/a":"5","example.com/b":"1"}`, list("cpu", "4", "example.com/theirs", "1", "example.com/a", "5", "example.com/b", "1"))
	node.Status.Capacity["example.com/a"] = resource.MustParse("0") // the kubelet, after a reboot
	class.NodeTemplate.VirtualCapacity = list("example.com/a", "6")
	step(`{"example.com/a":"6"}`, list("cpu", "4", "example.com/theirs", "1", "example.com/a", "6"))
	node.Annotations[machinev1alpha1.LastAppliedVirtualCapacityAnnotation] = "{"
	step(`{"example.com/a":"6"}`, list("cpu", "4", "example.com/theirs", "1", "example.com/a", "6"))
	class.NodeTemplate = nil
	step("", list("cpu", "4", "example.com/theirs", "1"))
}

// A user of the shoot writes quantities with an exponent of eight digits to a Node, which take minutes to parse or to compare; with nine, hours.
func TestVirtualCapacityThatTakesLong(t *testing.T) {
	class := &machinev1alpha1.MachineClass{NodeTemplate: &machinev1alpha1.NodeTemplate{VirtualCapacity: corev1.ResourceList{"example.com/a": resource.MustParse("5")}}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{machinev1alpha1.LastAppliedVirtualCapacityAnnotation: `{"example.com/b":"1e-29999999"}`}},
		Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{"example.com/a": resource.MustParse("1e29999999"), "example.com/b": resource.MustParse("1")}},
	}
	begin := time.Now()
	earlier := node.DeepCopy()
	earlier.Status.Capacity["example.com/a"] = resource.MustParse("4")
	if !nodeChanged().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: earlier, ObjectNew: node}) {
		t.Error("the change is not seen")
	}
	got, _, err := withVirtualCapacity(class, node)
	if err != nil || len(got) != 1 || !got.Name("example.com/a", resource.DecimalSI).Equal(resource.MustParse("5")) {
		t.Errorf("capacity is %v (%v)", got, err)
	}
	if sameCapacity(corev1.ResourceList{"example.com/a": node.Status.Capacity["example.com/a"]}, got) {
		t.Error("what the user wrote stays")
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	if !sameCapacity(node.Status.Capacity, node.DeepCopy().Status.Capacity) {
		t.Error("a Node differs from itself")
	}
}

func TestWithTemplate(t *testing.T) {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	m.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{"a": "1", "b": "1"}
	m.Spec.NodeTemplate.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	others := corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"theirs": "1"}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{others}}}
	step := func(differs bool, labels map[string]string, taints ...corev1.Taint) {
		t.Helper()
		got, changed, err := withTemplate(m, node)
		if err != nil || changed != differs {
			t.Fatalf("changed is %t (%v), want %t", changed, err, differs)
		}
		labels["theirs"], labels[machinev1alpha1.MachineLabelKey] = "1", "m"
		if diff := cmp.Diff(labels, got.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(append([]corev1.Taint{others}, taints...), got.Spec.Taints); diff != "" {
			t.Errorf("taints (-want +got):\n%s", diff)
		}
		node = got
	}
	step(true, map[string]string{"a": "1", "b": "1"}, m.Spec.NodeTemplate.Spec.Taints...)
	step(false, map[string]string{"a": "1", "b": "1"}, m.Spec.NodeTemplate.Spec.Taints...)
	m.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{"a": "2"}
	m.Spec.NodeTemplate.Spec.Taints = nil
	step(true, map[string]string{"a": "2"})
	step(false, map[string]string{"a": "2"})

	// An invalid annotation is rewritten, and nothing is removed.
	node.Annotations[machinev1alpha1.LastAppliedALTAnnotation] = `{"metadata":{"labels":{"a":"2"}},"spec":1}`
	m.Spec.NodeTemplate.ObjectMeta.Labels = nil
	step(true, map[string]string{"a": "2"})
	step(false, map[string]string{"a": "2"})
}
