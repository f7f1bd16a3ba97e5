package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		done       []string
		want       []string
	}{
		"none":                 {},
		"all are done":         {annotation: "deployInfrastructure,restartCoreAddons", done: []string{"deployInfrastructure", "restartCoreAddons"}},
		"one came later":       {annotation: "deployInfrastructure, restartCoreAddons", done: []string{"deployInfrastructure"}, want: []string{"restartCoreAddons"}},
		"one is for others":    {annotation: "deployInfrastructure,custom", done: []string{"deployInfrastructure", "custom"}, want: []string{"custom"}},
		"nothing between them": {annotation: ",,", done: []string{"custom"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Annotations = map[string]string{constants.ShootTasks: tc.annotation}
			got := remainingTasks(tasksOf(shoot), tc.done)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("remainingTasks() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncryptionAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   []string
		before *corev1beta1.EncryptionAtRest
		former []string
		change bool
	}{
		"a new cluster":     {spec: []string{"configmaps"}},
		"nothing changes":   {spec: []string{"configmaps"}, before: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}},
		"more is encrypted": {spec: []string{"configmaps"}, before: &corev1beta1.EncryptionAtRest{}, change: true},
		"less is encrypted": {before: &corev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}, former: []string{"configmaps"}, change: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: tc.spec}}
			shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: tc.before}
			wanted, former := encryptedResources(shoot)
			if len(former) == 0 {
				former = nil
			}
			if diff := cmp.Diff([][]string{tc.spec, tc.former}, [][]string{wanted, former}); diff != "" {
				t.Errorf("encryptedResources() (-want +got):\n%s", diff)
			}
			if got := changesEncryption(shoot); got != tc.change {
				t.Errorf("changesEncryption() is %t", got)
			}
			recordEncryption(shoot, &world{shoot: shoot})
			want := &corev1beta1.EncryptionAtRest{Resources: tc.spec, Provider: corev1beta1.EncryptionProviderStatus{Type: "aescbc"}}
			if diff := cmp.Diff(want, shoot.Status.Credentials.EncryptionAtRest); diff != "" {
				t.Errorf("recordEncryption() (-want +got):\n%s", diff)
			}
			if changesEncryption(shoot) {
				t.Error("there is still something to do after the end of the operation")
			}
		})
	}
}

func TestIsReferenced(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	resource := corev1beta1.NamedResourceReference{Name: "x"}
	resource.ResourceRef.Kind, resource.ResourceRef.Name = "Secret", "creds"
	shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	if !isReferenced(shoot, "Secret", "ref-creds") || isReferenced(shoot, "ConfigMap", "ref-creds") || isReferenced(shoot, "Secret", "ref-other") {
		t.Error("isReferenced() does not know what the Shoot refers to")
	}
}
