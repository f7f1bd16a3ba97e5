package extensionobject

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Verdict is how far an extension controller is with a resource.
type Verdict struct {
	// Ready says that the last requested operation succeeded for the current spec.
	Ready bool
	// Error is the error of the extension controller's last attempt, or nil. The controller retries by itself.
	Error *corev1beta1.LastError
	// Progress is that of the last operation, in percent, and Message its description or what is missing, for users.
	Progress int32
	Message  string
}

// maxClockSkew is how far the clock of an extension may be behind. A success that is older than a request by no more counts for it: if a short operation was
// reported with such a clock, the wait would never end otherwise.
const maxClockSkew = 5 * time.Second

// OfSeed is whether a resource is one that a Seed has for itself. Those of shoots have no class.
func OfSeed(obj extensionsv1alpha1.Object) bool {
	return obj.GetNamespace() == constants.GardenNamespace && obj.GetExtensionSpec().GetExtensionClass() == extensionsv1alpha1.ExtensionClassSeed
}

// Judge returns how far an extension controller is with a resource. Only a success counts that was reported for the current spec, after the last request
// of an operation: extensions of the original remove the annotation with the request before they report that they have begun.
func Judge(obj extensionsv1alpha1.Object) Verdict {
	status := obj.GetExtensionStatus()
	last := status.GetLastOperation()
	switch {
	case obj.GetAnnotations()[constants.GardenerOperation] != "":
		return Verdict{Message: "The extension has not begun yet."}
	case last == nil || status.GetObservedGeneration() != obj.GetGeneration():
		return Verdict{Message: "The extension has not observed the last change yet."}
	case status.GetLastError() != nil:
		return Verdict{Error: status.GetLastError(), Progress: last.Progress, Message: status.GetLastError().Description}
	case last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed:
		description := cmp.Or(last.Description, fmt.Sprintf("%s is %s", last.Type, last.State))
		return Verdict{Error: &corev1beta1.LastError{Description: description}, Progress: last.Progress, Message: description}
	case last.State == corev1beta1.LastOperationStateSucceeded && !reportedSince(obj, requestedAt(obj).Add(-maxClockSkew)):
		return Verdict{Message: "The extension has not begun yet: its last success was reported before the last request."}
	case last.State == corev1beta1.LastOperationStateSucceeded:
		return Verdict{Ready: true, Progress: 100, Message: last.Description}
	}
	return Verdict{Progress: last.Progress, Message: cmp.Or(last.Description, fmt.Sprintf("%s is %s", last.Type, last.State))}
}

// BucketPeriod is after how long the extension for a BackupBucket is requested again although nothing has changed: it may have to renew credentials that it
// has generated, and only does when it is requested.
const BucketPeriod = 12 * time.Hour

// Overdue reports whether the last success of an extension was longer than a period ago. While the extension works on a request, nothing is. A period of zero
// never ends.
func Overdue(obj extensionsv1alpha1.Object, period time.Duration, now time.Time) bool {
	return period > 0 && Judge(obj).Ready && now.Sub(reportedAt(obj)) > period
}

// GaveUp reports whether an extension has given up the last operation, and neither that nor the request of one was within a period before now. An extension
// retries an Error by itself, and does nothing about what is Failed until it is requested.
func GaveUp(obj extensionsv1alpha1.Object, period time.Duration, now time.Time) bool {
	return Judge(obj).Error != nil && obj.GetExtensionStatus().GetLastOperation().State == corev1beta1.LastOperationStateFailed &&
		now.Sub(reportedAt(obj)) >= period && now.Sub(requestedAt(obj)) >= period
}

// Err returns why the resource is not ready, or nil if it is.
func (v Verdict) Err() error {
	switch {
	case v.Ready:
		return nil
	case v.Error != nil || v.Progress == 0:
		return errors.New(v.Message)
	}
	return fmt.Errorf("%d%%: %s", v.Progress, v.Message)
}

// Record writes a verdict into the last operation and the last error of the garden resource that the extension resource was created for, such
// as a BackupBucket. The description is done when the resource is ready. The times only change if something else does.
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
