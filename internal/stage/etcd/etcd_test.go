package etcd

import (
	"testing"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// An etcd serves its clients while its members are replaced, one after the other. A change is done when all of them have it.
func TestHealthy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*druidv1alpha1.EtcdStatus)
		want   string
		// serves is whether it serves its clients.
		serves bool
	}{
		"ready":                      {change: func(*druidv1alpha1.EtcdStatus) {}, serves: true},
		"an older etcd-druid":        {change: func(s *druidv1alpha1.EtcdStatus) { s.Conditions = nil }, serves: true},
		"the change is not observed": {change: func(s *druidv1alpha1.EtcdStatus) { *s.ObservedGeneration-- }, want: `Etcd "etcd-main": etcd-druid has not observed its last change`},
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
			if err := Healthy(etcd); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Healthy() = %q, want %q", got, tc.want)
			}
			if err := Serves(etcd); (err == nil) != tc.serves {
				t.Errorf("Serves() = %v", err)
			}
		})
	}
}
