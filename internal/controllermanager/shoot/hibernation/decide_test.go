package hibernation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDecide(t *testing.T) {
	// A Saturday in winter.
	at := func(clock string) time.Time {
		parsed, err := time.Parse(time.RFC3339, "2026-11-21T"+clock+":00Z")
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	day := 24 * time.Hour
	nightly := []corev1beta1.HibernationSchedule{{Start: new("00 20 * * *"), End: new("00 06 * * *")}}
	for name, tc := range map[string]struct {
		schedules []corev1beta1.HibernationSchedule
		now       time.Time
		executed  *time.Time
		created   time.Time
		want      verdict
		wantErr   bool
	}{
		"before the start":               {schedules: nightly, now: at("19:59"), want: verdict{next: at("20:00")}},
		"at the start":                   {schedules: nightly, now: at("20:00"), want: verdict{due: true, hibernate: true, next: at("06:00").Add(day)}},
		"executed already":               {schedules: nightly, now: at("20:01"), executed: new(at("20:00")), want: verdict{next: at("06:00").Add(day)}},
		"an hour late":                   {schedules: nightly, now: at("21:00"), executed: new(at("06:00")), want: verdict{due: true, hibernate: true, next: at("06:00").Add(day)}},
		"too late":                       {schedules: nightly, now: at("22:01"), executed: new(at("06:00")), want: verdict{next: at("06:00").Add(day)}},
		"after the end":                  {schedules: nightly, now: at("06:30"), want: verdict{due: true, next: at("20:00")}},
		"created after the start":        {schedules: nightly, now: at("20:30"), created: at("20:10"), want: verdict{next: at("06:00").Add(day)}},
		"both missed: the last counts":   {schedules: []corev1beta1.HibernationSchedule{{Start: new("00 20 * * *"), End: new("00 21 * * *")}}, now: at("21:30"), want: verdict{due: true, next: at("20:00").Add(day)}},
		"both at once: it wakes up":      {schedules: []corev1beta1.HibernationSchedule{{Start: new("00 20 * * *"), End: new("0 20 * * *")}}, now: at("20:00"), want: verdict{due: true, next: at("20:00").Add(day)}},
		"in another time zone":           {schedules: []corev1beta1.HibernationSchedule{{Start: new("00 20 * * *"), Location: new("Europe/Berlin")}}, now: at("19:00"), want: verdict{due: true, hibernate: true, next: at("19:00").Add(day)}},
		"never, as there is no such day": {schedules: []corev1beta1.HibernationSchedule{{Start: new("0 0 30 2 *")}}, now: at("19:00")},
		"of two schedules the earlier trigger is next": {
			schedules: append([]corev1beta1.HibernationSchedule{{Start: new("00 23 * * *")}}, nightly...), now: at("19:00"), want: verdict{next: at("20:00")},
		},
		"an invalid schedule does not affect the others": {
			schedules: append([]corev1beta1.HibernationSchedule{{Start: new("whenever")}, {Start: new("0 1 * * *"), Location: new("Nowhere")}}, nightly...),
			now:       at("20:00"), want: verdict{due: true, hibernate: true, next: at("06:00").Add(day)}, wantErr: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Hibernation: &corev1beta1.Hibernation{Schedules: tc.schedules}}}
			shoot.CreationTimestamp = metav1.NewTime(tc.created)
			if tc.executed != nil {
				shoot.Status.LastHibernationTriggerTime = new(metav1.NewTime(*tc.executed))
			}
			got, err := decide(shoot, tc.now, 2*time.Hour)
			got.next = got.next.UTC()
			if tc.want.next.IsZero() {
				got.next = tc.want.next
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(verdict{})); diff != "" || (err != nil) != tc.wantErr {
				t.Errorf("decide(), error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
