package errorcode

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestOf(t *testing.T) {
	base := errors.New("quota exceeded")
	quota := With(base, corev1beta1.ErrorInfraQuotaExceeded)
	for name, tc := range map[string]struct {
		err       error
		want      []corev1beta1.ErrorCode
		needsUser bool
	}{
		"nil has none":        {},
		"nil stays nil":       {err: With(nil, corev1beta1.ErrorInfraQuotaExceeded)},
		"a plain error":       {err: base},
		"no code changes nil": {err: With(base)},
		"its own":             {err: quota, want: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded}, needsUser: true},
		"of what it wraps, sorted, once": {
			err: fmt.Errorf("task: %w", errors.Join(
				With(quota, corev1beta1.ErrorInfraQuotaExceeded), base,
				With(base, corev1beta1.ErrorCleanupClusterResources),
			)),
			want:      []corev1beta1.ErrorCode{corev1beta1.ErrorCleanupClusterResources, corev1beta1.ErrorInfraQuotaExceeded},
			needsUser: true,
		},
		"retrying may help": {
			err:  With(base, corev1beta1.ErrorRetryableInfraDependencies),
			want: []corev1beta1.ErrorCode{corev1beta1.ErrorRetryableInfraDependencies},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Of() (-want +got):\n%s", diff)
			}
			if NeedsUser(got) != tc.needsUser {
				t.Errorf("NeedsUser() = %v", !tc.needsUser)
			}
		})
	}
	if !errors.Is(quota, base) || quota.Error() != base.Error() {
		t.Error("codes hide the error")
	}
}
