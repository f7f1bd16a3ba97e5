package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryReferenceOfTheAPIServerIsRead(t *testing.T) {
	type references struct {
		Audit          corev1beta1.AuditPolicy              `json:"audit"`
		Authentication corev1beta1.StructuredAuthentication `json:"authentication"`
		Authorization  corev1beta1.StructuredAuthorization  `json:"authorization"`
		Plugin         corev1beta1.AdmissionPlugin          `json:"plugin"`
	}
	const other, component = "it is a ConfigMap of the project, and its name says which", "the component's"
	everyfield.Run(t, everyfield.Suite[references]{
		Base: func() *references {
			return &references{
				Audit:          corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "some"}},
				Authentication: corev1beta1.StructuredAuthentication{ConfigMapName: "some"},
				Authorization: corev1beta1.StructuredAuthorization{
					ConfigMapName: "some", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "some", SecretName: "some"}},
				},
				Plugin: corev1beta1.AdmissionPlugin{Name: "some", KubeconfigSecretName: new("some")},
			}
		},
		Render: func(t *testing.T, r *references) string {
			garden := fake.NewClientBuilder()
			for _, name := range []string{"some", "other"} {
				meta := metav1.ObjectMeta{Namespace: "garden-dev", Name: name}
				garden.WithObjects(
					&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{auditPolicyKey: name, configKey: name}},
					&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{kubeconfigKey: []byte(name)}},
				)
			}
			shoot := observedtest.State().Shoot
			shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
				AuditConfig: &corev1beta1.AuditConfig{AuditPolicy: &r.Audit}, AdmissionPlugins: []corev1beta1.AdmissionPlugin{r.Plugin},
				StructuredAuthentication: &r.Authentication, StructuredAuthorization: &r.Authorization,
			}
			files, err := apiServerFiles(t.Context(), garden.Build(), shoot)
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.Marshal(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		Exceptions: map[string]string{
			"audit.configMapRef.kind": other, "audit.configMapRef.namespace": other, "audit.configMapRef.uid": other, "audit.configMapRef.apiVersion": other,
			"audit.configMapRef.resourceVersion": other, "audit.configMapRef.fieldPath": other,
			"plugin.config": component, "plugin.disabled": component,
		},
	})
}
