// Package extension judges what an extension made of its resource, and says so in the status of what ordered it.
package extension

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Record puts a verdict into the status of what ordered the resource. Done is what to say when it is ready. What did not change keeps its
// time.
func Record(last **corev1beta1.LastOperation, lastError **corev1beta1.LastError, operation corev1beta1.LastOperationType, verdict Verdict,
	done string, now metav1.Time,
) {
	want := corev1beta1.LastOperation{
		Type: operation, State: corev1beta1.LastOperationStateProcessing, Progress: min(verdict.Progress, 99), Description: verdict.Message,
	}
	switch {
	case verdict.Error != nil:
		want.State = corev1beta1.LastOperationStateError
	case verdict.Ready:
		want.State, want.Progress, want.Description = corev1beta1.LastOperationStateSucceeded, 100, done
	}
	if *last != nil {
		want.LastUpdateTime = (*last).LastUpdateTime
	}
	if *last == nil || **last != want {
		want.LastUpdateTime = now
		*last = &want
	}
	switch {
	case verdict.Error == nil:
		*lastError = nil
	case *lastError == nil || (*lastError).Description != verdict.Error.Description:
		*lastError = &corev1beta1.LastError{Description: verdict.Error.Description, Codes: verdict.Error.Codes, LastUpdateTime: &now}
	}
}
