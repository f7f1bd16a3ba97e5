package etcd

import (
	"fmt"

	"k8s.io/utils/ptr"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// Healthy returns why an Etcd is not healthy, or nil if it is. One without backups is not, even if it serves its clients.
func Healthy(etcd *druidv1alpha1.Etcd) error {
	if !ptr.Deref(etcd.Status.Ready, false) {
		return fmt.Errorf("Etcd %q: %d of %d members are ready", etcd.Name, etcd.Status.ReadyReplicas, etcd.Spec.Replicas)
	}
	for _, c := range etcd.Status.Conditions {
		if c.Type == druidv1alpha1.ConditionTypeBackupReady && c.Status == druidv1alpha1.ConditionFalse {
			return fmt.Errorf("Etcd %q: backups: %s", etcd.Name, c.Message)
		}
	}
	return nil
}
