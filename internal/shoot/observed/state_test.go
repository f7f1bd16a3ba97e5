package observed_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/dns"
)

// Extensions for networks look for the address with the name external, whoever manages the records of the domain.
func TestAdvertisedAddresses(t *testing.T) {
	const external, internal = "external https://api.b.example.com", "internal https://api.b.internal.example.com"
	for name, tc := range map[string]struct {
		external *dns.Domain
		want     []string
	}{
		"a domain":                 {external: &dns.Domain{Name: "b.example.com", Provider: "local"}, want: []string{external, internal}},
		"records of the owner":     {external: &dns.Domain{Name: "b.example.com", Provider: "unmanaged"}, want: []string{internal, external}},
		"only the internal domain": {want: []string{internal}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Internal, o.External = &dns.Domain{Name: "b.internal.example.com", Provider: "local"}, tc.external
			var got []string
			for _, address := range o.AdvertisedAddresses() {
				if address.Name != "service-account-issuer" {
					got = append(got, address.Name+" "+address.URL)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("AdvertisedAddresses() (-want +got):\n%s", diff)
			}
		})
	}
}

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

// The main and the events etcd are defragmented in the maintenance time window, but not at the same time.
func TestDefragmentationSchedule(t *testing.T) {
	o := observedtest.State()
	o.Shoot.UID = "8a5a4c9c-6a0f-4dbb-bb3f-6ce5e3a3b7d1"
	o.Shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}}
	main, events := o.DefragmentationSchedule("main"), o.DefragmentationSchedule("events")
	for _, schedule := range []string{main, events} {
		if !strings.HasSuffix(schedule, " 21 */3 * *") {
			t.Errorf("schedule is %q, want it to be every third day between 21:00 and 22:00 UTC", schedule)
		}
	}
	if main == events || main != o.DefragmentationSchedule("main") {
		t.Errorf("schedules are %q and %q, want stable and different ones", main, events)
	}
}
