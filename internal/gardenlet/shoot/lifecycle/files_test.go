package lifecycle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/pkg/errorcode"
)

// An API server that works goes on when what its Shoot refers to turns bad, and the owner of the Shoot is told what is wrong.
func TestBadFilesLeaveTheAPIServerAlone(t *testing.T) {
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	const kubeconfig = "clusters: [{name: a, cluster: {server: 'https://a.example'}}]\nusers: [{name: a, user: {token: x}}]\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
	s, w := newStage(t), example()
	w.shoot.Spec.Kubernetes.Version = "1.36.3"
	w.shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AuditConfig:      &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "policy"}}},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("webhook")}},
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot.Namespace, Name: "policy"}, Data: map[string]string{auditPolicyKey: policy}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot.Namespace, Name: "webhook"}, Data: map[string][]byte{kubeconfigKey: []byte(kubeconfig)}}
	for _, object := range []client.Object{configMap, secret} {
		if err := s.garden.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	h, _ := begun(t, s, w)
	deployment := func() *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		if err := s.seed.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: kubeapiserver.Name}, d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := deployment()

	for name, tc := range map[string]struct{ policy, kubeconfig, want string }{
		"audit policy": {strings.Replace(policy, "Metadata", "All", 1), kubeconfig, "audit policy: rules[0].level"},
		"kubeconfig":   {policy, strings.Replace(kubeconfig, "token: x", "exec: {command: x}", 1), "admission plugin ImagePolicyWebhook: kubeconfig: users[0].user.exec"},
	} {
		t.Run(name, func(t *testing.T) {
			configMap.Data[auditPolicyKey], secret.Data[kubeconfigKey] = tc.policy, []byte(tc.kubeconfig)
			for _, object := range []client.Object{configMap, secret} {
				if err := s.garden.Update(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			err := h.deployAPIServer(t.Context(), 1)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if diff := cmp.Diff([]corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}, errorcode.Of(err)); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, deployment()); diff != "" {
				t.Errorf("the Deployment has changed:\n%s", diff)
			}
		})
	}
}
