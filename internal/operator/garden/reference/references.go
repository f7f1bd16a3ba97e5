package reference

import (
	"cmp"
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Kinds of objects that Gardens refer to.
const (
	secret    = "Secret"
	configMap = "ConfigMap"
)

// Ref names a Secret or a ConfigMap in the namespace "garden".
type Ref struct {
	Kind, Name string
}

// Of returns what a Garden refers to, sorted, each object once. A Garden that is being deleted needs all of it until gardener-operator has removed
// its finalizer: by then its DNSRecords, its BackupEntry and its BackupBucket are gone, which need their credentials to be deleted.
func Of(garden *operatorv1alpha1.Garden) []Ref {
	if garden.DeletionTimestamp != nil && !slices.Contains(garden.Finalizers, operatorv1alpha1.FinalizerName) {
		return nil
	}
	var l list
	spec := &garden.Spec
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			l.add(secret, provider.SecretRef.Name)
		}
	}
	for _, resource := range spec.Resources {
		if ref := resource.ResourceRef; ref.APIVersion == "v1" && (ref.Kind == secret || ref.Kind == configMap) {
			l.add(ref.Kind, ref.Name)
		}
	}
	virtual := &spec.VirtualCluster
	if etcd := virtual.ETCD; etcd != nil && etcd.Main != nil && etcd.Main.Backup != nil {
		l.add(secret, etcd.Main.Backup.SecretRef.Name)
	}
	if config := virtual.Kubernetes.KubeAPIServer; config != nil {
		l.addKubeAPIServer(config)
	}
	l.addGardener(&virtual.Gardener)
	slices.SortFunc(l, func(a, b Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(l)
}

// list collects references.
type list []Ref

// add adds a reference, unless its name is empty.
func (l *list) add(kind, name string) {
	if name != "" {
		*l = append(*l, Ref{kind, name})
	}
}

// addName adds a reference to an object whose name is optional.
func (l *list) addName(kind string, name *string) {
	if name != nil {
		l.add(kind, *name)
	}
}

func (l *list) addKubeAPIServer(config *operatorv1alpha1.KubeAPIServerConfig) {
	l.addAdmissionPlugins(config.AdmissionPlugins)
	l.addAudit(config.AuditConfig, config.AuditWebhook)
	if authn := config.StructuredAuthentication; authn != nil {
		l.add(configMap, authn.ConfigMapName)
	}
	if authz := config.StructuredAuthorization; authz != nil {
		l.add(configMap, authz.ConfigMapName)
		for _, kubeconfig := range authz.Kubeconfigs {
			l.add(secret, kubeconfig.SecretName)
		}
	}
	if config.Authentication != nil && config.Authentication.Webhook != nil {
		l.add(secret, config.Authentication.Webhook.KubeconfigSecretName)
	}
	if config.SNI != nil {
		l.addName(secret, config.SNI.SecretName)
	}
}

func (l *list) addGardener(config *operatorv1alpha1.Gardener) {
	if apiServer := config.GardenerAPIServer; apiServer != nil {
		l.addAdmissionPlugins(apiServer.AdmissionPlugins)
		l.addAudit(apiServer.AuditConfig, apiServer.AuditWebhook)
	}
	if dashboard := config.GardenerDashboard; dashboard != nil {
		l.addName(secret, dashboard.TLSSecretName)
		if ref := dashboard.FrontendConfigMapRef; ref != nil {
			l.add(configMap, ref.Name)
		}
		if ref := dashboard.AssetsConfigMapRef; ref != nil {
			l.add(configMap, ref.Name)
		}
		if dashboard.GitHub != nil {
			l.add(secret, dashboard.GitHub.SecretRef.Name)
		}
		if oidc := dashboard.OIDCConfig; oidc != nil {
			l.add(secret, oidc.SecretRef.Name)
			if ref := oidc.CertificateAuthoritySecretRef; ref != nil {
				l.add(secret, ref.Name)
			}
		}
	}
	if discovery := config.GardenerDiscoveryServer; discovery != nil {
		l.addName(secret, discovery.TLSSecretName)
	}
}

func (l *list) addAdmissionPlugins(plugins []corev1beta1.AdmissionPlugin) {
	for _, plugin := range plugins {
		l.addName(secret, plugin.KubeconfigSecretName)
	}
}

func (l *list) addAudit(config *corev1beta1.AuditConfig, webhook *operatorv1alpha1.AuditWebhook) {
	if config != nil && config.AuditPolicy != nil && config.AuditPolicy.ConfigMapRef != nil {
		l.add(configMap, config.AuditPolicy.ConfigMapRef.Name)
	}
	if webhook != nil {
		l.add(secret, webhook.KubeconfigSecretName)
	}
}

// namespace is where all of them are.
const namespace = constants.GardenNamespace
