// Package extension judges what an extension made of its resource.
package extension

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Verdict is how far an extension is with a resource.
type Verdict struct {
	// Ready says that the resource is as it was last asked for.
	Ready bool
	// Error is the error of the extension's last try. The extension tries again by itself.
	Error *corev1beta1.LastError
	// Progress and Message say how far it is, for people.
	Progress int32
	Message  string
}

// Judge tells how far an extension is with a resource. It counts what was said about the current spec, after the last order.
func Judge(obj extensionsv1alpha1.Object) Verdict {
	status := obj.GetExtensionStatus()
	last := status.GetLastOperation()
	switch {
	case obj.GetAnnotations()[constants.GardenerOperation] != "":
		return Verdict{Message: "The extension has not begun yet."}
	case last == nil || status.GetObservedGeneration() != obj.GetGeneration():
		return Verdict{Message: "The extension has not seen the last change yet."}
	case status.GetLastError() != nil:
		return Verdict{Error: status.GetLastError(), Progress: last.Progress, Message: status.GetLastError().Description}
	case last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed:
		return Verdict{Error: &corev1beta1.LastError{Description: last.Description}, Progress: last.Progress, Message: last.Description}
	case last.State == corev1beta1.LastOperationStateSucceeded:
		return Verdict{Ready: true, Progress: 100, Message: last.Description}
	}
	return Verdict{Progress: last.Progress, Message: last.Description}
}
