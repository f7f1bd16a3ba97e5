package trial

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The ten minutes of a trial begin again when it was not checked, as the Shoot was being reconciled or the process that checks it was down.
func TestChecksSince(t *testing.T) {
	key, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	at := func(minutes int) time.Time { return time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute) }
	checks := &Checks{}
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
		if got := checks.Since(tc.key, at(tc.now)); !got.Equal(at(tc.want)) {
			t.Errorf("Since(%s) after %d minutes = %s, want %s", tc.key.Name, tc.now, got, at(tc.want))
		}
	}
	checks.Forget(key)
	if got := checks.Since(key, at(13)); !got.Equal(at(13)) {
		t.Errorf("Since() of another gardenlet of the name = %s, want %s", got, at(13))
	}
}

func TestChecked(t *testing.T) {
	now := time.Unix(0, 0).Add(time.Hour)
	late := Verdict{Failed: "it does not work after 10m0s", Late: true}
	for name, tc := range map[string]struct {
		verdict Verdict
		checked time.Duration
		want    Verdict
	}{
		"late":                               {late, 10 * time.Minute, late},
		"late, but not checked for the time": {late, 9 * time.Minute, Verdict{RecheckIn: SteadyTime}},
		"not late yet":                       {Verdict{RecheckIn: 9 * time.Minute}, time.Minute, Verdict{RecheckIn: SteadyTime}},
		"steady for most of the time":        {Verdict{RecheckIn: time.Second}, time.Minute, Verdict{RecheckIn: time.Second}},
		"it crashes":                         {Verdict{Failed: "it crashes"}, 0, Verdict{Failed: "it crashes"}},
		"it works":                           {Verdict{Works: true}, 0, Verdict{Works: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.verdict.Checked(now.Add(-tc.checked), now); got != tc.want {
				t.Errorf("Checked() = %+v, want %+v", got, tc.want)
			}
		})
	}
}
