package observed

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestEncryptionAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   []string
		before *corev1beta1.EncryptionAtRest
		former []string
		change bool
		added  []string
	}{
		"a new cluster":     {spec: []string{"configmaps"}},
		"nothing changes":   {spec: []string{"configmaps"}, before: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}},
		"more is encrypted": {spec: []string{"configmaps"}, before: &corev1beta1.EncryptionAtRest{}, change: true, added: []string{"configmaps"}},
		"less is encrypted": {before: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}, former: []string{"configmaps"}, change: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: tc.spec}}
			shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: tc.before}
			desired, former := EncryptedResources(shoot)
			if len(former) == 0 {
				former = nil
			}
			if diff := cmp.Diff([][]string{tc.spec, tc.former}, [][]string{desired, former}); diff != "" {
				t.Errorf("EncryptedResources() (-want +got):\n%s", diff)
			}
			if got := ChangesEncryption(shoot); got != tc.change {
				t.Errorf("ChangesEncryption() is %t", got)
			}
			if got := AddedResources(shoot); !slices.Equal(got, tc.added) {
				t.Errorf("AddedResources() are %q, want %q", got, tc.added)
			}
			(&State{Shoot: shoot}).RecordEncryption(shoot)
			want := &corev1beta1.EncryptionAtRest{Resources: tc.spec, Provider: corev1beta1.EncryptionProviderStatus{Type: "aescbc"}}
			if diff := cmp.Diff(want, shoot.Status.Credentials.EncryptionAtRest); diff != "" {
				t.Errorf("RecordEncryption() (-want +got):\n%s", diff)
			}
			if ChangesEncryption(shoot) {
				t.Error("the encryption still changes after the end of the operation")
			}
		})
	}
}
