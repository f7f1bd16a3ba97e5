package dns

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// A DNSRecord that has not changed is reconciled if a task of the Shoot requests it, and only that one.
func TestRecordsAreReconciledWhenNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Inputs)
		want   map[string]bool
	}{
		"nothing has changed":           {func(*Inputs) {}, map[string]bool{"internal": false, "external": false}},
		"the internal one is requested": {func(in *Inputs) { in.InternalRequested = true }, map[string]bool{"internal": true, "external": false}},
		"the external one is requested": {func(in *Inputs) { in.ExternalRequested = true }, map[string]bool{"internal": false, "external": true}},
		"the TTL has changed":           {func(in *Inputs) { in.TTL = new(int64(60)) }, map[string]bool{"internal": true, "external": true}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := Inputs{Run: clusters.Run(), Internal: &Domain{Name: "i.example.com", Provider: "local"}, External: &Domain{Name: "e.example.com", Provider: "local"}}
			before := map[string]string{}
			for record := range tc.want { // the fake of an API server sets no UID
				obj := in.Run.DNSRecord(record)
				obj.UID = "1"
				if err := clusters.Seed.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			reconcile := func(record string) string {
				t.Helper()
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "dnsrecord-"+record); err != nil {
					t.Fatal(err)
				}
				obj := in.Run.DNSRecord(record)
				if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
					t.Fatal(err)
				}
				return obj.Annotations[constants.GardenerTimestamp]
			}
			for record := range tc.want {
				before[record] = reconcile(record)
			}
			tc.change(&in)
			got := map[string]bool{}
			for record := range tc.want {
				got[record] = reconcile(record) != before[record]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reconciled records (-want +got):\n%s", diff)
			}
		})
	}
}

// Records of a hibernated cluster are deleted, also that of a domain which it no longer has, and if there are none.
func TestDeletion(t *testing.T) {
	clusters := stagetest.New(t)
	run := clusters.Run()
	external := run.DNSRecord("external")
	if err := clusters.Seed.Create(t.Context(), external); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"dnsrecord-external-gone", "dnsrecord-internal-gone"} {
		if err := stagetest.RunTask(t.Context(), t, Deletion(run), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(external), external); !apierrors.IsNotFound(err) {
		t.Errorf("the external DNSRecord still exists (%v)", err)
	}
}
