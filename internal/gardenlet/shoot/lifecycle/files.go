package lifecycle

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/pkg/errorcode"
)

const (
	// accessName is the Secret with which the gardenlet reaches the shoot, and accessLife for how long it does. Each run of the flow renews
	// it in time.
	accessName = "gardenlet-access"
	accessLife = 60 * 24 * time.Hour

	// Keys in objects that a Shoot refers to.
	auditPolicyKey, configKey, kubeconfigKey = "policy", "config.yaml", "kubeconfig"
)

// apiServerFiles reads what the configuration of the API server refers to in the garden.
func (h *hosted) apiServerFiles(ctx context.Context) (f kubeapiserver.Files, err error) {
	c := h.shoot.Spec.Kubernetes.KubeAPIServer
	if c == nil {
		return f, nil
	}
	if audit := c.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		if f.AuditPolicy, err = h.configMapKey(ctx, audit.AuditPolicy.ConfigMapRef.Name, auditPolicyKey); err != nil {
			return f, err
		}
	}
	if c.StructuredAuthentication != nil {
		if f.Authentication, err = h.configMapKey(ctx, c.StructuredAuthentication.ConfigMapName, configKey); err != nil {
			return f, err
		}
	}
	if authorization := c.StructuredAuthorization; authorization != nil {
		if f.Authorization, err = h.configMapKey(ctx, authorization.ConfigMapName, configKey); err != nil {
			return f, err
		}
		for _, reference := range authorization.Kubeconfigs {
			if err := h.kubeconfigOf(ctx, &f.AuthorizationKubeconfigs, reference.AuthorizerName, reference.SecretName); err != nil {
				return f, err
			}
		}
	}
	for _, plugin := range c.AdmissionPlugins {
		if plugin.KubeconfigSecretName == nil {
			continue
		}
		if err := h.kubeconfigOf(ctx, &f.AdmissionKubeconfigs, plugin.Name, *plugin.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (h *hosted) configMapKey(ctx context.Context, name, key string) (string, error) {
	configMap := &corev1.ConfigMap{}
	if err := h.live.Get(ctx, client.ObjectKey{Namespace: h.shoot.Namespace, Name: name}, configMap); err != nil {
		return "", fmt.Errorf("read ConfigMap %q in the garden: %w", name, err)
	}
	if configMap.Data[key] == "" {
		return "", errorcode.With(fmt.Errorf("ConfigMap %q in the garden has no key %q", name, key), corev1beta1.ErrorConfigurationProblem)
	}
	return configMap.Data[key], nil
}

func (h *hosted) kubeconfigOf(ctx context.Context, into *map[string][]byte, whose, name string) error {
	secret := &corev1.Secret{}
	if err := h.live.Get(ctx, client.ObjectKey{Namespace: h.shoot.Namespace, Name: name}, secret); err != nil {
		return fmt.Errorf("read Secret %q in the garden: %w", name, err)
	}
	if len(secret.Data[kubeconfigKey]) == 0 {
		return errorcode.With(fmt.Errorf("Secret %q in the garden has no key %q", name, kubeconfigKey), corev1beta1.ErrorConfigurationProblem)
	}
	if *into == nil {
		*into = map[string][]byte{}
	}
	(*into)[whose] = secret.Data[kubeconfigKey]
	return nil
}

// kubeconfig writes a kubeconfig without credentials. Whoever makes the token puts it in.
func kubeconfig(name, server string, ca []byte, token string) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil // a file of these plain types can always be written
	}
	return out
}

func parseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }
