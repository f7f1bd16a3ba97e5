package project

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A configuration that records another number of objects per Shoot must not make the other controller raise the limits again and again.
func TestQuotaKeepsWhatWasRaised(t *testing.T) {
	const secrets, configMaps = "quota.gardener.cloud/secrets-per-shoot", "quota.gardener.cloud/configmaps-per-shoot"
	existing := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{secrets: "4", "size": "large"}}}
	applyQuota(existing, corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{secrets: "1", configMaps: "1", "size": "small"}}})
	want := map[string]string{secrets: "4", configMaps: "1", "size": "small"}
	if diff := cmp.Diff(want, existing.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
