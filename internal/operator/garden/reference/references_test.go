package reference

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

func audit(name string) *corev1beta1.AuditConfig {
	return &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: name}}}
}

func newGarden() *operatorv1alpha1.Garden {
	named := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	plugin := func(name string) []corev1beta1.AdmissionPlugin {
		return []corev1beta1.AdmissionPlugin{{Name: "a"}, {Name: "b", KubeconfigSecretName: new(name)}}
	}
	g := &operatorv1alpha1.Garden{}
	g.Spec.DNS = &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{
		{Name: "a", SecretRef: *named("dns")}, {Name: "b", SecretRef: *named("dns")},
	}}
	for _, kind := range []string{"Secret", "ConfigMap", "Pod"} {
		g.Spec.Resources = append(g.Spec.Resources, corev1beta1.NamedResourceReference{
			ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: "resource"},
		})
	}
	g.Spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{SecretRef: *named("backup")}}}
	g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{
		KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{
			AuditConfig: audit("kube-policy"), AdmissionPlugins: plugin("kube-plugin"),
			StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
			StructuredAuthorization: &corev1beta1.StructuredAuthorization{
				ConfigMapName: "authorization", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{SecretName: "authorizer"}},
			},
		},
		AuditWebhook:   &operatorv1alpha1.AuditWebhook{KubeconfigSecretName: "kube-audit"},
		Authentication: &operatorv1alpha1.Authentication{Webhook: &operatorv1alpha1.AuthenticationWebhook{KubeconfigSecretName: "authenticator"}},
		SNI:            &operatorv1alpha1.SNI{SecretName: new("sni")},
	}
	g.Spec.VirtualCluster.Gardener = operatorv1alpha1.Gardener{
		GardenerAPIServer: &operatorv1alpha1.GardenerAPIServerConfig{
			AuditConfig: audit("gardener-policy"), AdmissionPlugins: plugin("gardener-plugin"),
			AuditWebhook: &operatorv1alpha1.AuditWebhook{KubeconfigSecretName: "gardener-audit"},
		},
		GardenerDashboard: &operatorv1alpha1.GardenerDashboardConfig{
			FrontendConfigMapRef: named("frontend"), AssetsConfigMapRef: named("assets"), TLSSecretName: new("dashboard-tls"),
			GitHub:     &operatorv1alpha1.DashboardGitHub{SecretRef: *named("github")},
			OIDCConfig: &operatorv1alpha1.DashboardOIDC{SecretRef: *named("oidc"), CertificateAuthoritySecretRef: named("oidc-ca")},
		},
		GardenerDiscoveryServer: &operatorv1alpha1.GardenerDiscoveryServerConfig{TLSSecretName: new("discovery-tls")},
	}
	return g
}

func TestOf(t *testing.T) {
	want := []Ref{
		{configMap, "assets"},
		{configMap, "authentication"},
		{configMap, "authorization"},
		{configMap, "frontend"},
		{configMap, "gardener-policy"},
		{configMap, "kube-policy"},
		{configMap, "resource"},
		{secret, "authenticator"},
		{secret, "authorizer"},
		{secret, "backup"},
		{secret, "dashboard-tls"},
		{secret, "discovery-tls"},
		{secret, "dns"},
		{secret, "gardener-audit"},
		{secret, "gardener-plugin"},
		{secret, "github"},
		{secret, "kube-audit"},
		{secret, "kube-plugin"},
		{secret, "oidc"},
		{secret, "oidc-ca"},
		{secret, "resource"},
		{secret, "sni"},
	}
	deleted := func(finalizers ...string) func(*operatorv1alpha1.Garden) {
		return func(g *operatorv1alpha1.Garden) {
			g.DeletionTimestamp, g.Finalizers = &metav1.Time{Time: time.Now()}, finalizers
		}
	}
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Garden)
		want   []Ref
	}{
		"all":                             {func(*operatorv1alpha1.Garden) {}, want},
		"nothing":                         {func(g *operatorv1alpha1.Garden) { g.Spec = operatorv1alpha1.GardenSpec{} }, nil},
		"DNSRecords and backups go":       {deleted(operatorv1alpha1.FinalizerName, constants.FinalizerReferenceProtection), want},
		"DNSRecords and backups are gone": {deleted(constants.FinalizerReferenceProtection), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden()
			tc.change(g)
			if diff := cmp.Diff(tc.want, Of(g)); diff != "" {
				t.Errorf("Of() (-want +got):\n%s", diff)
			}
		})
	}
}
