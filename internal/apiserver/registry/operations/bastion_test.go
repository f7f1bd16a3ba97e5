package operations

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

func keepalive() map[string]string {
	return map[string]string{constants.GardenerOperation: constants.GardenerOperationKeepalive}
}

// A Bastion expires an hour after its creation, or after its last heartbeat.
func TestHeartbeat(t *testing.T) {
	s := bastion().Strategies(runtime.NewScheme())
	created := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Annotations: keepalive()}, Status: operationsv1alpha1.BastionStatus{ObservedGeneration: new(int64(7))},
	}
	s.Create.PrepareForCreate(t.Context(), created)
	s.Create.Canonicalize(created)
	first := created.Status.ExpirationTimestamp
	if first == nil || len(created.Annotations) != 0 || first.Sub(created.Status.LastHeartbeatTimestamp.Time) != time.Hour ||
		created.Status.ObservedGeneration != nil {
		t.Fatalf("new bastion is %+v", created)
	}
	old := created.DeepCopy()
	old.Status.LastHeartbeatTimestamp, old.Status.ExpirationTimestamp = new(metav1.NewTime(time.Unix(0, 0))), new(metav1.NewTime(time.Unix(3600, 0)))
	same := old.DeepCopy()
	s.Update.PrepareForUpdate(t.Context(), same, old)
	if diff := cmp.Diff(old, same); diff != "" {
		t.Errorf("an update without a heartbeat changes (-old +new):\n%s", diff)
	}
	alive := old.DeepCopy()
	alive.Annotations = keepalive()
	s.Update.PrepareForUpdate(t.Context(), alive, old)
	s.Create.Canonicalize(alive)
	if alive.Status.ExpirationTimestamp.Before(first) || len(alive.Annotations) != 0 || alive.Generation != old.Generation {
		t.Errorf("after a heartbeat: %+v", alive)
	}
}
