package kubeapiserver

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
	"gardener.cloud/gardener/internal/validation/kubeconfig"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/immutable"
)

const (
	configKey = "config.yaml"

	kindAdmission      = "AdmissionConfiguration"
	kindAuthentication = "AuthenticationConfiguration"
	kindAuthorization  = "AuthorizationConfiguration"

	admissionKubeconfigs = "admission-kubeconfigs"

	// volumeAuditPolicy is the original's name: extensions add a volume audit-policy with their own policy beside it.
	volumeAuditPolicy = "audit-policy-config"
)

// authenticationGA is the first version in which the authentication configuration has its final version.
var authenticationGA = version.MustParseGeneric("1.34")

// healthPaths may be requested without credentials: by the kubelet, and by any user who checks whether the kube-apiserver is available.
var healthPaths = []string{"/livez", "/readyz", "/healthz"}

// configMap adds a ConfigMap with configuration, mounts it, and returns the directory it is in.
func (r *renderer) configMap(name string, data map[string]string) string {
	object := immutable.ConfigMap(r.Namespace, r.Of.Name(Name)+"-"+name, data)
	r.objects = append(r.objects, object)
	return r.mountConfig(name, workload.ConfigMapVolume(name, object.Name))
}

// secretConfig adds a Secret with configuration and some more labels, mounts it, and returns the directory it is in.
func (r *renderer) secretConfig(name string, data map[string][]byte, labels map[string]string) string {
	object := immutable.Secret(r.Namespace, r.Of.Name(Name)+"-"+name, data)
	maps.Copy(object.Labels, labels)
	r.objects = append(r.objects, object)
	return r.mountConfig(name, workload.SecretVolume(name, object.Name))
}

func (r *renderer) mountConfig(name string, volume corev1.Volume) string {
	r.volumes = append(r.volumes, volume)
	r.mounts = append(r.mounts, corev1.VolumeMount{Name: name, MountPath: dirConfig + name, ReadOnly: true})
	return dirConfig + name + "/"
}

