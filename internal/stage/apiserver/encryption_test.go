package apiserver

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/internal/stage/stagetest"
)

// As long as a restore would bring back what only the old key can read, it is needed.
func TestOldKeyIsKeptUntilThereIsABackup(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		component string
		renewed   *time.Time
		want      bool
	}{
		"no backup":                  {component: "etcd-snapshot-lease"},
		"a backup of before":         {component: "etcd-snapshot-lease", renewed: new(noon.Add(-time.Second))},
		"a backup":                   {component: "etcd-snapshot-lease", renewed: new(noon.Add(time.Second)), want: true},
		"only the Lease of a member": {component: "etcd-member-lease", renewed: new(noon.Add(time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: stagetest.Namespace, Name: "some",
				Labels: map[string]string{"app.kubernetes.io/part-of": "etcd-main", "app.kubernetes.io/component": tc.component},
			}}
			if tc.renewed != nil {
				lease.Spec.RenewTime = &metav1.MicroTime{Time: *tc.renewed}
			}
			if err := clusters.Seed.Create(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			in := Inputs{Run: clusters.Run(), Encryption: Encryption{BackupSince: new(metav1.NewTime(noon))}}
			if err := stagetest.UntilIdle(t, in.awaitBackup); (err == nil) != tc.want {
				t.Errorf("awaitBackup() is %v", err)
			}
		})
	}
}
