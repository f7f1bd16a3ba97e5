package stale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	day := Days(1)
	ago := func(days int) *metav1.Time { return new(metav1.NewTime(now.Add(-Days(days)))) }
	in := func(days int) *metav1.Time { return ago(-days) }
	settings := Values{SyncPeriod: day / 2, MinimumLifetime: Days(30), GracePeriod: Days(14), Expiration: Days(90)}
	for name, tc := range map[string]struct {
		used                         bool
		created                      int
		activity, since, autoDeleted *metav1.Time
		settings                     func(*Values)
		want                         verdict
	}{
		"in use":                            {used: true, created: 200, want: verdict{recheckIn: day / 2}},
		"in use again":                      {used: true, created: 200, since: ago(80), autoDeleted: in(10), want: verdict{recheckIn: day / 2}},
		"young":                             {created: 10, want: verdict{recheckIn: day / 2}},
		"soon not young any more":           {created: 29, settings: func(v *Values) { v.SyncPeriod = Days(2) }, want: verdict{recheckIn: day}},
		"active not long ago":               {created: 200, activity: ago(29), since: ago(40), want: verdict{recheckIn: day / 2}},
		"found to be stale":                 {created: 30, want: verdict{since: ago(0), recheckIn: day / 2}},
		"active long ago":                   {created: 200, activity: ago(30), want: verdict{since: ago(0), recheckIn: day / 2}},
		"stale, in the grace period":        {created: 200, since: ago(13), want: verdict{since: ago(13), recheckIn: day / 2}},
		"stale, gets a date":                {created: 200, since: ago(14), want: verdict{since: ago(14), autoDelete: in(76), recheckIn: day / 2}},
		"stale, with a date":                {created: 200, since: ago(20), autoDeleted: in(70), want: verdict{since: ago(20), autoDelete: in(70), recheckIn: day / 2}},
		"a longer time moves the date":      {created: 200, since: ago(20), autoDeleted: in(1), want: verdict{since: ago(20), autoDelete: in(70), recheckIn: day / 2}},
		"a shorter time does not":           {created: 200, since: ago(20), autoDeleted: in(75), want: verdict{since: ago(20), autoDelete: in(75), recheckIn: day / 2}},
		"a longer grace period removes it":  {created: 200, since: ago(13), autoDeleted: in(77), want: verdict{since: ago(13), recheckIn: day / 2}},
		"due":                               {created: 200, since: ago(90), autoDeleted: ago(0), want: verdict{since: ago(90), autoDelete: ago(0), remove: true, recheckIn: day / 2}},
		"due, but never announced":          {created: 200, since: ago(100), want: verdict{since: ago(100), autoDelete: ago(10), recheckIn: day / 2}},
		"due sooner than the next check is": {created: 200, since: ago(89), autoDeleted: in(1), settings: func(v *Values) { v.SyncPeriod = Days(9) }, want: verdict{since: ago(89), autoDelete: in(1), recheckIn: day}},
	} {
		t.Run(name, func(t *testing.T) {
			v := settings
			if tc.settings != nil {
				tc.settings(&v)
			}
			project := &corev1beta1.Project{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *ago(tc.created)},
				Status:     corev1beta1.ProjectStatus{LastActivityTimestamp: tc.activity, StaleSinceTimestamp: tc.since, StaleAutoDeleteTimestamp: tc.autoDeleted},
			}
			if diff := cmp.Diff(tc.want, decide(project, tc.used, now, v), cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}
