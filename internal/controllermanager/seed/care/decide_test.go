package care

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestBackupBucketsReady(t *testing.T) {
	bucket := func(name string, codes ...corev1beta1.ErrorCode) corev1beta1.BackupBucket {
		b := corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if len(codes) > 0 {
			b.Status.LastError = &corev1beta1.LastError{Description: "failed", Codes: codes}
		}
		return b
	}
	for name, tc := range map[string]struct {
		backup  bool
		buckets []corev1beta1.BackupBucket
		want    *corev1beta1.Condition
	}{
		"no backups": {},
		"no bucket yet": {backup: true, want: &corev1beta1.Condition{
			Status: corev1beta1.ConditionUnknown, Reason: "BackupBucketsGone", Message: "The seed has backups configured, but there is no BackupBucket yet.",
		}},
		"available": {backup: true, buckets: []corev1beta1.BackupBucket{bucket("a"), bucket("b")}, want: &corev1beta1.Condition{
			Status: corev1beta1.ConditionTrue, Reason: "BackupBucketsAvailable", Message: "All BackupBuckets are available.",
		}},
		"two of three failed, in any order": {
			backup: true, buckets: []corev1beta1.BackupBucket{bucket("b", "Y", "X"), bucket("c"), bucket("a", "X")},
			want: &corev1beta1.Condition{
				Status: corev1beta1.ConditionFalse, Reason: "BackupBucketsError", Message: `BackupBuckets have errors: "a": failed; "b": failed`,
				Codes: []corev1beta1.ErrorCode{"X", "Y"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want != nil {
				tc.want.Type = corev1beta1.SeedBackupBucketsReady
			}
			if diff := cmp.Diff(tc.want, backupBucketsReady(tc.backup, tc.buckets)); diff != "" {
				t.Errorf("backupBucketsReady() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExtensionsReady(t *testing.T) {
	// installation has all conditions as expected, except the given ones. An empty status means that the condition is missing.
	installation := func(name string, others map[corev1beta1.ConditionType]corev1beta1.ConditionStatus) corev1beta1.ControllerInstallation {
		i := corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, c := range []corev1beta1.Condition{
			{Type: "Valid", Status: "True"}, {Type: "Installed", Status: "True"}, {Type: "Healthy", Status: "True"}, {Type: "Progressing", Status: "False"},
		} {
			if status, ok := others[c.Type]; ok {
				c.Status, c.Message = status, "a message"
			}
			if c.Status != "" {
				i.Status.Conditions = append(i.Status.Conditions, c)
			}
		}
		return i
	}
	type conditions = map[corev1beta1.ConditionType]corev1beta1.ConditionStatus
	const begin = "ControllerInstallations are not ready: "
	for name, tc := range map[string]struct {
		installations   []corev1beta1.ControllerInstallation
		reason, message string
	}{
		"nothing is needed": {reason: "AllExtensionsReady", message: "All extensions are installed and healthy."},
		"all ready":         {installations: []corev1beta1.ControllerInstallation{installation("a", nil)}, reason: "AllExtensionsReady", message: "All extensions are installed and healthy."},
		"not valid":         {installations: []corev1beta1.ControllerInstallation{installation("a", conditions{"Valid": "False"})}, reason: invalid, message: begin + `"a": condition Valid is False: a message`},
		"not installed":     {installations: []corev1beta1.ControllerInstallation{installation("a", conditions{"Installed": "Unknown"})}, reason: notInstalled, message: begin + `"a": condition Installed is Unknown: a message`},
		"not healthy":       {installations: []corev1beta1.ControllerInstallation{installation("a", conditions{"Healthy": ""})}, reason: notHealthy, message: begin + `"a": condition Healthy is not reported yet`},
		"progressing":       {installations: []corev1beta1.ControllerInstallation{installation("a", conditions{"Progressing": "True"})}, reason: progressing, message: begin + `"a": condition Progressing is True: a message`},
		"the first step that failed counts": {
			installations: []corev1beta1.ControllerInstallation{installation("c", conditions{"Healthy": "False"}), installation("b", conditions{"Valid": "False"}), installation("a", conditions{"Valid": "False"})},
			reason:        invalid, message: begin + `"a": condition Valid is False: a message; "b": condition Valid is False: a message`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := &corev1beta1.Condition{Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionFalse, Reason: tc.reason, Message: tc.message}
			if tc.reason == "AllExtensionsReady" {
				want.Status = corev1beta1.ConditionTrue
			}
			if diff := cmp.Diff(want, extensionsReady(tc.installations)); diff != "" {
				t.Errorf("extensionsReady() (-want +got):\n%s", diff)
			}
		})
	}
}
