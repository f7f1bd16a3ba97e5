package extensionobject

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestJudge(t *testing.T) {
	failure := &corev1beta1.LastError{Description: "no quota", Codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED"}}
	for name, tc := range map[string]struct {
		change func(*extensionsv1alpha1.BackupBucket)
		want   Verdict
	}{
		"done": {want: Verdict{Ready: true, Progress: 100, Message: "said"}},
		"requested": {func(b *extensionsv1alpha1.BackupBucket) {
			b.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"}
		}, Verdict{Message: "The extension has not begun yet."}},
		"begun, and not reported": {func(b *extensionsv1alpha1.BackupBucket) {
			b.Annotations = map[string]string{"gardener.cloud/timestamp": "2026-11-26T12:00:00.9Z"}
			b.Status.LastOperation.LastUpdateTime = metav1.Date(2026, 11, 26, 11, 59, 0, 0, time.UTC)
		}, Verdict{Message: "The extension has not begun yet: its last success was reported before the last request."}},
		"done, with a clock that is behind": {func(b *extensionsv1alpha1.BackupBucket) {
			b.Annotations = map[string]string{"gardener.cloud/timestamp": "2026-11-26T12:00:00.9Z"}
			b.Status.LastOperation.LastUpdateTime = metav1.Date(2026, 11, 26, 11, 59, 57, 0, time.UTC)
		}, Verdict{Ready: true, Progress: 100, Message: "said"}},
		"new":                      {func(b *extensionsv1alpha1.BackupBucket) { b.Status.LastOperation = nil }, Verdict{Message: "The extension has not observed the last change yet."}},
		"changed":                  {func(b *extensionsv1alpha1.BackupBucket) { b.Generation++ }, Verdict{Message: "The extension has not observed the last change yet."}},
		"processing":               {func(b *extensionsv1alpha1.BackupBucket) { b.Status.LastOperation.State = "Processing" }, Verdict{Progress: 40, Message: "said"}},
		"failed":                   {func(b *extensionsv1alpha1.BackupBucket) { b.Status.LastError = failure }, Verdict{Error: failure, Progress: 40, Message: "no quota"}},
		"failed without lastError": {func(b *extensionsv1alpha1.BackupBucket) { b.Status.LastOperation.State = "Error" }, Verdict{Error: &corev1beta1.LastError{Description: "said"}, Progress: 40, Message: "said"}},
		"processing without a description": {func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation.Type, b.Status.LastOperation.State, b.Status.LastOperation.Description = "Create", "Processing", ""
		}, Verdict{Progress: 40, Message: "Create is Processing"}},
		"failed without a description": {func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation.Type, b.Status.LastOperation.State, b.Status.LastOperation.Description = "Create", "Failed", ""
		}, Verdict{Error: &corev1beta1.LastError{Description: "Create is Failed"}, Progress: 40, Message: "Create is Failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := &extensionsv1alpha1.BackupBucket{}
			bucket.Generation, bucket.Status.ObservedGeneration = 2, 2
			bucket.Status.LastOperation = &corev1beta1.LastOperation{State: "Succeeded", Progress: 40, Description: "said"}
			if tc.change != nil {
				tc.change(bucket)
			}
			if diff := cmp.Diff(tc.want, Judge(bucket)); diff != "" {
				t.Errorf("Judge() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdictErr(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict Verdict
		want    string
	}{
		"ready":       {verdict: Verdict{Ready: true, Progress: 100, Message: "done"}},
		"not begun":   {Verdict{Message: "The extension has not begun yet."}, "The extension has not begun yet."},
		"in progress": {Verdict{Progress: 40, Message: "Creating networks"}, "40%: Creating networks"},
		"in error":    {Verdict{Error: &corev1beta1.LastError{Description: "no quota"}, Progress: 40, Message: "no quota"}, "no quota"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.verdict.Err(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Err() is %q, want %q", got, tc.want)
			}
		})
	}
}
