package lifecycle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestCheckVolumes(t *testing.T) {
	volume := func(etcd, name string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{druidv1alpha1.LabelPartOfKey: etcd}}}
	}
	secret := func(name string, labels map[string]string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name + "-1234", Labels: labels}}
	}
	key := func(name string) client.Object {
		return secret(name, map[string]string{"managed-by": "secrets-manager", "manager-identity": "gardener-operator", "name": name})
	}
	main := []client.Object{
		volume("virtual-garden-etcd-main", "main-virtual-garden-etcd-virtual-garden-etcd-main-1"), volume("virtual-garden-etcd-main", "main-virtual-garden-etcd-virtual-garden-etcd-main-0"),
	}
	const kube, gardener, account = "kube-apiserver-etcd-encryption-key", "gardener-apiserver-etcd-encryption-key", "service-account-key"
	for name, tc := range map[string]struct {
		objects []client.Object
		// reconciled is whether the Garden was reconciled before.
		reconciled bool
		// missing are the credentials that the error names. Empty means that there is none.
		missing string
	}{
		"a new garden":                        {},
		"only volumes of events":              {objects: []client.Object{volume("virtual-garden-etcd-events", "events-0")}},
		"volumes and keys":                    {objects: append([]client.Object{key(kube), key(gardener), key(account)}, main...), reconciled: true},
		"volumes of a deleted garden":         {objects: main, missing: kube + ", " + gardener + ", " + account},
		"one key only":                        {objects: append([]client.Object{key(kube)}, main...), missing: gardener + ", " + account},
		"keys of another manager":             {objects: append([]client.Object{secret(kube, map[string]string{"name": kube}), key(gardener), key(account)}, main...), missing: kube},
		"keys to be used":                     {objects: append([]client.Object{secret(kube, map[string]string{"secrets-manager-use-data-for-name": kube}), key(gardener), key(account)}, main...)},
		"an interrupted first reconciliation": {objects: append([]client.Object{&druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-etcd-main"}}}, main...)},
		"keys that were lost": {
			objects:    append([]client.Object{key(gardener), key(account), &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-etcd-main"}}}, main...),
			reconciled: true, missing: kube,
		},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := stagetest.New(t).Seed
			for _, object := range tc.objects {
				if err := runtime.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil { //nolint:forcetypeassert // a copy
					t.Fatal(err)
				}
			}
			s := &state{reconciler: &reconciler{Values: Values{RuntimeAPI: runtime}}, garden: &operatorv1alpha1.Garden{}}
			if tc.reconciled {
				s.garden.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{}}
			}
			err := s.checkVolumes(t.Context())
			if tc.missing == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, text := range []string{
				"(main-virtual-garden-etcd-virtual-garden-etcd-main-0, main-virtual-garden-etcd-virtual-garden-etcd-main-1)",
				"no Secrets of credentials " + tc.missing + ",",
			} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not contain %q: %v", text, err)
				}
			}
			if codes := errorcode.Of(err); len(codes) != 1 || codes[0] != corev1beta1.ErrorConfigurationProblem {
				t.Errorf("the error has codes %v", codes)
			}
		})
	}
}
