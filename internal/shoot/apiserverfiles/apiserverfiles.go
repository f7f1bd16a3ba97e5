// Package apiserverfiles checks the configuration files of kube-apiservers that Shoots refer to in ConfigMaps, before a Shoot or a ConfigMap is
// stored.
//
// Reads the ConfigMap, and for managed issuers the Namespace of the project and the Secret with their host. What a file may contain is checked in
// internal/validation/apiserverconfig, by the gardenlet as well before it deploys.
package apiserverfiles

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
)

// Keys of ConfigMaps.
const (
	AuditPolicyKey   = "policy"
	ConfigurationKey = "config.yaml"
)

// File is a kind of configuration file.
type File struct {
	name, key string
	// path is the field of a Shoot that names the ConfigMap, and configMap is its value.
	path      *field.Path
	configMap func(*corev1beta1.KubeAPIServerConfig) string
	// changed reports whether something else of a Shoot has changed that the file must fit to. It may be nil.
	changed func(shoot, old *corev1beta1.Shoot) bool
	// check returns what is wrong with a file for some shoots of a namespace, of which there is at least one.
	check func(ctx context.Context, gardenAPI client.Reader, text string, shoots []*corev1beta1.Shoot) (field.ErrorList, error)
}

var apiServer = field.NewPath("spec", "kubernetes", "kubeAPIServer")

// AuditPolicy says what a kube-apiserver logs.
var AuditPolicy = File{
	name: "audit policy", key: AuditPolicyKey, path: apiServer.Child("auditConfig", "auditPolicy", "configMapRef", "name"),
	configMap: func(c *corev1beta1.KubeAPIServerConfig) string {
		if c.AuditConfig == nil || c.AuditConfig.AuditPolicy == nil || c.AuditConfig.AuditPolicy.ConfigMapRef == nil {
			return ""
		}
		return c.AuditConfig.AuditPolicy.ConfigMapRef.Name
	},
	check: func(_ context.Context, _ client.Reader, text string, _ []*corev1beta1.Shoot) (field.ErrorList, error) {
		return apiserverconfig.AuditPolicy(text), nil
	},
}

// Authentication says whose tokens a kube-apiserver takes.
var Authentication = File{
	name: "structured authentication", key: ConfigurationKey, path: apiServer.Child("structuredAuthentication", "configMapName"),
	configMap: func(c *corev1beta1.KubeAPIServerConfig) string {
		if c.StructuredAuthentication == nil {
			return ""
		}
		return c.StructuredAuthentication.ConfigMapName
	},
	changed: authenticationChanged,
	check:   checkAuthentication,
}

// Authorization names the webhooks that a kube-apiserver asks.
var Authorization = File{
	name: "structured authorization", key: ConfigurationKey, path: apiServer.Child("structuredAuthorization", "configMapName"),
	configMap: func(c *corev1beta1.KubeAPIServerConfig) string {
		if c.StructuredAuthorization == nil {
			return ""
		}
		return c.StructuredAuthorization.ConfigMapName
	},
	changed: authorizationChanged,
	check:   checkAuthorization,
}

// ConfigMapName returns the name of the ConfigMap with the file of a Shoot. It is empty if the Shoot names none.
func (f File) ConfigMapName(shoot *corev1beta1.Shoot) string {
	if shoot.Spec.Kubernetes.KubeAPIServer == nil {
		return ""
	}
	return f.configMap(shoot.Spec.Kubernetes.KubeAPIServer)
}

// CheckShoot checks the file of a Shoot that is new, or that has changed in what the file must fit to. Its owner can correct what is in the list,
// but not the error.
func (f File) CheckShoot(ctx context.Context, gardenAPI client.Reader, shoot, old *corev1beta1.Shoot) (field.ErrorList, error) {
	name := f.ConfigMapName(shoot)
	if shoot.DeletionTimestamp != nil || name == "" || old != nil && !f.affected(shoot, old) {
		return nil, nil
	}
	configMap := &corev1.ConfigMap{}
	if err := gardenAPI.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, configMap); apierrors.IsNotFound(err) {
		return field.ErrorList{field.Invalid(f.path, name, "ConfigMap not found")}, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap \"%s/%s\": %w", shoot.Namespace, name, err)
	}
	errs, err := f.checkFile(ctx, gardenAPI, configMap.Data[f.key], []*corev1beta1.Shoot{shoot})
	for i, err := range errs {
		errs[i] = field.Invalid(f.path, name, err.Error())
	}
	return errs, err
}

func (f File) affected(shoot, old *corev1beta1.Shoot) bool {
	return f.ConfigMapName(shoot) != f.ConfigMapName(old) || shoot.Spec.Kubernetes.Version != old.Spec.Kubernetes.Version ||
		f.changed != nil && f.changed(shoot, old)
}

// CheckConfigMap checks a ConfigMap that changes, for those of the Shoots of its namespace that name it.
func (f File) CheckConfigMap(ctx context.Context, gardenAPI client.Reader, configMap, old *corev1.ConfigMap, shoots []corev1beta1.Shoot) (field.ErrorList, error) {
	var named []*corev1beta1.Shoot
	for i := range shoots {
		if f.ConfigMapName(&shoots[i]) == configMap.Name {
			named = append(named, &shoots[i])
		}
	}
	text := configMap.Data[f.key]
	if len(named) == 0 || text != "" && text == old.Data[f.key] {
		return nil, nil
	}
	return f.checkFile(ctx, gardenAPI, text, named)
}

// checkFile checks a file for some shoots. Paths begin with the key in the ConfigMap.
func (f File) checkFile(ctx context.Context, gardenAPI client.Reader, text string, shoots []*corev1beta1.Shoot) (field.ErrorList, error) {
	path := field.NewPath("data").Key(f.key)
	if text == "" {
		return field.ErrorList{field.Required(path, "must have the "+f.name+" of Shoots")}, nil
	}
	errs, err := f.check(ctx, gardenAPI, text, shoots)
	for _, err := range errs {
		err.Field = path.String() + "." + err.Field
	}
	return errs, err
}
