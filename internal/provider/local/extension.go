package local

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

// extensionTypes are the types of Extensions that have no effect. They differ in their registration: when they are reconciled, deleted and migrated.
var extensionTypes = []string{"local-ext-seed", "local-ext-shoot", "local-ext-shoot-after-worker"}

// maxOperations is how many operations the state of an Extension has, so that it stays small.
const maxOperations = 10

// recorder reconciles Extensions that have no effect: their state has the operations that were requested, also after a move to another seed.
type recorder struct{}

// recorded is the state of an Extension.
type recorded struct {
	// Operations are the last ones, without repetitions.
	Operations []string `json:"operations"`
}

// Reconcile records a reconciliation.
func (recorder) Reconcile(_ context.Context, e *extensionsv1alpha1.Extension, _ *extension.Cluster) error {
	return record(e, "reconcile")
}

// Migrate records that the control plane moves to another seed.
func (recorder) Migrate(_ context.Context, e *extensionsv1alpha1.Extension, _ *extension.Cluster) error {
	return record(e, "migrate")
}

// Restore records that it came from another seed.
func (recorder) Restore(_ context.Context, e *extensionsv1alpha1.Extension, _ *extension.Cluster) error {
	return record(e, "restore")
}

// Delete has nothing to delete. It shows in an event.
func (recorder) Delete(context.Context, *extensionsv1alpha1.Extension, *extension.Cluster) error {
	return nil
}

// record adds an operation to the state of an Extension.
func record(e *extensionsv1alpha1.Extension, operation string) error {
	if err := noConfig(providerConfig, e.Spec.ProviderConfig); err != nil {
		return err
	}
	state := &recorded{}
	if e.Status.State != nil {
		if err := json.Unmarshal(e.Status.State.Raw, state); err != nil {
			return fmt.Errorf("status.state: %w", err)
		}
	}
	done := state.Operations
	if len(done) > 0 && done[len(done)-1] == operation {
		return nil
	}
	done = append(done, operation)
	raw, err := json.Marshal(&recorded{Operations: done[max(0, len(done)-maxOperations):]})
	if err != nil {
		return err
	}
	e.Status.State = &runtime.RawExtension{Raw: raw}
	return nil
}
