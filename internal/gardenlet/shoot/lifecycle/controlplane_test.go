package lifecycle

import (
	"testing"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// An etcd serves its clients while its members are replaced, one after the other. Who waits for a change waits for the last of them.
func TestEtcdHealthy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*druidv1alpha1.EtcdStatus)
		want   string
		// serves is whether clients do not notice.
		serves bool
	}{
		"ready":                       {change: func(*druidv1alpha1.EtcdStatus) {}, serves: true},
		"etcd-druid does not say all": {change: func(s *druidv1alpha1.EtcdStatus) { s.Conditions = nil }, serves: true},
		"the change is not seen":      {change: func(s *druidv1alpha1.EtcdStatus) { *s.ObservedGeneration-- }, want: `Etcd "etcd-main": etcd-druid has not seen its last change`},
		"in error": {change: func(s *druidv1alpha1.EtcdStatus) {
			s.LastErrors = []druidv1alpha1.LastError{{Description: "x"}}
		}, want: `Etcd "etcd-main": x`},
		"not ready": {change: func(s *druidv1alpha1.EtcdStatus) { s.Ready = new(false) }, want: `Etcd "etcd-main": 2 of 3 members are ready`},
		"not updated": {change: func(s *druidv1alpha1.EtcdStatus) {
			s.Conditions[0].Status, s.Conditions[0].Message = druidv1alpha1.ConditionFalse, "1 of 3 pods are updated"
		}, want: `Etcd "etcd-main": 1 of 3 pods are updated`, serves: true},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := &druidv1alpha1.Etcd{}
			etcd.Name, etcd.Generation, etcd.Spec.Replicas = "etcd-main", 2, 3
			etcd.Status = druidv1alpha1.EtcdStatus{
				ObservedGeneration: new(int64(2)), Ready: new(true), ReadyReplicas: 2,
				Conditions: []druidv1alpha1.Condition{{Type: druidv1alpha1.ConditionTypeAllMembersUpdated, Status: druidv1alpha1.ConditionTrue}},
			}
			tc.change(&etcd.Status)
			got := ""
			if err := etcdHealthy(etcd); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("etcdHealthy() = %q, want %q", got, tc.want)
			}
			if err := etcdServes(etcd); (err == nil) != tc.serves {
				t.Errorf("etcdServes() = %v", err)
			}
		})
	}
}
