package event

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAboutShoot(t *testing.T) {
	for regarding, want := range map[corev1.ObjectReference]bool{
		{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot"}: true,
		{APIVersion: "core.gardener.cloud/v1", Kind: "Shoot"}:      true,
		{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Seed"}:  false,
		{APIVersion: "example.com/v1", Kind: "Shoot"}:              false,
		{APIVersion: "v1", Kind: "Pod"}:                            false,
	} {
		if got := aboutShoot(&eventsv1.Event{Regarding: regarding}); got != want {
			t.Errorf("aboutShoot(%s %s) = %t, want %t", regarding.APIVersion, regarding.Kind, got, want)
		}
	}
}

func TestLastObserved(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	created := metav1.ObjectMeta{CreationTimestamp: at(10)}
	for name, tc := range map[string]struct {
		event eventsv1.Event
		want  int64
	}{
		"only the creation":  {event: eventsv1.Event{ObjectMeta: created}, want: 10},
		"an old client":      {event: eventsv1.Event{ObjectMeta: created, DeprecatedFirstTimestamp: at(11), DeprecatedLastTimestamp: at(20)}, want: 20},
		"a new client, once": {event: eventsv1.Event{ObjectMeta: created, EventTime: metav1.NewMicroTime(at(12).Time)}, want: 12},
		"a new client, a series": {event: eventsv1.Event{
			ObjectMeta: created, EventTime: metav1.NewMicroTime(at(12).Time), Series: &eventsv1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(30).Time)},
		}, want: 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastObserved(&tc.event); !got.Equal(time.Unix(tc.want, 0)) {
				t.Errorf("lastObserved() = %s, want %s", got, time.Unix(tc.want, 0))
			}
		})
	}
}
