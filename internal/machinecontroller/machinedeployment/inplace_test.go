package machinedeployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func TestScaleInPlace(t *testing.T) {
	withUID := func(s *machinev1alpha1.MachineSet) *machinev1alpha1.MachineSet {
		s.UID = types.UID(s.Name)
		return s
	}
	for name, tc := range map[string]struct {
		desired, surge int32
		current, old   *machinev1alpha1.MachineSet
		owned          map[string]int32
		want           map[string]int32
	}{
		"nothing is created at the start":       {3, 0, set("c", 0, 0), set("o", 3, 3), map[string]int32{"o": 3}, map[string]int32{"c": 0, "o": 3}},
		"except for the surge":                  {3, 1, set("c", 0, 0), set("o", 3, 3), map[string]int32{"o": 3}, map[string]int32{"c": 1, "o": 3}},
		"one has moved":                         {3, 0, set("c", 0, 0), set("o", 3, 2), map[string]int32{"o": 2, "c": 1}, map[string]int32{"c": 1, "o": 2}},
		"all have moved":                        {3, 0, set("c", 2, 2), set("o", 1, 0), map[string]int32{"c": 3}, map[string]int32{"c": 3, "o": 0}},
		"a lost one is replaced":                {3, 0, set("c", 0, 0), set("o", 3, 2), map[string]int32{"o": 2}, map[string]int32{"c": 1, "o": 2}},
		"more are desired meanwhile":            {5, 0, set("c", 1, 1), set("o", 2, 2), map[string]int32{"o": 2, "c": 1}, map[string]int32{"c": 3, "o": 2}},
		"fewer are desired meanwhile":           {2, 0, set("c", 1, 1), set("o", 3, 3), map[string]int32{"o": 3, "c": 1}, map[string]int32{"c": 1, "o": 1}},
		"surplus old ones are deleted at last":  {2, 1, set("c", 2, 2), set("o", 1, 1), map[string]int32{"o": 1, "c": 2}, map[string]int32{"c": 2, "o": 0}},
		"not before the new ones are available": {2, 1, set("c", 2, 1), set("o", 1, 1), map[string]int32{"o": 1, "c": 2}, map[string]int32{"c": 2, "o": 1}},
		"all are deleted for hibernation":       {0, 1, set("c", 1, 1), set("o", 1, 1), map[string]int32{"o": 1, "c": 1}, map[string]int32{"c": 0, "o": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{deployment: deploymentOfSize(tc.desired), surge: tc.surge, current: withUID(tc.current), old: []*machinev1alpha1.MachineSet{withUID(tc.old)}}
			if diff := cmp.Diff(tc.want, scaleInPlace(in, tc.owned)); diff != "" {
				t.Errorf("scaleInPlace() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectNodes(t *testing.T) {
	const (
		running, unknown = machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown
		updating, failed = machinev1alpha1.MachineInPlaceUpdating, machinev1alpha1.MachineInPlaceUpdateFailed
		updated          = machinev1alpha1.MachineInPlaceUpdateSuccessful
	)
	of := func(old bool, name string, phase machinev1alpha1.MachinePhase, selected ...bool) member {
		m := member{machine: &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}, node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, old: old}
		m.machine.Status.CurrentStatus.Phase = phase
		if len(selected) > 0 {
			m.node.Labels = map[string]string{machinev1alpha1.NodeSelectedForUpdate: "true"}
		}
		return m
	}
	const old, current = true, false
	cordoned := of(old, "b", running)
	cordoned.node.Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		desired, unavailable int32
		orchestration        machinev1alpha1.OrchestrationType
		paused               bool
		members              []member
		want                 []string
	}{
		"as many as may be unavailable":          {desired: 3, unavailable: 2, members: []member{of(old, "c", running), of(old, "a", running), of(old, "b", running)}, want: []string{"a", "b"}},
		"those that are drained count":           {desired: 3, unavailable: 1, members: []member{of(old, "a", running, true), of(old, "b", running), of(old, "c", running)}},
		"those that are updated count":           {desired: 3, unavailable: 1, members: []member{of(old, "a", updating, true), of(old, "b", running), of(old, "c", running)}},
		"until they work again":                  {desired: 3, unavailable: 1, members: []member{of(current, "a", updated), of(old, "b", running), of(old, "c", running)}},
		"cordoned ones are first":                {desired: 3, unavailable: 1, members: []member{of(old, "a", running), cordoned, of(old, "c", running)}, want: []string{"b"}},
		"the next one":                           {desired: 3, unavailable: 1, members: []member{of(current, "a", running), of(old, "b", running), of(old, "c", running)}, want: []string{"b"}},
		"a failure stops the update":             {desired: 3, unavailable: 1, members: []member{of(old, "a", failed, true), of(old, "b", running), of(old, "c", running)}},
		"unhealthy ones count":                   {desired: 3, unavailable: 1, members: []member{of(old, "a", unknown), of(old, "b", running), of(old, "c", running)}},
		"the surge makes room":                   {desired: 2, members: []member{of(current, "s", running), of(old, "a", running), of(old, "b", running)}, want: []string{"a"}},
		"not before it works":                    {desired: 2, members: []member{of(current, "s", machinev1alpha1.MachinePending), of(old, "a", running), of(old, "b", running)}},
		"surplus ones are not updated":           {desired: 2, unavailable: 1, members: []member{of(current, "s", running), of(current, "a", running), of(old, "b", running)}},
		"the user selects":                       {desired: 2, unavailable: 1, orchestration: machinev1alpha1.OrchestrationTypeManual, members: []member{of(old, "a", running), of(old, "b", running)}},
		"nothing begins while it is paused":      {desired: 2, unavailable: 1, paused: true, members: []member{of(old, "a", running), of(old, "b", running)}},
		"a selection of the user counts in auto": {desired: 2, unavailable: 1, members: []member{of(old, "a", running), of(old, "b", running, true)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploymentOfSize(tc.desired)
			d.Spec.Paused = tc.paused
			d.Spec.Strategy = machinev1alpha1.MachineDeploymentStrategy{
				Type:          machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
				InPlaceUpdate: &machinev1alpha1.InPlaceUpdateMachineDeployment{OrchestrationType: tc.orchestration},
			}
			if diff := cmp.Diff(tc.want, selectNodes(input{deployment: d, unavailable: tc.unavailable}, tc.members)); diff != "" {
				t.Errorf("selectNodes() (-want +got):\n%s", diff)
			}
		})
	}
}

// What a Node gets for its update is removed after it, and nothing else.
func TestCandidate(t *testing.T) {
	plain := func() *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "mine"}}},
		}
	}
	stale := plain()
	stale.Labels[machinev1alpha1.NodeUpdateResult] = machinev1alpha1.NodeUpdateSuccessful
	marked := candidate(stale, true, "set")
	want := map[string]string{"a": "b", machinev1alpha1.NodeCandidateForUpdate: "true", machinev1alpha1.NodeSelectedForUpdate: "true"}
	if diff := cmp.Diff(want, marked.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	marked.Spec.Unschedulable = true
	if diff := cmp.Diff(plain(), unmark(marked)); diff != "" {
		t.Errorf("a Node whose update was aborted (-want +got):\n%s", diff)
	}
	marked.Labels[machinev1alpha1.NodeUpdateResult] = machinev1alpha1.NodeUpdateSuccessful
	ready := plain()
	ready.Spec.Taints = append(ready.Spec.Taints, corev1.Taint{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule})
	if diff := cmp.Diff(ready, unmark(marked)); diff != "" {
		t.Errorf("a Node that was updated (-want +got):\n%s", diff)
	}
	delete(marked.Labels, machinev1alpha1.NodeSelectedForUpdate)
	if diff := cmp.Diff(ready, unmark(marked)); diff != "" {
		t.Errorf("a Node that was updated although it was not selected any more (-want +got):\n%s", diff)
	}
	cordoned := plain()
	cordoned.Spec.Unschedulable = true
	cordoned.Annotations[machinev1alpha1.ScaleDownDisabled] = "true"
	if diff := cmp.Diff(cordoned, unmark(candidate(cordoned, false, "set"))); diff != "" {
		t.Errorf("a Node that the user has cordoned (-want +got):\n%s", diff)
	}
	// The cluster-autoscaler must not remove one whose machine is kept for inspection.
	kept := plain()
	kept.Status.Conditions = []corev1.NodeCondition{{Type: machinev1alpha1.NodePreserved, Status: corev1.ConditionTrue}}
	kept.Annotations[machinev1alpha1.ScaleDownDisabled], kept.Annotations[machinev1alpha1.ScaleDownDisabledByMCM] = "true", "true"
	if diff := cmp.Diff(kept, unmark(kept)); diff != "" {
		t.Errorf("a Node that is kept (-want +got):\n%s", diff)
	}
}

