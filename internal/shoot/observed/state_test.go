package observed_test

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
)

func TestSnapshotSchedule(t *testing.T) {
	o := observedtest.State()
	if got := o.SnapshotSchedule(); got != o.SnapshotSchedule() || got == "" {
		t.Errorf("schedule is %q", got)
	}
	o.Shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}}
	schedule := o.SnapshotSchedule()
	if hour := schedule[len(schedule)-len("21 * * *"):]; hour != "21 * * *" {
		t.Errorf("schedule is %q, want it to be between 21:00 and 22:00 UTC", schedule)
	}
}
