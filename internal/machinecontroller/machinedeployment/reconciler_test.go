package machinedeployment

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
)

// A deployment that a user froze is scaled again when the annotation unfreezes it.
func TestFrozenDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		unfreeze, reason string
		labelled         bool
		machines         int32
	}{
		"stays so":                    {"", "True " + machineset.ReasonLabel, true, 0},
		"stays so with another value": {"no", "True " + machineset.ReasonLabel, true, 0},
		"is unfrozen":                 {"True", "", false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(corev1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			d := deploymentOfSize(3)
			d.Namespace, d.UID, d.Labels = "shoot", "d", map[string]string{machinev1alpha1.FreezeLabel: machinev1alpha1.LabelValueTrue}
			if tc.unfreeze != "" {
				d.Annotations = map[string]string{machinev1alpha1.UnfreezeAnnotation: tc.unfreeze}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(d).WithObjects(d).Build()
			r := &reconciler{controlCache: c, controlAPI: c, targetCache: c, events: events.NewFakeRecorder(10), clock: testingclock.NewFakePassiveClock(now)}
			for range 2 { // the second pass acts on what the first one wrote
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(d)}); err != nil {
					t.Fatal(err)
				}
			}
			sets := &machinev1alpha1.MachineSetList{}
			if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(d), d), c.List(t.Context(), sets)); err != nil || len(sets.Items) != 1 {
				t.Fatalf("%d sets, %v", len(sets.Items), err)
			}
			if _, labelled := d.Labels[machinev1alpha1.FreezeLabel]; labelled != tc.labelled || d.Annotations[machinev1alpha1.UnfreezeAnnotation] == "True" {
				t.Errorf("labels are %v, annotations %v", d.Labels, d.Annotations)
			}
			if got := reasonOf(d.Status, machinev1alpha1.MachineDeploymentFrozen); got != tc.reason {
				t.Errorf("Frozen is %q, want %q", got, tc.reason)
			}
			if got := sets.Items[0].Spec.Replicas; got != tc.machines {
				t.Errorf("its set has %d replicas, want %d", got, tc.machines)
			}
		})
	}
}

// The cluster-autoscaler chooses machines: they have the lowest priority before the set shrinks.
func TestMachinesListedForDeletion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	d := deploymentOfSize(1)
	const at = "2026-01-02T03:04:05Z"
	d.Namespace, d.UID = "shoot", "d"
	d.Annotations = map[string]string{machinev1alpha1.TriggerDeletionByMCM: "chosen~" + at + ",gone~" + at + ",other~" + at + ",failed~" + at + ",broken,kept~yesterday"}
	machine := func(name string, phase machinev1alpha1.MachinePhase, pool string) *machinev1alpha1.Machine {
		return &machinev1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, Labels: map[string]string{"pool": pool}},
			Status:     machinev1alpha1.MachineStatus{CurrentStatus: machinev1alpha1.CurrentStatus{Phase: phase}},
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(d).WithObjects(
		d, machine("chosen", machinev1alpha1.MachineRunning, "a"), machine("kept", machinev1alpha1.MachineRunning, "a"),
		machine("other", machinev1alpha1.MachineRunning, "b"), machine("failed", machinev1alpha1.MachineFailed, "a"),
	).Build()
	r := &reconciler{controlCache: c, controlAPI: c, targetCache: c, events: events.NewFakeRecorder(10), clock: testingclock.NewFakePassiveClock(now)}
	for range 2 { // the first pass adds a finalizer
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(d)}); err != nil {
			t.Fatal(err)
		}
	}
	machines := &machinev1alpha1.MachineList{}
	if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(d), d), c.List(t.Context(), machines)); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Annotations[machinev1alpha1.TriggerDeletionByMCM], "chosen~"+at; got != want {
		t.Errorf("the list is %q, want %q", got, want)
	}
	for _, m := range machines.Items {
		want := ""
		if m.Name == "chosen" {
			want = "1" + at
		}
		if got := m.Annotations[machinev1alpha1.MachinePriority] + m.Annotations[machinev1alpha1.MarkedForDeletionTime]; got != want {
			t.Errorf("marks of %s are %q, want %q", m.Name, got, want)
		}
	}
}

