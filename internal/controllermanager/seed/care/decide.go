package care

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// backupBucketsReady returns the condition for the buckets of a seed. Nil means that there is nothing to say: it has no backups.
func backupBucketsReady(backup bool, buckets []corev1beta1.BackupBucket) *corev1beta1.Condition {
	condition := &corev1beta1.Condition{Type: corev1beta1.SeedBackupBucketsReady}
	var failed []string
	for i := range buckets {
		if lastError := buckets[i].Status.LastError; lastError != nil {
			failed = append(failed, fmt.Sprintf("%q: %s", buckets[i].Name, lastError.Description))
			condition.Codes = append(condition.Codes, lastError.Codes...)
		}
	}
	slices.Sort(failed)
	slices.Sort(condition.Codes)
	condition.Codes = slices.Compact(condition.Codes)
	switch {
	case len(failed) > 0:
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "BackupBucketsError"
		condition.Message = "BackupBuckets have errors: " + strings.Join(failed, "; ")
	case len(buckets) > 0:
		condition.Status, condition.Reason = corev1beta1.ConditionTrue, "BackupBucketsAvailable"
		condition.Message = "All BackupBuckets are in order."
	case backup:
		condition.Status, condition.Reason = corev1beta1.ConditionUnknown, "BackupBucketsGone"
		condition.Message = "The seed has backups, but no BackupBucket yet."
	default:
		return nil
	}
	return condition
}

// The ways in which an installation is not in order, from the first step on.
const (
	invalid      = "NotAllExtensionsValid"
	notInstalled = "NotAllExtensionsInstalled"
	notHealthy   = "NotAllExtensionsHealthy"
	progressing  = "SomeExtensionsProgressing"
)

// trouble is why an installation is not in order. The zero value means that it is.
type trouble struct{ reason, message string }

// unhealthy returns the first thing that is wrong with an installation.
func unhealthy(installation *corev1beta1.ControllerInstallation) trouble {
	for _, expected := range []struct {
		typ    corev1beta1.ConditionType
		status corev1beta1.ConditionStatus
		reason string
	}{
		{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue, invalid},
		{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue, notInstalled},
		{corev1beta1.ControllerInstallationHealthy, corev1beta1.ConditionTrue, notHealthy},
		{corev1beta1.ControllerInstallationProgressing, corev1beta1.ConditionFalse, progressing},
	} {
		message, found := fmt.Sprintf("condition %s is not reported yet", expected.typ), false
		for _, condition := range installation.Status.Conditions {
			if condition.Type == expected.typ {
				found = condition.Status == expected.status
				message = fmt.Sprintf("condition %s is %s: %s", condition.Type, condition.Status, condition.Message)
			}
		}
		if !found {
			return trouble{expected.reason, message}
		}
	}
	return trouble{}
}

// extensionsReady returns the condition for the installations in a seed. What went wrong in the earliest step comes first.
func extensionsReady(installations []corev1beta1.ControllerInstallation) *corev1beta1.Condition {
	byReason := map[string][]string{}
	for i := range installations {
		if t := unhealthy(&installations[i]); t.reason != "" {
			byReason[t.reason] = append(byReason[t.reason], fmt.Sprintf("%q: %s", installations[i].Name, t.message))
		}
	}
	for _, reason := range []string{invalid, notInstalled, notHealthy, progressing} {
		if messages := byReason[reason]; len(messages) > 0 {
			slices.Sort(messages)
			return &corev1beta1.Condition{
				Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionFalse, Reason: reason,
				Message: "ControllerInstallations are not ready: " + strings.Join(messages, "; "),
			}
		}
	}
	return &corev1beta1.Condition{
		Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionTrue, Reason: "AllExtensionsReady",
		Message: "All extensions are installed and healthy.",
	}
}

// soften turns a condition that would be False to Progressing, if it was True not longer ago than the threshold. It returns how
// long that may last; zero means that only a change is worth another look.
func soften(before *corev1beta1.Condition, want *corev1beta1.Condition, threshold time.Duration, now time.Time) time.Duration {
	if want.Status != corev1beta1.ConditionFalse || threshold == 0 || before == nil {
		return 0
	}
	switch before.Status {
	case corev1beta1.ConditionTrue:
		want.Status = corev1beta1.ConditionProgressing
		return threshold
	case corev1beta1.ConditionProgressing:
		if left := before.LastTransitionTime.Add(threshold).Sub(now); left > 0 {
			want.Status = corev1beta1.ConditionProgressing
			return left
		}
	}
	return 0
}
