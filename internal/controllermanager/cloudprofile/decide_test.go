package cloudprofile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestClassify(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(hours int) *metav1.Time { return new(metav1.NewTime(now.Add(time.Duration(hours) * time.Hour))) }
	stages := func(stages ...corev1beta1.LifecycleStage) corev1beta1.ExpirableVersion {
		return corev1beta1.ExpirableVersion{Version: "1.2.3", Lifecycle: stages}
	}
	stage := func(classification corev1beta1.VersionClassification, start *metav1.Time) corev1beta1.LifecycleStage {
		return corev1beta1.LifecycleStage{Classification: classification, StartTime: start}
	}
	for name, tc := range map[string]struct {
		version corev1beta1.ExpirableVersion
		want    corev1beta1.VersionClassification
		recheck time.Duration
	}{
		"nothing said":                   {version: corev1beta1.ExpirableVersion{Version: "1.2.3"}, want: "supported"},
		"a preview":                      {version: corev1beta1.ExpirableVersion{Version: "1.2.3", Classification: new(corev1beta1.ClassificationPreview)}, want: "preview"},
		"expires later":                  {version: corev1beta1.ExpirableVersion{Version: "1.2.3", ExpirationDate: in(3)}, want: "supported", recheck: 3 * time.Hour},
		"expires now":                    {version: corev1beta1.ExpirableVersion{Version: "1.2.3", ExpirationDate: in(0)}, want: "expired"},
		"no stage has begun":             {version: stages(stage("preview", in(2)), stage("supported", in(4))), want: "unavailable", recheck: 2 * time.Hour},
		"a stage without a start":        {version: stages(stage("supported", nil)), want: "supported"},
		"between two stages":             {version: stages(stage("preview", in(-2)), stage("supported", in(0)), stage("deprecated", in(4)), stage("expired", in(8))), want: "supported", recheck: 4 * time.Hour},
		"all stages have begun, expired": {version: stages(stage("supported", in(-2)), stage("expired", in(-1))), want: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1beta1.CloudProfileSpec{
				Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{tc.version}},
				MachineImages: []corev1beta1.MachineImage{{Name: "i", Versions: []corev1beta1.MachineImageVersion{
					{ExpirableVersion: tc.version},
					{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "2.0.0", ExpirationDate: in(1000)}},
				}}},
			}
			own := corev1beta1.ExpirableVersionStatus{Version: "1.2.3", Classification: tc.want}
			want := corev1beta1.CloudProfileStatus{
				Kubernetes: &corev1beta1.KubernetesStatus{Versions: []corev1beta1.ExpirableVersionStatus{own}},
				MachineImages: []corev1beta1.MachineImageStatus{{
					Name: "i", Versions: []corev1beta1.ExpirableVersionStatus{own, {Version: "2.0.0", Classification: "supported"}},
				}},
			}
			if tc.recheck == 0 {
				tc.recheck = 1000 * time.Hour
			}
			got, recheck := classify(spec, now)
			if diff := cmp.Diff(want, got); diff != "" || recheck != tc.recheck {
				t.Errorf("check again in %s, want %s; classify() (-want +got):\n%s", recheck, tc.recheck, diff)
			}
		})
	}
}