// A machine moves to the current set when its Node was updated to the template of that set.
func TestMoveUpdated(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const successful = machinev1alpha1.NodeUpdateSuccessful
	for name, tc := range map[string]struct {
		node           string
		result, target string
		moves          bool
	}{
		"its own template":                       {node: "n", result: successful, target: "current", moves: true},
		"another one":                            {node: "n", result: successful, target: "former"},
		"the next update has begun":              {node: "n", target: "current"},
		"it was marked by an earlier version":    {node: "n", result: successful, moves: true},
		"the Node is missing for the time being": {node: "other", result: successful, target: "current"},
	} {
		t.Run(name, func(t *testing.T) {
			old, current := set("old", 1, 1), set("current", 0, 0)
			old.UID, current.UID = "old", "current"
			current.Spec.Template.Spec.Class.Name = "new"
			machine := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shoot", Name: "m", Labels: map[string]string{machinev1alpha1.NodeLabelKey: "n"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(old, machinev1alpha1.SchemeGroupVersion.WithKind("MachineSet"))},
			}}
			machine.Status.CurrentStatus.Phase = machinev1alpha1.MachineInPlaceUpdateSuccessful
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: tc.node, Labels: map[string]string{machinev1alpha1.NodeUpdateResult: tc.result}}}
			if tc.target != "" {
				node.Annotations = map[string]string{targetAnnotation: tc.target}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&machine, node).Build()
			machines := &machinev1alpha1.MachineList{}
			if err := c.List(t.Context(), machines); err != nil {
				t.Fatal(err)
			}
			r := &reconciler{controlCache: c, controlAPI: c, targetCache: c, targetAPI: c, events: events.NewFakeRecorder(10), clock: testingclock.NewFakePassiveClock(now)}
			in := &input{deployment: deploymentOfSize(1), current: current, old: []*machinev1alpha1.MachineSet{old}}
			if err := r.moveUpdated(t.Context(), in, machines.Items); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(&machine), &machine); err != nil {
				t.Fatal(err)
			}
			if moved := metav1.GetControllerOf(&machine).Name == "current" && machine.Spec.Class.Name == "new"; moved != tc.moves {
				t.Errorf("the machine is in set %s with class %q, moves: %t", metav1.GetControllerOf(&machine).Name, machine.Spec.Class.Name, tc.moves)
			}
		})
	}
}

// A change that is taken back stops an update that has not begun. One that has begun is undone by another update.
func TestTakenBack(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	type state struct {
		candidate, selected    bool
		result, target, reason string
	}
	const successful = machinev1alpha1.NodeUpdateSuccessful
	for name, tc := range map[string]struct{ before, want state }{
		"drained": {before: state{true, true, "", "former", machinev1alpha1.DrainSuccessful}},
		"begun": {
			before: state{true, true, "", "former", machinev1alpha1.ReadyForUpdate},
			want:   state{true, true, "", "former", machinev1alpha1.ReadyForUpdate},
		},
		"done": {
			before: state{true, true, successful, "former", machinev1alpha1.UpdateSuccessful},
			want:   state{true, false, "", "current", machinev1alpha1.UpdateSuccessful},
		},
		"undone": {before: state{true, true, successful, "current", machinev1alpha1.UpdateSuccessful}},
	} {
		t.Run(name, func(t *testing.T) {
			former, current := set("former", 0, 0), set("current", 1, 1)
			former.UID, current.UID = "former", "current"
			machine := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shoot", Name: "m", Labels: map[string]string{machinev1alpha1.NodeLabelKey: "n"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(current, machinev1alpha1.SchemeGroupVersion.WithKind("MachineSet"))},
			}}
			machine.Status.CurrentStatus.Phase = machinev1alpha1.MachineInPlaceUpdating
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: "n", Annotations: map[string]string{targetAnnotation: tc.before.target},
				Labels: map[string]string{machinev1alpha1.NodeCandidateForUpdate: "true", machinev1alpha1.NodeSelectedForUpdate: "true"},
			}}
			if tc.before.result != "" {
				node.Labels[machinev1alpha1.NodeUpdateResult] = tc.before.result
			}
			node.Status.Conditions = []corev1.NodeCondition{{Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: tc.before.reason}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).Build()
			r := &reconciler{targetCache: c, targetAPI: c}
			in := input{deployment: deploymentOfSize(1), current: current, old: []*machinev1alpha1.MachineSet{former}, unavailable: 1}
			if err := r.markForUpdate(t.Context(), in, []machinev1alpha1.Machine{machine}); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
				t.Fatal(err)
			}
			got := state{
				node.Labels[machinev1alpha1.NodeCandidateForUpdate] == "true", node.Labels[machinev1alpha1.NodeSelectedForUpdate] == "true",
				node.Labels[machinev1alpha1.NodeUpdateResult], node.Annotations[targetAnnotation], node.Status.Conditions[0].Reason,
			}
			if tc.want == (state{}) {
				tc.want.reason = tc.before.reason // the controller of Machines removes the condition
			}
			if got != tc.want {
				t.Errorf("the Node is %+v, want %+v", got, tc.want)
			}
		})
	}
}
