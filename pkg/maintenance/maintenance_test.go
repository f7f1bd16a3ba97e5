package maintenance

import (
	"testing"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestNext(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse("2006-01-02 15:04 -0700", text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, tc := range map[string]struct {
		begin, end, now    string
		wantBegin, wantEnd string
	}{
		"later today":              {"220000+0100", "230000+0100", "2026-11-21 12:00 +0000", "2026-11-21 22:00 +0100", "2026-11-21 23:00 +0100"},
		"open":                     {"220000+0100", "230000+0100", "2026-11-21 21:30 +0000", "2026-11-21 22:00 +0100", "2026-11-21 23:00 +0100"},
		"just over":                {"220000+0100", "230000+0100", "2026-11-21 22:00 +0000", "2026-11-22 22:00 +0100", "2026-11-22 23:00 +0100"},
		"over midnight, open":      {"233000+0000", "013000+0000", "2026-11-21 00:30 +0000", "2026-11-20 23:30 +0000", "2026-11-21 01:30 +0000"},
		"over midnight, not open":  {"233000+0000", "013000+0000", "2026-11-21 02:30 +0000", "2026-11-21 23:30 +0000", "2026-11-22 01:30 +0000"},
		"tomorrow in another zone": {"010000+1400", "020000+1400", "2026-11-21 12:00 +0000", "2026-11-23 01:00 +1400", "2026-11-23 02:00 +1400"},
		"in two zones":             {"220000+0100", "230000+0000", "2026-11-21 12:00 +0000", "2026-11-21 22:00 +0100", "2026-11-22 00:00 +0100"},
	} {
		t.Run(name, func(t *testing.T) {
			begin, end, err := Next(corev1beta1.MaintenanceTimeWindow{Begin: tc.begin, End: tc.end}, at(tc.now))
			if err != nil || !begin.Equal(at(tc.wantBegin)) || !end.Equal(at(tc.wantEnd)) {
				t.Errorf("Next() is %s, %s, %v", begin, end, err)
			}
		})
	}
	if _, _, err := Next(corev1beta1.MaintenanceTimeWindow{Begin: "noon", End: "230000+0000"}, at("2026-11-21 12:00 +0000")); err == nil {
		t.Error("an invalid begin is accepted")
	}
}
