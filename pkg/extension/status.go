package extension

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
)

// Progress of operations, in percent. The library does not know the progress within an actuator.
const (
	progressBegun   = 1
	progressWaiting = 50
	progressDone    = 100
)

// begin reports that an operation has begun. When an operation that failed is only retried, its status stays until it has another result, so
// that the error does not come and go.
func begin(status extensionsv1alpha1.Status, typ corev1beta1.LastOperationType, description string, requested bool, now time.Time) {
	last := status.GetLastOperation()
	if last != nil && last.Type == typ && last.State != corev1beta1.LastOperationStateSucceeded && !requested {
		return
	}
	setOperation(status, typ, corev1beta1.LastOperationStateProcessing, progressBegun, description, now)
}

// Begun reports whether a pass of an actuator is the first one of an operation, and not one that goes on with it or tries it again.
func Begun(status extensionsv1alpha1.Status) bool {
	last := status.GetLastOperation()
	return last != nil && last.State == corev1beta1.LastOperationStateProcessing && last.Progress == progressBegun
}

// succeed reports that an operation succeeded, for the spec of a generation.
func succeed(status extensionsv1alpha1.Status, typ corev1beta1.LastOperationType, description string, generation int64, now time.Time) {
	status.SetObservedGeneration(generation)
	status.SetLastError(nil)
	setOperation(status, typ, corev1beta1.LastOperationStateSucceeded, progressDone, description, now)
}

// wait reports why an operation waits.
func wait(status extensionsv1alpha1.Status, typ corev1beta1.LastOperationType, reason string, generation int64, now time.Time) {
	status.SetObservedGeneration(generation)
	status.SetLastError(nil)
	setOperation(status, typ, corev1beta1.LastOperationStateProcessing, progressWaiting, reason, now)
}

// fail reports an error. The same error again does not change the status.
func fail(status extensionsv1alpha1.Status, typ corev1beta1.LastOperationType, err error, generation int64, now time.Time) {
	status.SetObservedGeneration(generation)
	description, codes := err.Error(), errorcode.Of(err)
	if last := status.GetLastError(); last == nil || last.Description != description || !slices.Equal(last.Codes, codes) {
		status.SetLastError(&corev1beta1.LastError{Description: description, Codes: codes, LastUpdateTime: &metav1.Time{Time: now}})
	}
	setOperation(status, typ, corev1beta1.LastOperationStateError, progressWaiting, description, now)
}

func setOperation(
	status extensionsv1alpha1.Status, typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState,
	progress int32, description string, now time.Time,
) {
	want := corev1beta1.LastOperation{Type: typ, State: state, Progress: progress, Description: description}
	if last := status.GetLastOperation(); last != nil {
		want.LastUpdateTime = last.LastUpdateTime
		if want == *last {
			return
		}
	}
	want.LastUpdateTime = metav1.NewTime(now)
	status.SetLastOperation(&want)
}
