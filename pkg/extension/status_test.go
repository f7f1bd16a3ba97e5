package extension

import (
	"errors"
	"testing"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// An operation begins when it is requested, and with the first change after one that succeeded; retries go on with it.
func TestBegun(t *testing.T) {
	const reconcile = corev1beta1.LastOperationTypeReconcile
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	status := &extensionsv1alpha1.DefaultStatus{}
	pass := func(requested bool) bool {
		begin(status, reconcile, "It is being reconciled.", requested, now)
		return Begun(status)
	}
	if Begun(status) {
		t.Error("there was no operation yet")
	}
	if !pass(true) {
		t.Error("the first pass does not begin an operation")
	}
	wait(status, reconcile, "0 of 1 machines are ready", 1, now)
	if pass(false) {
		t.Error("a pass that goes on waiting begins an operation")
	}
	if !pass(true) {
		t.Error("a request during a wait begins no operation")
	}
	fail(status, reconcile, errors.New("no luck"), 1, now)
	if pass(false) {
		t.Error("a retry begins an operation")
	}
	succeed(status, reconcile, "done", 1, now)
	if Begun(status) || !pass(true) {
		t.Error("the pass after a success does not begin an operation")
	}
}
