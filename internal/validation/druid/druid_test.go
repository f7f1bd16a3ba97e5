package druid_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/validation/druid"
)

func paths(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Field)
	}
	return out
}

func etcd(changes ...func(*druidv1alpha1.EtcdSpec)) *druidv1alpha1.Etcd {
	out := &druidv1alpha1.Etcd{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd-main", Namespace: "shoot--foo--bar", ResourceVersion: "1"},
		Spec: druidv1alpha1.EtcdSpec{
			Replicas: 3, Labels: map[string]string{"role": "main"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "main"}},
			StorageClass: new("fast"),
			Backup:       druidv1alpha1.BackupSpec{Store: &druidv1alpha1.StoreSpec{Prefix: "shoot--foo--bar/etcd-main"}},
		},
	}
	for _, change := range changes {
		change(&out.Spec)
	}
	return out
}

func TestEtcd(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*druidv1alpha1.EtcdSpec)
		want   []string
	}{
		"valid":   {change: func(*druidv1alpha1.EtcdSpec) {}},
		"stopped": {change: func(s *druidv1alpha1.EtcdSpec) { s.Replicas = 0 }},
		"even":    {change: func(s *druidv1alpha1.EtcdSpec) { s.Replicas = 4 }, want: []string{"spec.replicas"}},
		"even, but managed by others": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.Replicas, s.ExternallyManagedMemberAddresses = 2, []string{"a", "b"}
		}},
		"bad members": {
			change: func(s *druidv1alpha1.EtcdSpec) { s.ExternallyManagedMemberAddresses = []string{"a", "a", ""} },
			want:   []string{"spec.externallyManagedMemberAddresses[1]", "spec.externallyManagedMemberAddresses[2]"},
		},
		"selector does not match": {change: func(s *druidv1alpha1.EtcdSpec) { s.Labels = nil }, want: []string{"spec.selector"}},
		"ports": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.Etcd.ClientPort, s.Etcd.ServerPort, s.Etcd.WrapperPort, s.Backup.Port = new(int32(2379)), new(int32(2379)), new(int32(0)), new(int32(70000))
		}, want: []string{"spec.etcd.serverPort", "spec.etcd.wrapperPort", "spec.backup.port"}},
		"quantities": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.Etcd.Quota, s.StorageCapacity = new(resource.MustParse("0")), new(resource.MustParse("-1Gi"))
		}, want: []string{"spec.etcd.quota", "spec.storageCapacity"}},
		"TLS without Secrets": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.Etcd.PeerURLTLS, s.Backup.TLS = &druidv1alpha1.PeerTLSConfig{}, &druidv1alpha1.TLSConfig{}
		}, want: []string{
			"spec.etcd.peerUrlTls.tlsCASecretRef.name", "spec.etcd.peerUrlTls.serverTLSSecretRef.name",
			"spec.backup.tls.tlsCASecretRef.name", "spec.backup.tls.serverTLSSecretRef.name",
		}},
		"backups": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.Backup.DeltaSnapshotPeriod, s.Backup.GarbageCollectionPeriod = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Minute}
			s.Backup.MaxBackupsLimitBasedGC = new(int32(0))
			s.Backup.Store.Prefix = "etcd-events"
		}, want: []string{"spec.backup.garbageCollectionPeriod", "spec.backup.maxBackupsLimitBasedGC", "spec.backup.store.prefix"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, paths(druid.ValidateEtcd(etcd(tc.change)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEtcdUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*druidv1alpha1.EtcdSpec)
		want   []string
	}{
		"no change": {change: func(*druidv1alpha1.EtcdSpec) {}},
		"stop":      {change: func(s *druidv1alpha1.EtcdSpec) { s.Replicas = 0 }},
		"grow":      {change: func(s *druidv1alpha1.EtcdSpec) { s.Replicas = 5 }},
		"shrink":    {change: func(s *druidv1alpha1.EtcdSpec) { s.Replicas = 1 }, want: []string{"spec.replicas"}},
		"immutable fields": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.StorageClass, s.VolumeClaimTemplate, s.MemberNamePrefix, s.Backup.Store.Prefix = nil, new("x"), new("y"), "etcd-main-2"
		}, want: []string{"spec.memberNamePrefix", "spec.storageClass", "spec.volumeClaimTemplate", "spec.backup.store.prefix"}},
		"join another cluster": {change: func(s *druidv1alpha1.EtcdSpec) {
			s.Etcd.BootstrapWithExistingCluster = &druidv1alpha1.BootstrapWithExistingClusterSpec{}
		}, want: []string{"spec.etcd.bootstrapWithExistingCluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, paths(druid.ValidateEtcdUpdate(etcd(tc.change), etcd()))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	deleting := etcd(func(s *druidv1alpha1.EtcdSpec) { s.Replicas = 5 })
	deleting.DeletionTimestamp = new(metav1.Now())
	if diff := cmp.Diff([]string{"spec"}, paths(druid.ValidateEtcdUpdate(deleting, etcd()))); diff != "" {
		t.Errorf("while it is being deleted (-want +got):\n%s", diff)
	}
}

func TestTasks(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "1"}
	backups := &druidv1alpha1.EtcdCopyBackupsTask{ObjectMeta: meta, Spec: druidv1alpha1.EtcdCopyBackupsTaskSpec{
		SourceStore: druidv1alpha1.StoreSpec{Prefix: "a"}, MaxBackups: new(int32(-1)),
		WaitForFinalSnapshot: &druidv1alpha1.WaitForFinalSnapshotSpec{Timeout: &metav1.Duration{Duration: -1}},
	}}
	want := []string{"spec.targetStore.prefix", "spec.maxBackups", "spec.waitForFinalSnapshot.timeout"}
	if diff := cmp.Diff(want, paths(druid.ValidateEtcdCopyBackupsTask(backups))); diff != "" {
		t.Errorf("EtcdCopyBackupsTask (-want +got):\n%s", diff)
	}

	task := &druidv1alpha1.EtcdOpsTask{ObjectMeta: meta}
	if diff := cmp.Diff([]string{"spec.config"}, paths(druid.ValidateEtcdOpsTask(task))); diff != "" {
		t.Errorf("no operation (-want +got):\n%s", diff)
	}
	task.Spec.Config.OnDemandSnapshot = &druidv1alpha1.OnDemandSnapshotConfig{Type: "delta", IsFinal: new(true)}
	if diff := cmp.Diff([]string{"spec.config.onDemandSnapshot.isFinal", "spec.etcdName"}, paths(druid.ValidateEtcdOpsTask(task))); diff != "" {
		t.Errorf("final delta snapshot (-want +got):\n%s", diff)
	}
	changed := task.DeepCopy()
	changed.Spec.EtcdName = new("etcd-main")
	if diff := cmp.Diff([]string{"spec"}, paths(druid.ValidateEtcdOpsTaskUpdate(changed, task))); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}
