package operations

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/operations"
)

func bastion() *kind.Kind[operationsv1alpha1.Bastion] {
	return &kind.Kind[operationsv1alpha1.Bastion]{
		GroupVersionKind: gvk("Bastion"),
		Plural:           "bastions",
		Categories:       []string{"all"},
		Namespaced:       true,
		HasStatus:        true,
		HasGeneration:    true,

		PrepareForCreate: func(b *operationsv1alpha1.Bastion) { heartbeat(b, time.Now()) },
		PrepareForUpdate: func(b, _ *operationsv1alpha1.Bastion) {
			if b.Annotations[constants.GardenerOperation] == constants.GardenerOperationKeepalive {
				heartbeat(b, time.Now())
			}
		},
		Canonicalize: func(b *operationsv1alpha1.Bastion) {
			if last := b.Status.LastHeartbeatTimestamp; last != nil {
				b.Status.ExpirationTimestamp = &metav1.Time{Time: last.Add(lifetime)}
			}
		},
		Validate:       operations.ValidateBastion,
		ValidateUpdate: operations.ValidateBastionUpdate,
		Fields: map[string]func(*operationsv1alpha1.Bastion) string{
			"spec.seedName":      func(b *operationsv1alpha1.Bastion) string { return ptr.Deref(b.Spec.SeedName, "") },
			"spec.shootRef.name": func(b *operationsv1alpha1.Bastion) string { return b.Spec.ShootRef.Name },
		},
		IndexedFields: []string{"spec.seedName"},
		WatchedField:  "spec.seedName",
		Columns: []kind.Column[operationsv1alpha1.Bastion]{
			{
				Name: "Shoot", Description: "Shoot that it belongs to.",
				Value: func(b *operationsv1alpha1.Bastion) any { return b.Spec.ShootRef.Name },
			},
			{
				Name: "Seed", Description: "Seed that is responsible.",
				Value: func(b *operationsv1alpha1.Bastion) any { return cmp.Or(ptr.Deref(b.Spec.SeedName, ""), kind.Pending) },
			},
			{
				Name: "IP", Description: "Host name or IP address of the host.",
				Value: func(b *operationsv1alpha1.Bastion) any { return address(b) },
			},
			{
				Name: "Heartbeat", Description: "Time since the last heartbeat.",
				Value: func(b *operationsv1alpha1.Bastion) any {
					if b.Status.LastHeartbeatTimestamp == nil {
						return "<never>"
					}
					return duration.HumanDuration(time.Since(b.Status.LastHeartbeatTimestamp.Time)) + " ago"
				},
			},
			{
				Name: "Expires", Description: "Time until it is deleted if there is no further heartbeat.",
				Value: func(b *operationsv1alpha1.Bastion) any {
					if b.Status.ExpirationTimestamp == nil {
						return kind.Pending
					}
					left := time.Until(b.Status.ExpirationTimestamp.Time)
					if left <= 0 {
						return "<expired>"
					}
					return duration.HumanDuration(left)
				},
			},
		},
	}
}

// lifetime is how long a Bastion exists after its last heartbeat.
const lifetime = time.Hour

// heartbeat extends the lifetime of a Bastion. Users request it with an annotation, which is removed.
func heartbeat(bastion *operationsv1alpha1.Bastion, now time.Time) {
	if bastion.Annotations[constants.GardenerOperation] == constants.GardenerOperationKeepalive {
		delete(bastion.Annotations, constants.GardenerOperation)
	}
	bastion.Status.LastHeartbeatTimestamp = &metav1.Time{Time: now}
}

// address returns the address of a Bastion for a cell.
func address(bastion *operationsv1alpha1.Bastion) string {
	if bastion.Status.Ingress == nil {
		return kind.Pending
	}
	return cmp.Or(bastion.Status.Ingress.Hostname, bastion.Status.Ingress.IP, kind.Pending)
}
