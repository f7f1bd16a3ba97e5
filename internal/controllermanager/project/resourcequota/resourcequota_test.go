package resourcequota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestRaise(t *testing.T) {
	const (
		configMaps = "quota.gardener.cloud/configmaps-per-shoot"
		secrets    = "quota.gardener.cloud/secrets-per-shoot"
	)
	type hard = map[corev1.ResourceName]string
	for name, tc := range map[string]struct {
		annotations     map[string]string
		hard            hard
		existing        int
		wantAnnotations map[string]string
		want            hard
	}{
		"limits that are too low for the Shoots that it allows": {
			hard:            hard{"count/shoots.core.gardener.cloud": "10", "count/secrets": "30", "count/configmaps": "5"},
			want:            hard{"count/shoots.core.gardener.cloud": "10", "count/secrets": "40", "count/configmaps": "20"},
			wantAnnotations: map[string]string{configMaps: "2", secrets: "4"},
		},
		"limits that are high enough": {
			hard:            hard{"count/shoots.core.gardener.cloud": "10", "count/secrets": "41", "count/configmaps": "1k"},
			want:            hard{"count/shoots.core.gardener.cloud": "10", "count/secrets": "41", "count/configmaps": "1k"},
			wantAnnotations: map[string]string{configMaps: "2", secrets: "4"},
		},
		"without a limit of Shoots, those that exist count": {
			existing: 3, hard: hard{"count/secrets": "1"}, want: hard{"count/secrets": "12"}, wantAnnotations: map[string]string{secrets: "4"},
		},
		"what is not limited stays so": {existing: 3, hard: hard{"pods": "1"}, want: hard{"pods": "1"}},
		"more objects per Shoot than before": {
			annotations: map[string]string{secrets: "1"}, existing: 3,
			hard: hard{"count/secrets": "100"}, want: hard{"count/secrets": "109"}, wantAnnotations: map[string]string{secrets: "4"},
		},
		"done before, then lowered by an operator": {
			annotations: map[string]string{secrets: "4"}, existing: 3,
			hard: hard{"count/secrets": "1"}, want: hard{"count/secrets": "1"}, wantAnnotations: map[string]string{secrets: "4"},
		},
		"fewer objects per Shoot than before": {
			annotations: map[string]string{secrets: "6"}, existing: 3,
			hard: hard{"count/secrets": "100"}, want: hard{"count/secrets": "100"}, wantAnnotations: map[string]string{secrets: "6"},
		},
		"an annotation that is no number": {
			annotations: map[string]string{secrets: "many"}, existing: 3,
			hard: hard{"count/secrets": "1"}, want: hard{"count/secrets": "12"}, wantAnnotations: map[string]string{secrets: "4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			quota := &corev1.ResourceQuota{}
			quota.Annotations = tc.annotations
			quota.Spec.Hard = corev1.ResourceList{}
			for resourceName, limit := range tc.hard {
				quota.Spec.Hard[resourceName] = resource.MustParse(limit)
			}
			raise(quota, tc.existing)
			got := hard{}
			for resourceName, limit := range quota.Spec.Hard {
				got[resourceName] = limit.String()
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.wantAnnotations, quota.Annotations); diff != "" {
				t.Errorf("limits and annotations (-want +got):\n%s", diff)
			}
		})
	}
}
