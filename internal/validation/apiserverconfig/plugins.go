// Package apiserverconfig checks the configuration files of kube-apiservers that users write.
//
// A file that its kube-apiserver does not take keeps it from starting, and a path in a file is one of the seed's. So files are decoded as
// strictly as can be, without paths, and checked by the same rules as there.
package apiserverconfig

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcequotav1 "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/v1"
	podsecurityload "k8s.io/pod-security-admission/admission/api/load"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	podsecurityvalidation "k8s.io/pod-security-admission/admission/api/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const configGroup = "apiserver.config.k8s.io"

// KubeconfigPlugins are the admission plugins that call webhooks, and take a kubeconfig for it.
var KubeconfigPlugins = []string{"ImagePolicyWebhook", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}

// ConfigurablePlugins are the admission plugins that take a configuration.
var ConfigurablePlugins = append([]string{
	"EventRateLimit", "LimitRanger", "PodNodeSelector", "PodSecurity", "PodTolerationRestriction", "ResourceQuota",
}, KubeconfigPlugins...)

// AdmissionPlugin checks what the Shoot says of an admission plugin that is turned on, and returns the configuration for its kube-apiserver,
// written again from the fields that are allowed. It is nil if the plugin needs none. kubeconfig is the path of the file that is made of the
// plugin's kubeconfig Secret, or empty if there is none: no other path gets into the configuration, whatever the user's says.
func AdmissionPlugin(plugin corev1beta1.AdmissionPlugin, kubeconfig string, path *field.Path) ([]byte, field.ErrorList) {
	if kubeconfig != "" && !slices.Contains(KubeconfigPlugins, plugin.Name) {
		return nil, field.ErrorList{field.Forbidden(path.Child("kubeconfigSecretName"), "is for plugins that call webhooks")}
	}
	var raw []byte
	if plugin.Config != nil && string(plugin.Config.Raw) != "null" {
		raw = plugin.Config.Raw
	}
	switch at := path.Child("config"); plugin.Name {
	case "EventRateLimit":
		if len(raw) == 0 {
			return nil, field.ErrorList{field.Required(at, "must be set, as the plugin has no default")}
		}
		return configuration(raw, at, validateEventRateLimit)
	case "ImagePolicyWebhook":
		if kubeconfig == "" {
			return nil, field.ErrorList{field.Required(path.Child("kubeconfigSecretName"), "must be set, as the plugin calls a webhook")}
		}
		return imagePolicy(raw, kubeconfig, at)
	case "LimitRanger":
		_, errs := configuration(raw, at, func(*map[string]any, *field.Path) field.ErrorList { return nil })
		return nil, errs // the plugin reads none
	case "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook":
		return webhooks(raw, kubeconfig, at)
	case "PodNodeSelector":
		return configuration(raw, at, func(*podNodeSelector, *field.Path) field.ErrorList { return nil })
	case "PodSecurity":
		return configuration(raw, at, validatePodSecurity)
	case "PodTolerationRestriction":
		return configuration(raw, at, validatePodTolerations)
	case "ResourceQuota":
		return configuration(raw, at, validateResourceQuota)
	default:
		if plugin.Config != nil {
			return nil, field.ErrorList{field.Forbidden(at, "this plugin has no configuration")}
		}
		return nil, nil
	}
}

// configuration decodes the configuration of a plugin into the struct with what it may have, checks it, and writes it again.
func configuration[T any](raw []byte, path *field.Path, validate func(*T, *field.Path) field.ErrorList) ([]byte, field.ErrorList) {
	if len(raw) == 0 {
		return nil, nil
	}
	config := new(T)
	if errs := decode(raw, config, path); len(errs) > 0 {
		return nil, errs
	}
	if errs := validate(config, path); len(errs) > 0 {
		return nil, errs
	}
	return write(config, path)
}

func write(config any, path *field.Path) ([]byte, field.ErrorList) {
	data, err := json.Marshal(config)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(path, err)}
	}
	return data, nil
}

// decode reads YAML or JSON with each key once, no keys that the type does not have, and names in the case that they have there. Some plugins
// read names in any case: of two that differ in it only, they would take the one that we have not looked at.
func decode(raw []byte, into any, path *field.Path) field.ErrorList {
	data, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "is no YAML or JSON with each key once")}
	}
	if !strings.HasPrefix(string(data), "{") {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "is no object")}
	}
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		unknown = append(unknown, err)
	}
	var errs field.ErrorList
	for _, err := range unknown {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	return errs
}

