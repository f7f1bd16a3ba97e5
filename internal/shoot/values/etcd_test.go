package values

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