// What was begun for a template does not count for a later one.
func TestLaterTemplate(t *testing.T) {
	const successful, failed = machinev1alpha1.NodeUpdateSuccessful, machinev1alpha1.NodeUpdateFailed
	type state struct {
		target, result     string
		selected, cordoned bool
	}
	for name, tc := range map[string]struct {
		before state
		reason string
		want   state
	}{
		"a candidate":                              {state{target: "former"}, machinev1alpha1.CandidateForUpdate, state{target: "current"}},
		"one that is being drained":                {state{target: "former", selected: true, cordoned: true}, machinev1alpha1.SelectedForUpdate, state{target: "current", selected: true, cordoned: true}},
		"one whose agent has begun":                {state{target: "former", selected: true, cordoned: true}, machinev1alpha1.ReadyForUpdate, state{target: "former", selected: true, cordoned: true}},
		"one whose agent has failed":               {state{target: "former", result: failed, selected: true, cordoned: true}, machinev1alpha1.UpdateFailed, state{target: "former", result: failed, selected: true, cordoned: true}},
		"one that has the former template":         {state{target: "former", result: successful, selected: true, cordoned: true}, machinev1alpha1.UpdateSuccessful, state{target: "current"}},
		"one that has this one":                    {state{target: "current", result: successful, selected: true, cordoned: true}, machinev1alpha1.UpdateSuccessful, state{target: "current", result: successful, selected: true, cordoned: true}},
		"one of an earlier version":                {state{selected: true}, machinev1alpha1.SelectedForUpdate, state{target: "current", selected: true}},
		"one whose agent has begun before that":    {state{selected: true, cordoned: true}, machinev1alpha1.ReadyForUpdate, state{selected: true, cordoned: true}},
		"one whose agent has finished before that": {state{result: successful, selected: true, cordoned: true}, machinev1alpha1.ReadyForUpdate, state{result: successful, selected: true, cordoned: true}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{machinev1alpha1.NodeCandidateForUpdate: "true"}}}
			node.Spec.Unschedulable = tc.before.cordoned
			node.Status.Conditions = []corev1.NodeCondition{{Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: tc.reason}}
			if tc.before.target != "" {
				node.Annotations = map[string]string{targetAnnotation: tc.before.target}
			}
			if tc.before.result != "" {
				node.Labels[machinev1alpha1.NodeUpdateResult] = tc.before.result
			}
			if tc.before.selected {
				node.Labels[machinev1alpha1.NodeSelectedForUpdate] = "true"
			}
			got := candidate(node, false, "current")
			after := state{
				target: got.Annotations[targetAnnotation], result: got.Labels[machinev1alpha1.NodeUpdateResult],
				selected: got.Labels[machinev1alpha1.NodeSelectedForUpdate] == "true", cordoned: got.Spec.Unschedulable,
			}
			if after != tc.want || got.Labels[machinev1alpha1.NodeCandidateForUpdate] != "true" {
				t.Errorf("the Node is %+v with labels %v, want %+v", after, got.Labels, tc.want)
			}
		})
	}
}
