package quota

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func TestExpires(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, want string
		days             int32
	}{
		"no lifetime":           {},
		"no lifetime any more":  {annotation: "2026-11-22T12:00:00Z"},
		"after its lifetime":    {days: 3, want: "2026-11-24T12:00:00Z"},
		"prolonged":             {days: 3, annotation: "2026-11-26T12:00:00Z", want: "2026-11-26T12:00:00Z"},
		"shortened":             {days: 3, annotation: "2026-11-22T12:00:00+01:00", want: "2026-11-22T11:00:00Z"},
		"an invalid annotation": {days: 3, annotation: "tomorrow", want: "2026-11-24T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
				CreationTimestamp: metav1.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
				Annotations:       map[string]string{constants.ShootExpirationTimestamp: tc.annotation},
			}}
			got := ""
			if at := expires(shoot, tc.days); !at.IsZero() {
				got = at.UTC().Format(time.RFC3339)
			}
			if got != tc.want {
				t.Errorf("expires() = %q, want %q", got, tc.want)
			}
		})
	}
}
