package extension

import (
	"context"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Actuator reconciles the objects of one kind. All methods are idempotent, and may be called again after an error or a restart. They may
// change the status of the object, such as providerStatus and state, and the library writes it, also if they return an error. They must not
// change what the library writes: lastOperation, lastError and observedGeneration. The cluster is nil for objects that belong to no shoot.
//
// An error may have codes (package errorcode), which users see in the status of their shoot. An actuator that has to wait returns a *Wait.
type Actuator[T extensionsv1alpha1.Object] interface {
	// Reconcile creates or updates what the spec of the object describes.
	Reconcile(ctx context.Context, obj T, cluster *Cluster) error
	// Delete deletes it, and returns nil when it is gone.
	Delete(ctx context.Context, obj T, cluster *Cluster) error
}

// ForceDeleter is an Actuator with its own way to delete when the shoot is deleted by force. For others, Delete is called.
type ForceDeleter[T extensionsv1alpha1.Object] interface {
	// ForceDelete deletes what is in the seed, and does not wait for anything outside of it.
	ForceDelete(ctx context.Context, obj T, cluster *Cluster) error
}

// Migrator is an Actuator with something in the seed that has to be deleted when the control plane moves to another seed, while the
// infrastructure of the object stays. For others, the library only reports success.
type Migrator[T extensionsv1alpha1.Object] interface {
	// Migrate deletes what is in the seed. What Restore needs has to be in status.state after each Reconcile: the ShootState is written before Migrate is called
	// for the ControlPlane, the Infrastructure, DNSRecords, and Extensions that are migrated after the kube-apiserver. What it changes in their state is lost.
	Migrate(ctx context.Context, obj T, cluster *Cluster) error
}

// Restorer is an Actuator that has to do more than Reconcile after an object came from another seed. For others, Reconcile is called.
type Restorer[T extensionsv1alpha1.Object] interface {
	// Restore takes over what exists, with the help of status.state.
	Restore(ctx context.Context, obj T, cluster *Cluster) error
}
