package lifecycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/shoot/values"
	"gardener.cloud/gardener/pkg/errorcode"
)

// Keys in objects that a Shoot refers to.
const auditPolicyKey, configKey, kubeconfigKey = "policy", "config.yaml", "kubeconfig"

// apiServerValues returns the values of the kube-apiserver, with which it can be rendered.
func apiServerValues(ctx context.Context, gardenAPI client.Reader, source values.Source, replicas int32) (kubeapiserver.Values, error) {
	files, err := apiServerFiles(ctx, gardenAPI, source.Shoot)
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	v, err := source.KubeAPIServer(replicas, files)
	if err == nil {
		_, err = kubeapiserver.Objects(v)
	}
	return v, err
}

// usersFault is whether an error is about an object or a field that only the owner of the Shoot can fix.
func usersFault(err error) bool {
	return apierrors.IsNotFound(err) || slices.Contains(errorcode.Of(err), corev1beta1.ErrorConfigurationProblem)
}

// withoutPlugins returns the configuration without the admission plugins that it enables. They are not needed by a cluster that is deleted,
// which must not depend on what their configuration refers to.
func withoutPlugins(config *corev1beta1.KubeAPIServerConfig) *corev1beta1.KubeAPIServerConfig {
	if config == nil {
		return nil
	}
	config = config.DeepCopy()
	config.AdmissionPlugins = slices.DeleteFunc(config.AdmissionPlugins, func(p corev1beta1.AdmissionPlugin) bool { return !ptr.Deref(p.Disabled, false) })
	return config
}

// apiServerFiles reads the objects in the garden to which the configuration of the kube-apiserver refers.
func apiServerFiles(ctx context.Context, gardenAPI client.Reader, shoot *corev1beta1.Shoot) (f kubeapiserver.Files, err error) {
	c := shoot.Spec.Kubernetes.KubeAPIServer
	if c == nil {
		return f, nil
	}
	read := reader{gardenAPI: gardenAPI, namespace: shoot.Namespace}
	if audit := c.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		if f.AuditPolicy, err = read.configMap(ctx, audit.AuditPolicy.ConfigMapRef.Name, auditPolicyKey); err != nil {
			return f, err
		}
	}
	if c.StructuredAuthentication != nil {
		if f.Authentication, err = read.configMap(ctx, c.StructuredAuthentication.ConfigMapName, configKey); err != nil {
			return f, err
		}
	}
	if authorization := c.StructuredAuthorization; authorization != nil {
		if f.Authorization, err = read.configMap(ctx, authorization.ConfigMapName, configKey); err != nil {
			return f, err
		}
		for _, reference := range authorization.Kubeconfigs {
			if err := read.kubeconfig(ctx, &f.AuthorizationKubeconfigs, reference.AuthorizerName, reference.SecretName); err != nil {
				return f, err
			}
		}
	}
	for _, plugin := range c.AdmissionPlugins {
		if plugin.KubeconfigSecretName == nil {
			continue
		}
		if err := read.kubeconfig(ctx, &f.AdmissionKubeconfigs, plugin.Name, *plugin.KubeconfigSecretName); err != nil {
			return f, err
		}
	}
	return f, nil
}

// reader reads objects in the namespace of a project.
type reader struct {
	gardenAPI client.Reader
	namespace string
}

// configMap reads one key of a ConfigMap.
func (r reader) configMap(ctx context.Context, name, key string) (string, error) {
	configMap := &corev1.ConfigMap{}
	if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, configMap); err != nil {
		return "", errorcode.IfNotFound(fmt.Errorf("read ConfigMap %q in the garden: %w", name, err), corev1beta1.ErrorConfigurationProblem)
	}
	if configMap.Data[key] == "" {
		return "", errorcode.With(fmt.Errorf("ConfigMap %q in the garden has no key %q", name, key), corev1beta1.ErrorConfigurationProblem)
	}
	return configMap.Data[key], nil
}

// kubeconfig reads the kubeconfig in a Secret into a map, for its user.
func (r reader) kubeconfig(ctx context.Context, into *map[string][]byte, user, name string) error {
	secret := &corev1.Secret{}
	if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, secret); err != nil {
		return errorcode.IfNotFound(fmt.Errorf("read Secret %q in the garden: %w", name, err), corev1beta1.ErrorConfigurationProblem)
	}
	if len(secret.Data[kubeconfigKey]) == 0 {
		return errorcode.With(fmt.Errorf("Secret %q in the garden has no key %q", name, kubeconfigKey), corev1beta1.ErrorConfigurationProblem)
	}
	if *into == nil {
		*into = map[string][]byte{}
	}
	(*into)[user] = secret.Data[kubeconfigKey]
	return nil
}
