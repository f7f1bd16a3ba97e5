// Package preservation decides which machines are kept, so that someone can look at them after they have failed. The process of the generic
// part asks it before it deletes failed machines, that of the provider before it ends the time for which they are kept.
package preservation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// Valid reports whether a value of the annotation has an effect.
func Valid(value string) bool {
	return slices.Contains([]string{
		machinev1alpha1.PreserveNow, machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveAuto, machinev1alpha1.PreserveFalse,
	}, value)
}

// Value is the value that counts for a Machine: that of its Node, as it was taken over last, or else its own. It is empty if there is none.
func Value(machine *machinev1alpha1.Machine) string {
	for _, key := range []string{machinev1alpha1.LastAppliedNodePreserveValue, machinev1alpha1.PreserveMachine} {
		if value := machine.Annotations[key]; Valid(value) {
			return value
		}
	}
	return ""
}

// Automatic reports whether a Machine is kept, or would be, as its pool keeps failed machines by itself.
func Automatic(machine *machinev1alpha1.Machine) bool {
	return Value(machine) == machinev1alpha1.PreserveAuto
}

// Exists reports whether there is something to look at: the machine was created, and is not lost.
func Exists(machine *machinev1alpha1.Machine) bool {
	last := machine.Status.LastOperation
	return machine.Spec.ProviderID != "" && (last.State != machinev1alpha1.MachineStateFailed || last.ErrorCode != string(driver.NotFound))
}

// wanted reports whether a machine in its phase is to be kept.
func wanted(machine *machinev1alpha1.Machine) bool {
	phase := machine.Status.CurrentStatus.Phase
	if machine.DeletionTimestamp != nil || phase == machinev1alpha1.MachineTerminating || !Exists(machine) {
		return false
	}
	switch Value(machine) {
	case machinev1alpha1.PreserveNow:
		return true
	case machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveAuto:
		return phase == machinev1alpha1.MachineFailed
	}
	return false
}

// Expiry returns until when a machine is kept, nil if it is not. The time is set once, and may be changed in the status. One that is over stays as
// long as the machine would be kept again without it.
func Expiry(machine *machinev1alpha1.Machine, now time.Time, timeout time.Duration) *metav1.Time {
	current := machine.Status.CurrentStatus.PreserveExpiryTime
	switch {
	case !wanted(machine):
		return nil
	case current != nil:
		return current
	}
	return new(metav1.NewTime(now.Add(timeout)))
}

// Active reports whether a machine is kept now, whatever its phase.
func Active(machine *machinev1alpha1.Machine, now time.Time) bool {
	expiry := machine.Status.CurrentStatus.PreserveExpiryTime
	return expiry != nil && now.Before(expiry.Time)
}

// Expired reports whether a machine was kept for as long as it may be.
func Expired(machine *machinev1alpha1.Machine, now time.Time) bool {
	return machine.Status.CurrentStatus.PreserveExpiryTime != nil && !Active(machine, now)
}

// Kept reports whether a machine has failed and is kept, so that its set must not delete it. It is as soon as that is wanted, even if there is no
// time yet until when.
func Kept(machine *machinev1alpha1.Machine, now time.Time) bool {
	if machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineFailed || machine.DeletionTimestamp != nil || !Exists(machine) {
		return false
	}
	if Value(machine) == machinev1alpha1.PreserveFalse || Expired(machine, now) {
		return false
	}
	return Active(machine, now) || wanted(machine)
}

// Candidate reports whether a machine has failed and may be kept automatically. One that was kept before is not.
func Candidate(machine *machinev1alpha1.Machine) bool {
	return machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed && machine.DeletionTimestamp == nil && Exists(machine) &&
		Value(machine) == "" && machine.Status.CurrentStatus.PreserveExpiryTime == nil
}