// ofKind checks that a configuration is of one of some kinds, such as "PodSecurityConfiguration" of "pod-security.admission.config.k8s.io/v1".
func ofKind(meta *metav1.TypeMeta, path *field.Path, kinds ...metav1.TypeMeta) field.ErrorList {
	if slices.Contains(kinds, *meta) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a "+kinds[0].Kind+" of "+kinds[0].APIVersion)}
}

type webhookAdmission struct {
	metav1.TypeMeta `json:",inline"`
	KubeConfigFile  string `json:"kubeConfigFile"`
}

// webhooks names the kubeconfig, which is all that the configuration can say. There is a directory with webhooks in newer versions, too, which
// users cannot put anything into.
func webhooks(raw []byte, kubeconfig string, path *field.Path) ([]byte, field.ErrorList) {
	ours := metav1.TypeMeta{APIVersion: configGroup + "/v1", Kind: "WebhookAdmissionConfiguration"}
	given := webhookAdmission{TypeMeta: ours}
	if len(raw) > 0 {
		if errs := decode(raw, &given, path); len(errs) > 0 {
			return nil, errs
		}
		if errs := ofKind(&given.TypeMeta, path, ours, metav1.TypeMeta{APIVersion: configGroup + "/v1alpha1", Kind: "WebhookAdmission"}); len(errs) > 0 {
			return nil, errs
		}
	}
	if kubeconfig == "" {
		return nil, nil
	}
	return write(webhookAdmission{TypeMeta: ours, KubeConfigFile: kubeconfig}, path)
}

