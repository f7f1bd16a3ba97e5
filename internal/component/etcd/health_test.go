package etcd

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// An etcd whose backups fail is not healthy, even if it serves its clients.
func TestHealthy(t *testing.T) {
	etcd := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "etcd-main"}, Status: druidv1alpha1.EtcdStatus{
		Ready:      new(true),
		Conditions: []druidv1alpha1.Condition{{Type: druidv1alpha1.ConditionTypeBackupReady, Status: druidv1alpha1.ConditionUnknown}},
	}}
	if err := Healthy(etcd); err != nil {
		t.Errorf("before the first backup: %v", err)
	}
	etcd.Status.Conditions[0].Status, etcd.Status.Conditions[0].Message = druidv1alpha1.ConditionFalse, "No delta snapshot since noon"
	const want = `Etcd "etcd-main": backups: No delta snapshot since noon`
	if err := Healthy(etcd); err == nil || err.Error() != want {
		t.Errorf("Healthy() = %v, want %s", err, want)
	}
}
