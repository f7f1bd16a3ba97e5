package care

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// backupBucketsReady returns the condition for the buckets of a seed, or nil for a seed without backups.
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
		condition.Message = "All BackupBuckets are available."
	case backup:
		condition.Status, condition.Reason = corev1beta1.ConditionUnknown, "BackupBucketsGone"
		condition.Message = "The seed has backups configured, but there is no BackupBucket yet."
	default:
		return nil
	}
	return condition
}

// Reasons why an installation is not ready, in the order in which they are checked.
const (
	invalid      = "NotAllExtensionsValid"
	notInstalled = "NotAllExtensionsInstalled"
	notHealthy   = "NotAllExtensionsHealthy"
	progressing  = "SomeExtensionsProgressing"
)

// problem is why an installation is not ready. The zero value means that it is.
type problem struct{ reason, message string }

// unready returns the first reason why an installation is not ready.
func unready(installation *corev1beta1.ControllerInstallation) problem {
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
		condition := kube.Condition(installation.Status.Conditions, expected.typ)
		switch {
		case condition == nil:
			return problem{expected.reason, fmt.Sprintf("condition %s is not reported yet", expected.typ)}
		case condition.Status != expected.status:
			return problem{expected.reason, fmt.Sprintf("condition %s is %s: %s", condition.Type, condition.Status, condition.Message)}
		}
	}
	return problem{}
}

// extensionsReady returns the condition for the installations in a seed. Its reason is the first one in the order of the checks.
func extensionsReady(installations []corev1beta1.ControllerInstallation) *corev1beta1.Condition {
	byReason := map[string][]string{}
	for i := range installations {
		if p := unready(&installations[i]); p.reason != "" {
			byReason[p.reason] = append(byReason[p.reason], fmt.Sprintf("%q: %s", installations[i].Name, p.message))
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
