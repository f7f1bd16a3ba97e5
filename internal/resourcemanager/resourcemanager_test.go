package resourcemanager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestIdentityOf(t *testing.T) {
	said := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}, Data: map[string]string{"cluster-identity": "seed-1"},
	}
	silent := &corev1.ConfigMap{ObjectMeta: said.ObjectMeta}
	for name, tc := range map[string]struct {
		configMap *corev1.ConfigMap
		setting   string
		want      string
		fails     bool
	}{
		"a value":                             {configMap: said, setting: "mine", want: "mine"},
		"none":                                {configMap: said},
		"that of the cluster":                 {configMap: said, setting: "<cluster>", want: "seed-1"},
		"that of the cluster, which has none": {setting: "<cluster>", fails: true},
		"that of the cluster, empty":          {configMap: silent, setting: "<cluster>", fails: true},
		"if there is one":                     {configMap: said, setting: "<default>", want: "seed-1"},
		"if there is one, but there is not":   {setting: "<default>"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.configMap != nil {
				builder = builder.WithObjects(tc.configMap.DeepCopy())
			}
			got, err := identityOf(t.Context(), builder.Build(), tc.setting)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("identityOf(%q) is %q, %v; want %q", tc.setting, got, err, tc.want)
			}
		})
	}
}