type imagePolicyConfiguration struct {
	ImagePolicy imagePolicyWebhook `json:"imagePolicy"`
	// The plugin reads none of these.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

type imagePolicyWebhook struct {
	KubeConfigFile string `json:"kubeConfigFile"`
	// Seconds, and the last one milliseconds. 0 is the default, -1 is none.
	AllowTTL     int64 `json:"allowTTL,omitempty"`
	DenyTTL      int64 `json:"denyTTL,omitempty"`
	RetryBackoff int64 `json:"retryBackoff,omitempty"`
	DefaultAllow bool  `json:"defaultAllow,omitempty"`
}

// Bounds of the plugin: half an hour, and five minutes.
const maxTTLSeconds, maxRetryBackoffMillis = 30 * 60, 5 * 60 * 1000

func imagePolicy(raw []byte, kubeconfig string, path *field.Path) ([]byte, field.ErrorList) {
	config := imagePolicyConfiguration{}
	if len(raw) > 0 {
		if errs := decode(raw, &config, path); len(errs) > 0 {
			return nil, errs
		}
	}
	policy := &config.ImagePolicy
	var errs field.ErrorList
	for _, d := range []struct {
		name           string
		value, highest int64
	}{
		{"allowTTL", policy.AllowTTL, maxTTLSeconds}, {"denyTTL", policy.DenyTTL, maxTTLSeconds}, {"retryBackoff", policy.RetryBackoff, maxRetryBackoffMillis},
	} {
		if d.value < -1 || d.value > d.highest {
			errs = append(errs, field.Invalid(path.Child("imagePolicy", d.name), d.value, "is out of bounds"))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	policy.KubeConfigFile = kubeconfig
	return write(imagePolicyConfiguration{ImagePolicy: *policy}, path)
}

type podNodeSelector struct {
	PodNodeSelectorPluginConfig map[string]string `json:"podNodeSelectorPluginConfig"`
}

type eventRateLimit struct {
	metav1.TypeMeta `json:",inline"`
	Limits          []eventLimit `json:"limits"`
}

type eventLimit struct {
	Type      string `json:"type"`
	QPS       int32  `json:"qps"`
	Burst     int32  `json:"burst"`
	CacheSize int32  `json:"cacheSize,omitempty"`
}

func validateEventRateLimit(config *eventRateLimit, path *field.Path) field.ErrorList {
	errs := ofKind(&config.TypeMeta, path, metav1.TypeMeta{APIVersion: "eventratelimit.admission.k8s.io/v1alpha1", Kind: "Configuration"})
	path = path.Child("limits")
	if len(config.Limits) == 0 {
		errs = append(errs, field.Required(path, "must have at least one entry"))
	}
	for i, limit := range config.Limits {
		path := path.Index(i)
		if types := []string{"Server", "Namespace", "User", "SourceAndObject"}; !slices.Contains(types, limit.Type) {
			errs = append(errs, field.NotSupported(path.Child("type"), limit.Type, types))
		}
		if limit.QPS <= 0 {
			errs = append(errs, field.Invalid(path.Child("qps"), limit.QPS, "must be above zero"))
		}
		if limit.Burst <= 0 {
			errs = append(errs, field.Invalid(path.Child("burst"), limit.Burst, "must be above zero"))
		}
		if limit.CacheSize < 0 {
			errs = append(errs, field.Invalid(path.Child("cacheSize"), limit.CacheSize, "must not be negative"))
		}
	}
	return errs
}

// validatePodSecurity has the plugin's own library decide. Versions of its configuration differ in their names only. The namespace kube-system
// is always exempt: system components need privileges.
func validatePodSecurity(config *podsecurityv1.PodSecurityConfiguration, path *field.Path) field.ErrorList {
	const kind, group = "PodSecurityConfiguration", "pod-security.admission.config.k8s.io/"
	var kinds []metav1.TypeMeta
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		kinds = append(kinds, metav1.TypeMeta{APIVersion: group + version, Kind: kind})
	}
	if errs := ofKind(&config.TypeMeta, path, kinds...); len(errs) > 0 {
		return errs
	}
	config.TypeMeta = kinds[0]
	data, errs := write(config, path)
	if len(errs) > 0 {
		return errs
	}
	loaded, err := podsecurityload.LoadFromData(data)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	var invalid field.ErrorList
	for _, err := range podsecurityvalidation.ValidatePodSecurityConfiguration(loaded) { // as the original has it, all are errors of the whole
		invalid = append(invalid, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	if exempt := &config.Exemptions.Namespaces; !slices.Contains(*exempt, metav1.NamespaceSystem) {
		*exempt = append(*exempt, metav1.NamespaceSystem)
	}
	return invalid
}

func validateResourceQuota(config *resourcequotav1.Configuration, path *field.Path) field.ErrorList {
	ours := metav1.TypeMeta{APIVersion: configGroup + "/v1", Kind: "ResourceQuotaConfiguration"}
	errs := ofKind(&config.TypeMeta, path, ours,
		metav1.TypeMeta{APIVersion: "resourcequota.admission.k8s.io/v1beta1", Kind: "Configuration"},
		metav1.TypeMeta{APIVersion: "resourcequota.admission.k8s.io/v1alpha1", Kind: "Configuration"})
	config.TypeMeta = ours
	for i, resource := range config.LimitedResources {
		if resource.Resource == "" {
			errs = append(errs, field.Required(path.Child("limitedResources").Index(i).Child("resource"), "must be set"))
		}
	}
	return errs
}

type podTolerations struct {
	metav1.TypeMeta `json:",inline"`
	Default         []corev1.Toleration `json:"default,omitempty"`
	Whitelist       []corev1.Toleration `json:"whitelist,omitempty"`
}

func validatePodTolerations(config *podTolerations, path *field.Path) field.ErrorList {
	errs := ofKind(&config.TypeMeta, path, metav1.TypeMeta{APIVersion: "podtolerationrestriction.admission.k8s.io/v1alpha1", Kind: "Configuration"})
	for i := range config.Default {
		errs = append(errs, validateToleration(&config.Default[i], path.Child("default").Index(i))...)
	}
	for i := range config.Whitelist {
		errs = append(errs, validateToleration(&config.Whitelist[i], path.Child("whitelist").Index(i))...)
	}
	return errs
}

// validateToleration has the rules of kube-apiservers for Pods.
func validateToleration(t *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		for _, message := range validation.IsQualifiedName(t.Key) {
			errs = append(errs, field.Invalid(path.Child("key"), t.Key, message))
		}
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "must be Exists without a key"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		for _, message := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, message))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, "must be empty if the operator is Exists"))
		}
	default: // others need a feature gate
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, effects[1:]))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(path.Child("effect"), t.Effect, "must be NoExecute with tolerationSeconds"))
	}
	return errs
}
