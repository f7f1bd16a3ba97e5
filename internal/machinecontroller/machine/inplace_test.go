package machine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func TestNextStep(t *testing.T) {
	const (
		running, updating = machinev1alpha1.MachineRunning, machinev1alpha1.MachineInPlaceUpdating
		failed, updated   = machinev1alpha1.MachineInPlaceUpdateFailed, machinev1alpha1.MachineInPlaceUpdateSuccessful
	)
	limits := Limits{InPlaceUpdate: 20 * time.Minute}
	for name, tc := range map[string]struct {
		// candidate, selected and result are the labels of the Node, reason is that of its condition.
		candidate, selected bool
		result, reason      string
		phase               machinev1alpha1.MachinePhase
		// since is how long the Machine has had its phase.
		since time.Duration
		// restored is whether the Machine has come from another seed, without its phase.
		restored bool
		want     step
	}{
		"a Node that needs no update":             {phase: running},
		"it keeps that it was updated":            {reason: "UpdateSuccessful", phase: running, want: step{reason: "UpdateSuccessful"}},
		"it loses that it was to be updated":      {reason: "SelectedForUpdate", phase: running},
		"one that has not joined yet":             {candidate: true, selected: true, phase: machinev1alpha1.MachinePending},
		"a candidate":                             {candidate: true, phase: running, want: step{reason: "CandidateForUpdate"}},
		"a candidate that was updated before":     {candidate: true, reason: "UpdateSuccessful", phase: running, want: step{reason: "CandidateForUpdate"}},
		"one that needs another update":           {candidate: true, reason: "UpdateSuccessful", phase: updated, want: step{reason: "CandidateForUpdate", phase: running}},
		"one that is selected":                    {candidate: true, selected: true, reason: "CandidateForUpdate", phase: running, want: step{reason: "SelectedForUpdate"}},
		"it is not selected any more":             {candidate: true, reason: "SelectedForUpdate", phase: running, want: step{reason: "CandidateForUpdate"}},
		"nor when it is ready":                    {candidate: true, reason: "ReadyForUpdate", phase: updating, want: step{reason: "CandidateForUpdate", phase: running}},
		"it is updated nevertheless":              {candidate: true, result: "successful", reason: "CandidateForUpdate", phase: running, want: step{reason: "UpdateSuccessful", phase: updated}},
		"it is drained":                           {candidate: true, selected: true, reason: "SelectedForUpdate", phase: running, want: step{reason: "DrainSuccessful", drain: true}},
		"it is ready":                             {candidate: true, selected: true, reason: "DrainSuccessful", phase: running, want: step{reason: "ReadyForUpdate", phase: updating, recheck: 20 * time.Minute}},
		"it is being updated":                     {candidate: true, selected: true, reason: "ReadyForUpdate", phase: updating, since: 5 * time.Minute, want: step{reason: "ReadyForUpdate", phase: updating, recheck: 15 * time.Minute}},
		"it takes too long":                       {candidate: true, selected: true, reason: "ReadyForUpdate", phase: updating, since: 20 * time.Minute, want: step{reason: "UpdateFailed", phase: failed}},
		"it is updated":                           {candidate: true, selected: true, result: "successful", reason: "ReadyForUpdate", phase: updating, want: step{reason: "UpdateSuccessful", phase: updated}},
		"it is updated after it took too long":    {candidate: true, selected: true, result: "successful", reason: "UpdateFailed", phase: failed, want: step{reason: "UpdateSuccessful", phase: updated}},
		"it cannot be updated":                    {candidate: true, selected: true, result: "failed", reason: "ReadyForUpdate", phase: updating, want: step{reason: "UpdateFailed", phase: failed}},
		"a failure stays":                         {candidate: true, selected: true, reason: "UpdateFailed", phase: failed, want: step{reason: "UpdateFailed", phase: failed}},
		"the phase follows after a restart":       {candidate: true, selected: true, reason: "UpdateFailed", phase: updating, want: step{reason: "UpdateFailed", phase: failed}},
		"the user has it tried again":             {candidate: true, selected: true, result: "failed", reason: "ReadyForUpdate", phase: failed, want: step{reason: "ReadyForUpdate", phase: updating, recheck: 20 * time.Minute, again: true}},
		"it is being updated when it moves":       {candidate: true, selected: true, reason: "ReadyForUpdate", restored: true, want: step{reason: "ReadyForUpdate", phase: updating, recheck: 20 * time.Minute}},
		"its update had failed before it moved":   {candidate: true, selected: true, reason: "UpdateFailed", restored: true, want: step{reason: "UpdateFailed", phase: failed}},
		"it is a new one of this seed":            {candidate: true, selected: true, reason: "ReadyForUpdate", want: step{reason: "ReadyForUpdate"}},
		"it is unhealthy while it is a candidate": {candidate: true, reason: "CandidateForUpdate", phase: machinev1alpha1.MachineUnknown, want: step{reason: "CandidateForUpdate"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}
			if tc.candidate {
				node.Labels[machinev1alpha1.NodeCandidateForUpdate] = "true"
			}
			if tc.selected {
				node.Labels[machinev1alpha1.NodeSelectedForUpdate] = "true"
			}
			if tc.result != "" {
				node.Labels[machinev1alpha1.NodeUpdateResult] = tc.result
			}
			if tc.reason != "" {
				node.Status.Conditions = []corev1.NodeCondition{{Type: machinev1alpha1.NodeInPlaceUpdate, Reason: tc.reason, Status: corev1.ConditionTrue}}
			}
			got := nextStep(observation{machine: machineIn(tc.phase, tc.since), node: node, restored: tc.restored, limits: limits, now: now})
			got.message = ""
			if got != tc.want {
				t.Errorf("nextStep() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// A failure says why, wherever that was written.
func TestFailedStep(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{machinev1alpha1.MachineUpdateFailedReason: "no space left"}}}
	if got := failedStep(node).message; got != "no space left" {
		t.Errorf("the message is %q", got)
	}
	node = &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: machinev1alpha1.NodeInPlaceUpdate, Reason: machinev1alpha1.UpdateFailed, Message: "took too long",
	}}}}
	if got := failedStep(node).message; got != "took too long" {
		t.Errorf("the message is %q", got)
	}
}
