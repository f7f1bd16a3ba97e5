package managedseed

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
)

// The ten minutes of a trial begin again when it was not checked, as the Shoot was being reconciled or the gardenlet of the parent seed was down.
func TestJudgementsSince(t *testing.T) {
	key, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	at := func(minutes int) time.Time { return time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute) }
	j := &judgements{}
	for _, tc := range []struct {
		key       types.NamespacedName
		now, want int
	}{
		{key, 1, 1}, // the process has started
		{key, 2, 1},
		{other, 4, 4},
		{key, 5, 1},
		{key, 9, 9},
		{key, 12, 9},
	} {
		if got := j.since(tc.key, at(tc.now)); !got.Equal(at(tc.want)) {
			t.Errorf("since(%s) after %d minutes = %s, want %s", tc.key.Name, tc.now, got, at(tc.want))
		}
	}
	j.end(key)
	if got := j.since(key, at(13)); !got.Equal(at(13)) {
		t.Errorf("since() of another ManagedSeed of the name = %s, want %s", got, at(13))
	}
}

func TestInTime(t *testing.T) {
	now := time.Unix(0, 0).Add(time.Hour)
	late := trial.Verdict{Failed: "it does not work after 10m0s", Late: true}
	again := trial.Verdict{RecheckIn: time.Minute}
	for name, tc := range map[string]struct {
		verdict trial.Verdict
		partly  bool
		checked time.Duration
		want    trial.Verdict
	}{
		"late":                               {late, false, 10 * time.Minute, late},
		"late, but not checked for the time": {late, false, 9 * time.Minute, again},
		"late, but its objects cannot be applied": {late, true, time.Hour, again},
		"it crashes": {trial.Verdict{Failed: "it crashes"}, true, 0, trial.Verdict{Failed: "it crashes"}},
		"it works":   {trial.Verdict{Works: true}, false, 0, trial.Verdict{Works: true}},
	} {
		t.Run(name, func(t *testing.T) {
			try := &trial.Trial{Applied: metav1.NewTime(now)}
			if tc.partly {
				try.Applied = metav1.Time{}
			}
			if got := inTime(tc.verdict, try, now.Add(-tc.checked), now); got != tc.want {
				t.Errorf("inTime() = %+v, want %+v", got, tc.want)
			}
		})
	}
}
