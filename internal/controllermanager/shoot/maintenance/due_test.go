package maintenance

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDue(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse("02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.AddDate(2026, 10, 0)
	}
	for name, tc := range map[string]struct {
		now, started, created, last string
		from, to                    string
	}{
		"before the window":                   {now: "21 20:00", from: "21 22:00", to: "21 23:48"},
		"in the window":                       {now: "21 23:59", from: "21 22:00", to: "21 23:48"},
		"after the window":                    {now: "22 00:00", from: "22 22:00", to: "22 23:48"},
		"done in this window":                 {now: "21 23:00", last: "21 22:00", from: "22 22:00", to: "22 23:48"},
		"done in the last one":                {now: "21 22:30", last: "20 23:00", from: "21 22:00", to: "21 23:48"},
		"done by hand before this window":     {now: "21 22:30", last: "21 21:59", from: "21 22:00", to: "21 23:48"},
		"the controller started late":         {now: "21 23:10", started: "21 23:00", from: "21 23:00", to: "21 23:54"},
		"the Shoot was created in the window": {now: "21 23:10", created: "21 23:00", from: "21 23:00", to: "21 23:54"},
		"started late, but done before that":  {now: "21 23:10", started: "21 23:00", last: "21 22:50", from: "22 22:00", to: "22 23:48"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[time.Time]bool{}
			for i := range 100 {
				shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}
				shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "000000+0000"}}
				var started time.Time
				if tc.started != "" {
					started = at(tc.started)
				}
				if tc.created != "" {
					shoot.CreationTimestamp = metav1.NewTime(at(tc.created))
				}
				if tc.last != "" {
					shoot.Status.LastMaintenance = &corev1beta1.LastMaintenance{TriggeredTime: metav1.NewTime(at(tc.last))}
				}
				got, err := due(shoot, started, at(tc.now))
				if err != nil || got.Before(at(tc.from)) || got.After(at(tc.to)) {
					t.Fatalf("due() is %s, %v; want it from %s to %s", got, err, tc.from, tc.to)
				}
				if again, _ := due(shoot, started, at(tc.now)); !again.Equal(got) {
					t.Fatalf("due() is %s at first, then %s", got, again)
				}
				seen[got] = true
			}
			if len(seen) < 90 {
				t.Errorf("100 Shoots are due at %d times", len(seen))
			}
		})
	}
	if got, err := due(&corev1beta1.Shoot{}, now, now); err != nil || !got.IsZero() {
		t.Errorf("due() without a window is %s, %v", got, err)
	}
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Maintenance: &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "noon"}}}}
	if _, err := due(shoot, now, now); err == nil {
		t.Error("an invalid begin is accepted")
	}
}