// audit configures the audit log with the policy of the user. Without one nothing is logged, but the file exists for extensions that send the
// log elsewhere.
func (r *renderer) audit() error {
	policy := r.Files.AuditPolicy
	if policy == "" {
		policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n"
	} else {
		if err := refused("audit policy", apiserverconfig.AuditPolicy(policy)); err != nil {
			return err
		}
		r.set("audit-log-path", dirAuditLog+"/audit.log")
		r.set("audit-log-maxsize", "100")
		r.set("audit-log-maxbackup", "5")
		r.volumes = append(r.volumes, corev1.Volume{Name: "audit-log", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		r.mounts = append(r.mounts, corev1.VolumeMount{Name: "audit-log", MountPath: dirAuditLog})
	}
	r.set("audit-policy-file", r.configMap(volumeAuditPolicy, map[string]string{"audit-policy.yaml": policy})+"audit-policy.yaml")
	return nil
}

// authentication rejects requests without credentials, except those of healthPaths, unless the Shoot allows them.
func (r *renderer) authentication() error {
	config := map[string]any{}
	if text := r.Files.Authentication; text != "" {
		if err := refused("structured authentication", apiserverconfig.Authentication(text, r.version, r.flags["service-account-issuer"])); err != nil {
			return err
		}
		if r.Tunnel == nil && apiserverconfig.SelectsEgress(text) {
			return refused("structured authentication", field.ErrorList{field.Forbidden(field.NewPath("jwt"), "egressSelectorType needs nodes")})
		}
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			return fmt.Errorf("structured authentication: %w", err)
		}
	} else {
		apiVersion := apiserverv1.SchemeGroupVersion
		if r.version.LessThan(authenticationGA) {
			apiVersion = apiserverv1beta1.ConfigSchemeGroupVersion
		}
		config["apiVersion"], config["kind"] = apiVersion.String(), kindAuthentication
	}
	allowed := r.config.EnableAnonymousAuthentication //nolint:staticcheck // in use up to Kubernetes 1.34
	anonymous, _ := config["anonymous"].(map[string]any)
	switch enabled, _ := anonymous["enabled"].(bool); {
	case anonymous == nil && allowed != nil && *allowed:
		config["anonymous"] = map[string]any{"enabled": true}
	case !enabled:
		config["anonymous"] = map[string]any{"enabled": true, "conditions": withHealth(nil)}
	default:
		if conditions, ok := anonymous["conditions"].([]any); ok && len(conditions) > 0 {
			anonymous["conditions"] = withHealth(conditions)
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	r.set("authentication-config", r.configMap("authentication-config", map[string]string{configKey: string(text)})+configKey)
	return nil
}

// withHealth adds the paths that are always open to conditions of anonymous requests.
func withHealth(conditions []any) []any {
	for _, path := range healthPaths {
		if !slices.ContainsFunc(conditions, func(c any) bool { have, _ := c.(map[string]any); return have["path"] == path }) {
			conditions = append(conditions, map[string]any{"path": path})
		}
	}
	return conditions
}

// authorization configures the authorizers: Node, then RBAC, then webhooks: those of Gardener, then those of the user.
func (r *renderer) authorization() error {
	config := map[string]any{"apiVersion": apiserverv1.SchemeGroupVersion.String(), "kind": kindAuthorization}
	authorizers := []any{}
	if !r.Workerless {
		authorizers = append(authorizers, map[string]any{"type": "Node", "name": apiserverconfig.AuthorizerNode})
	}
	authorizers = append(authorizers, map[string]any{"type": "RBAC", "name": apiserverconfig.AuthorizerRBAC})
	kubeconfigs := map[string][]byte{}
	if r.NodeAgents != nil {
		kubeconfigs[apiserverconfig.AuthorizerNodeAgents] = r.NodeAgents.Kubeconfig
		authorizers = append(authorizers, nodeAgentAuthorizer())
	}
	if r.Garden != nil {
		kubeconfigs[gardeneradmissioncontroller.AuthorizerSeeds] = r.Garden.SeedsKubeconfig
		kubeconfigs[gardeneradmissioncontroller.AuthorizerShoots] = r.Garden.ShootsKubeconfig
		list, err := gardenAuthorizers()
		if err != nil {
			return err
		}
		authorizers = append(authorizers, list...)
	}
	if text := r.Files.Authorization; text != "" {
		const what = "structured authorization"
		names := slices.Sorted(maps.Keys(r.Files.AuthorizationKubeconfigs))
		if err := refused(what, apiserverconfig.Authorization(text, names)); err != nil {
			return err
		}
		given := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &given); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		config["apiVersion"] = given["apiVersion"]
		list, _ := given["authorizers"].([]any)
		authorizers = append(authorizers, list...)
		for _, item := range list {
			name := item.(map[string]any)["name"].(string)
			if _, exists := kubeconfigs[name]; exists {
				errs := field.ErrorList{field.Forbidden(field.NewPath("authorizers").Key(name).Child("name"), "is the name of an authorizer that each garden has")}
				return refused(what, errs)
			}
			data, errs := kubeconfig.Client(r.Files.AuthorizationKubeconfigs[name], nil)
			if err := refused(fmt.Sprintf("%s: kubeconfig of %q", what, name), errs); err != nil {
				return err
			}
			kubeconfigs[name] = data
		}
	}
	if len(kubeconfigs) > 0 {
		data := map[string][]byte{}
		for name, kubeconfig := range kubeconfigs {
			data[name+"-kubeconfig.yaml"] = kubeconfig
		}
		dir := r.secretConfig("authorization-kubeconfigs", data, nil)
		for _, item := range authorizers {
			authorizer := item.(map[string]any)
			if webhook, ok := authorizer["webhook"].(map[string]any); ok { // a configuration of the user has none
				webhook["connectionInfo"] = map[string]any{
					"type": "KubeConfigFile", "kubeConfigFile": dir + authorizer["name"].(string) + "-kubeconfig.yaml",
				}
			}
		}
	}
	config["authorizers"] = authorizers
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	r.set("authorization-config", r.configMap("authorization-config", map[string]string{configKey: string(text)})+configKey)
	return nil
}

// gardenAuthorizers are the webhooks of gardener-admission-controller, without the connection.
func gardenAuthorizers() ([]any, error) {
	const later = "set below" // as for all webhooks
	text, err := yaml.Marshal(gardeneradmissioncontroller.Authorization{SeedsKubeconfig: later, ShootsKubeconfig: later}.Webhooks())
	if err != nil {
		return nil, err
	}
	var list []any
	return list, yaml.Unmarshal(text, &list)
}

// nodeAgentAuthorizer is the webhook of gardener-resource-manager. It gets only requests of gardener-node-agents.
func nodeAgentAuthorizer() map[string]any {
	return map[string]any{"type": "Webhook", "name": apiserverconfig.AuthorizerNodeAgents, "webhook": map[string]any{
		// The decisions change with Machines, Nodes and the Secrets of pools, and there are few requests, so they are cached for the shortest time.
		// Zero would mean the defaults, 5m and 30s.
		"authorizedTTL": "1ns", "unauthorizedTTL": "1ns", "timeout": "10s", "failurePolicy": "Deny",
		"subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
		"matchConditions": []any{map[string]any{"expression": "'gardener.cloud:node-agents' in request.groups"}},
	}}
}

// admission enables and disables admission plugins, and writes their configuration.
func (r *renderer) admission() error {
	enabled, disabled := map[string]bool{}, map[string]bool{}
	if !r.Workerless || r.Of == instance.VirtualGarden {
		enabled["NodeRestriction"] = true
	}
	config := apiserverv1.AdmissionConfiguration{}
	config.APIVersion, config.Kind = apiserverv1.SchemeGroupVersion.String(), kindAdmission
	kubeconfigs := map[string][]byte{}
	for _, plugin := range r.config.AdmissionPlugins {
		if plugin.Disabled != nil && *plugin.Disabled {
			delete(enabled, plugin.Name)
			disabled[plugin.Name] = true
			continue
		}
		enabled[plugin.Name] = true
		what, file := "admission plugin "+plugin.Name, ""
		if given, ok := r.Files.AdmissionKubeconfigs[plugin.Name]; ok {
			read := kubeconfig.Credentials
			if plugin.Name == "ImagePolicyWebhook" {
				read = kubeconfig.Client
			}
			data, errs := read(given, nil)
			if err := refused(what+": kubeconfig", errs); err != nil {
				return err
			}
			key := plugin.Name + "-kubeconfig.yaml"
			kubeconfigs[key], file = data, dirConfig+admissionKubeconfigs+"/"+key
		}
		raw, errs := apiserverconfig.AdmissionPlugin(plugin, file, nil)
		if err := refused(what, errs); err != nil {
			return err
		}
		if raw != nil {
			config.Plugins = append(config.Plugins, apiserverv1.AdmissionPluginConfiguration{Name: plugin.Name, Configuration: &runtime.Unknown{Raw: raw}})
		}
	}
	if len(kubeconfigs) > 0 {
		r.secretConfig(admissionKubeconfigs, kubeconfigs, nil)
	}
	if len(enabled) > 0 {
		r.set("enable-admission-plugins", strings.Join(slices.Sorted(maps.Keys(enabled)), ","))
	}
	if len(disabled) > 0 {
		r.set("disable-admission-plugins", strings.Join(slices.Sorted(maps.Keys(disabled)), ","))
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	r.set("admission-control-config-file", r.configMap("admission-config", map[string]string{configKey: string(text)})+configKey)
	return nil
}

// encryption encrypts resources at rest.
func (r *renderer) encryption() error {
	text, err := encryption.Configuration(r.Encryption)
	if err != nil || text == nil {
		return err
	}
	// Tools find the configuration of a control plane by its role.
	role, key := map[string]string{constants.Role: constants.SecretNamePrefixETCDEncryptionConfiguration}, configKey
	if r.Of == instance.VirtualGarden {
		role, key = map[string]string{constants.GardenRole: constants.SecretNamePrefixETCDEncryptionConfiguration}, "encryption-configuration.yaml"
	}
	r.set("encryption-provider-config", r.secretConfig("etcd-encryption-configuration", map[string][]byte{key: text}, role)+key)
	return nil
}

// egress sends requests to the networks of the shoot through the tunnel. Others are sent directly.
func (r *renderer) egress() error {
	if r.Tunnel == nil {
		return nil
	}
	if proxy, err := url.Parse(r.Tunnel.URL); err != nil || proxy.Scheme != "https" || proxy.Host == "" {
		return fmt.Errorf("tunnel: %q is no https URL of a host", r.Tunnel.URL)
	}
	ca := r.bundle("ca-vpn", r.Tunnel.CASecret)
	cert, key := r.certificate("http-proxy", r.Tunnel.ClientSecret)
	config := apiserverv1beta1.EgressSelectorConfiguration{
		EgressSelections: []apiserverv1beta1.EgressSelection{
			{Name: "cluster", Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
				Transport: &apiserverv1beta1.Transport{TCP: &apiserverv1beta1.TCPTransport{
					URL: r.Tunnel.URL, TLSConfig: &apiserverv1beta1.TLSConfig{CABundle: ca, ClientCert: cert, ClientKey: key},
				}},
			}},
			{Name: "controlplane", Connection: apiserverv1beta1.Connection{ProxyProtocol: apiserverv1beta1.ProtocolDirect}},
			{Name: "etcd", Connection: apiserverv1beta1.Connection{ProxyProtocol: apiserverv1beta1.ProtocolDirect}},
		},
	}
	config.APIVersion, config.Kind = apiserverv1beta1.SchemeGroupVersion.String(), "EgressSelectorConfiguration"
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	r.set("egress-selector-config-file", r.configMap("egress-selection-config", map[string]string{configKey: string(text)})+configKey)
	return nil
}

// refused returns the errors of a file that the Shoot refers to, or nil: only its owner can do something about them. What runs stays as it
// is, as nothing is rendered.
func refused(what string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return errorcode.With(fmt.Errorf("%s: %w", what, errs.ToAggregate()), corev1beta1.ErrorConfigurationProblem)
}
