package values

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/pkg/errorcode"
)

// Keys in objects that a Garden refers to.
const auditPolicyKey, configKey, kubeconfigKey = "policy", "config.yaml", "kubeconfig"

// Files are the contents of objects that the configuration of the kube-apiserver refers to.
type Files struct {
	kubeapiserver.Files
	// AuditWebhook and AuthenticationWebhook are kubeconfigs.
	AuditWebhook, AuthenticationWebhook []byte
	// SNISecret is the name of the Secret with the certificate for more names. It is used as it is.
	SNISecret string
}

// ReadFiles reads the objects in the namespace of the garden to which the configuration of its kube-apiserver refers.
func ReadFiles(ctx context.Context, runtimeAPI client.Reader, garden *operatorv1alpha1.Garden) (f Files, err error) {
	c := Source{Garden: garden}.config()
	if c == nil {
		return f, nil
	}
	r := reader{runtimeAPI}
	if audit := c.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		if f.AuditPolicy, err = r.configMap(ctx, audit.AuditPolicy.ConfigMapRef.Name, auditPolicyKey); err != nil {
			return f, err
		}
	}
	if c.StructuredAuthentication != nil {
		if f.Authentication, err = r.configMap(ctx, c.StructuredAuthentication.ConfigMapName, configKey); err != nil {
			return f, err
		}
	}
	if authorization := c.StructuredAuthorization; authorization != nil {
		if f.Authorization, err = r.configMap(ctx, authorization.ConfigMapName, configKey); err != nil {
			return f, err
		}
		f.AuthorizationKubeconfigs = map[string][]byte{}
		for _, reference := range authorization.Kubeconfigs {
			if f.AuthorizationKubeconfigs[reference.AuthorizerName], err = r.kubeconfig(ctx, reference.SecretName); err != nil {
				return f, err
			}
		}
	}
	f.AdmissionKubeconfigs = map[string][]byte{}
	for _, plugin := range c.AdmissionPlugins {
		if plugin.KubeconfigSecretName == nil {
			continue
		}
		if f.AdmissionKubeconfigs[plugin.Name], err = r.kubeconfig(ctx, *plugin.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	if c.AuditWebhook != nil {
		if f.AuditWebhook, err = r.kubeconfig(ctx, c.AuditWebhook.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	if c.Authentication != nil && c.Authentication.Webhook != nil {
		if f.AuthenticationWebhook, err = r.kubeconfig(ctx, c.Authentication.Webhook.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	if c.SNI != nil {
		f.SNISecret, err = r.certificate(ctx, c.SNI.SecretName)
	}
	return f, err
}

// reader reads objects in the namespace of the garden.
type reader struct {
	runtimeAPI client.Reader
}

// configMap reads one key of a ConfigMap.
func (r reader) configMap(ctx context.Context, name, key string) (string, error) {
	configMap := &corev1.ConfigMap{}
	if err := r.runtimeAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, configMap); err != nil {
		return "", errorcode.IfNotFound(fmt.Errorf("read ConfigMap \"%s/%s\": %w", namespace, name, err), corev1beta1.ErrorConfigurationProblem)
	}
	if configMap.Data[key] == "" {
		return "", missing("ConfigMap", name, key)
	}
	return configMap.Data[key], nil
}

// kubeconfig reads the kubeconfig in a Secret.
func (r reader) kubeconfig(ctx context.Context, name string) ([]byte, error) {
	secret, err := r.secret(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(secret.Data[kubeconfigKey]) == 0 {
		return nil, missing("Secret", name, kubeconfigKey)
	}
	return secret.Data[kubeconfigKey], nil
}

// certificate returns the name of the Secret with a certificate: the one that the Garden names, or the one that is labelled for it.
func (r reader) certificate(ctx context.Context, name *string) (string, error) {
	var secret *corev1.Secret
	if name != nil {
		var err error
		if secret, err = r.secret(ctx, *name); err != nil {
			return "", err
		}
	} else {
		list := &corev1.SecretList{}
		if err := r.runtimeAPI.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{
			constants.GardenRole: constants.GardenRoleGardenWildcardCert,
		}); err != nil {
			return "", fmt.Errorf("list Secrets with the wildcard certificate of the garden: %w", err)
		}
		list.Items = slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return s.DeletionTimestamp != nil })
		if len(list.Items) != 1 {
			return "", errorcode.With(fmt.Errorf("spec.virtualCluster.kubernetes.kubeAPIServer.sni has no secretName, and %d Secrets have the label %s=%s: exactly one must have it",
				len(list.Items), constants.GardenRole, constants.GardenRoleGardenWildcardCert), corev1beta1.ErrorConfigurationProblem)
		}
		secret = &list.Items[0]
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return "", missing("Secret", secret.Name, key)
		}
	}
	// A kube-apiserver does not start with a certificate that it cannot read. One that is replaced later is ignored then.
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return "", errorcode.With(fmt.Errorf("read the certificate in Secret \"%s/%s\": %w", namespace, secret.Name, err), corev1beta1.ErrorConfigurationProblem)
	}
	return secret.Name, nil
}

func (r reader) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.runtimeAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, errorcode.IfNotFound(fmt.Errorf("read Secret \"%s/%s\": %w", namespace, name, err), corev1beta1.ErrorConfigurationProblem)
	}
	return secret, nil
}

func missing(kind, name, key string) error {
	return errorcode.With(fmt.Errorf("%s \"%s/%s\" has no key %q", kind, namespace, name, key), corev1beta1.ErrorConfigurationProblem)
}

// ReadGardenerAPIServerFiles reads the objects in the namespace of the garden to which the configuration of gardener-apiserver refers.
func ReadGardenerAPIServerFiles(ctx context.Context, runtimeAPI client.Reader, garden *operatorv1alpha1.Garden) (f gardenerapiserver.Files, err error) {
	c := garden.Spec.VirtualCluster.Gardener.GardenerAPIServer
	if c == nil {
		return f, nil
	}
	r := reader{runtimeAPI}
	if audit := c.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		if f.AuditPolicy, err = r.configMap(ctx, audit.AuditPolicy.ConfigMapRef.Name, auditPolicyKey); err != nil {
			return f, err
		}
	}
	if c.AuditWebhook != nil {
		if f.AuditWebhookKubeconfig, err = r.kubeconfig(ctx, c.AuditWebhook.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	f.AdmissionKubeconfigs = map[string][]byte{}
	for _, plugin := range c.AdmissionPlugins {
		if plugin.KubeconfigSecretName == nil {
			continue
		}
		if f.AdmissionKubeconfigs[plugin.Name], err = r.kubeconfig(ctx, *plugin.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	return f, nil
}
