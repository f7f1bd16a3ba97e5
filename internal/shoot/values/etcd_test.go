package values

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// etcdSource returns the source for an etcd of a shoot with backups.
func etcdSource(t *testing.T) Source {
	t.Helper()
	set := credentials.New(credentials.Values{SeedAPI: fake.NewFakeClient(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)})
	stagetest.Generate(t, set)
	return Source{State: observedtest.State(), Credentials: set}
}

// Both etcds are defragmented, with backups and without.
func TestEtcdIsDefragmented(t *testing.T) {
	for _, backup := range []bool{true, false} {
		s := etcdSource(t)
		if !backup {
			s.Seed.Spec.Backup = nil
		}
		for _, role := range []etcd.Role{etcd.Main, etcd.Events} {
			v, err := s.Etcd(role, 1)
			if got, want := v.DefragmentationSchedule, s.DefragmentationSchedule(string(role)); got != want || err != nil {
				t.Errorf("etcd %s with backup=%v: schedule is %q, want %q (%v)", role, backup, got, want, err)
			}
		}
	}
}

// The gardenlet's configuration of backups is for the etcd that has them.
func TestEtcdBackupSettings(t *testing.T) {
	s := etcdSource(t)
	seconds := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Second} }
	s.ETCD = &gardenletconfigv1alpha1.ETCDConfig{
		DeltaSnapshotRetentionPeriod: seconds(1),
		BackupLeaderElection:         &gardenletconfigv1alpha1.ETCDBackupLeaderElection{ReelectionPeriod: seconds(2), ETCDConnectionTimeout: seconds(3)},
	}
	v, err := s.Etcd(etcd.Main, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := v.Backup
	if diff := cmp.Diff([]*metav1.Duration{seconds(1), seconds(2), seconds(3)}, []*metav1.Duration{
		b.DeltaSnapshotRetentionPeriod, b.ReelectionPeriod, b.ConnectionTimeout,
	}); diff != "" {
		t.Errorf("Backup (-want +got):\n%s", diff)
	}
}

// The seed decides on the volumes of new etcds.
func TestEtcdVolumes(t *testing.T) {
	s := etcdSource(t)
	s.Seed.Spec.Volume = &corev1beta1.SeedVolume{
		MinimumSize: new(resource.MustParse("25Gi")), Providers: []corev1beta1.SeedVolumeProvider{{Purpose: "etcd-main", Name: "fast"}},
	}
	for role, class := range map[etcd.Role]string{etcd.Main: "fast", etcd.Events: ""} {
		v, err := s.Etcd(role, 1)
		if err != nil {
			t.Fatal(err)
		}
		if v.MinimumStorage == nil || v.MinimumStorage.String() != "25Gi" || v.StorageClass != class {
			t.Errorf("etcd %s has volumes of at least %v of class %q", role, v.MinimumStorage, v.StorageClass)
		}
	}
}
