package extension

import (
	"context"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Actuator fulfils the objects of one kind. All methods are idempotent, and may be called again after an error or a restart. They may
// change the status of the object, such as providerStatus and state, and the library writes it, also if they return an error; what the
// library itself reports they leave alone: lastOperation, lastError and observedGeneration. The cluster is nil for objects that belong
// to no shoot.
//
// An error may have codes (package errorcode), which users see in the status of their shoot, and Wait is how to wait.
type Actuator[T extensionsv1alpha1.Object] interface {
	// Reconcile makes what the object asks for.
	Reconcile(ctx context.Context, obj T, cluster *Cluster) error
	// Delete removes it, and returns nil when it is gone.
	Delete(ctx context.Context, obj T, cluster *Cluster) error
}

// ForceDeleter is an Actuator that can give up what the object stands for, when a shoot is deleted by force. Others delete it as always.
type ForceDeleter[T extensionsv1alpha1.Object] interface {
	// ForceDelete removes what is in the seed, and does not wait for anything outside of it.
	ForceDelete(ctx context.Context, obj T, cluster *Cluster) error
}

// Migrator is an Actuator with something in the seed that has to go when the object moves to another seed, while what the object stands
// for stays. For others there is nothing to do.
type Migrator[T extensionsv1alpha1.Object] interface {
	// Migrate removes what is in the seed, and leaves all that is needed to restore in the state of the status.
	Migrate(ctx context.Context, obj T, cluster *Cluster) error
}

// Restorer is an Actuator that has to do more than to reconcile when an object came from another seed. Others reconcile.
type Restorer[T extensionsv1alpha1.Object] interface {
	// Restore takes over what exists, with the state that is in the status.
	Restore(ctx context.Context, obj T, cluster *Cluster) error
}
