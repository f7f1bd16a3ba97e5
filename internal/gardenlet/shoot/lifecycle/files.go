package lifecycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

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

// validAPIServerValues returns the values of the kube-apiserver of a Shoot in deletion, which must not depend on what only its owner can fix:
// parts of the configuration that refer to objects which are missing or invalid are left out. The other parts stay, as they may be what keeps
// users from creating what would have to be deleted, too.
func validAPIServerValues(ctx context.Context, gardenAPI client.Reader, source values.Source, replicas int32) (kubeapiserver.Values, error) {
	v, err := source.KubeAPIServer(replicas, kubeapiserver.Files{})
	if err != nil || v.Config == nil {
		return v, err
	}
	given := v.Config
	v.Config = given.DeepCopy()
	v.Config.AdmissionPlugins = nil
	for _, part := range parts(given) {
		with := v
		with.Config, with.Files = v.Config.DeepCopy(), v.Files.Copy()
		err := part.add(ctx, reader{gardenAPI: gardenAPI, namespace: source.Shoot.Namespace}, &with.Files)
		if err == nil {
			if part.plugin != nil {
				with.Config.AdmissionPlugins = append(with.Config.AdmissionPlugins, *part.plugin)
			}
			_, err = kubeapiserver.Objects(with)
		}
		switch {
		case err == nil:
			v = with
		case usersFault(err):
			logf.FromContext(ctx).Info("Deploying kube-apiserver of the deleted Shoot without a part of its configuration", "reason", err.Error())
		default:
			return v, err
		}
	}
	return v, nil
}

// apiServerFiles reads the objects in the garden to which the configuration of the kube-apiserver refers.
func apiServerFiles(ctx context.Context, gardenAPI client.Reader, shoot *corev1beta1.Shoot) (f kubeapiserver.Files, err error) {
	c := shoot.Spec.Kubernetes.KubeAPIServer
	if c == nil {
		return f, nil
	}
	for _, part := range parts(c) {
		if err := part.add(ctx, reader{gardenAPI: gardenAPI, namespace: shoot.Namespace}, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// part is a part of the configuration of the kube-apiserver that is valid or not whatever the other parts are.
type part struct {
	// add reads the files of the part.
	add func(context.Context, reader, *kubeapiserver.Files) error
	// plugin is the admission plugin that the part is, nil for other parts.
	plugin *corev1beta1.AdmissionPlugin
}

// parts returns the parts of a configuration that may refer to objects in the garden.
func parts(c *corev1beta1.KubeAPIServerConfig) []part {
	var out []part
	if audit := c.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		out = append(out, part{add: func(ctx context.Context, read reader, f *kubeapiserver.Files) (err error) {
			f.AuditPolicy, err = read.configMap(ctx, audit.AuditPolicy.ConfigMapRef.Name, auditPolicyKey)
			return err
		}})
	}
	if authentication := c.StructuredAuthentication; authentication != nil {
		out = append(out, part{add: func(ctx context.Context, read reader, f *kubeapiserver.Files) (err error) {
			f.Authentication, err = read.configMap(ctx, authentication.ConfigMapName, configKey)
			return err
		}})
	}
	if authorization := c.StructuredAuthorization; authorization != nil {
		out = append(out, part{add: func(ctx context.Context, read reader, f *kubeapiserver.Files) (err error) {
			if f.Authorization, err = read.configMap(ctx, authorization.ConfigMapName, configKey); err != nil {
				return err
			}
			for _, reference := range authorization.Kubeconfigs {
				if err := read.kubeconfig(ctx, &f.AuthorizationKubeconfigs, reference.AuthorizerName, reference.SecretName); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	for i := range c.AdmissionPlugins {
		plugin := &c.AdmissionPlugins[i]
		out = append(out, part{plugin: plugin, add: func(ctx context.Context, read reader, f *kubeapiserver.Files) error {
			if plugin.KubeconfigSecretName == nil {
				return nil
			}
			return read.kubeconfig(ctx, &f.AdmissionKubeconfigs, plugin.Name, *plugin.KubeconfigSecretName)
		}})
	}
	return out
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
