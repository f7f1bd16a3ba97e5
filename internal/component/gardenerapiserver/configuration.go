package gardenerapiserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
	"gardener.cloud/gardener/internal/validation/kubeconfig"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	dir         = "/etc/gardener/"
	dirAuditLog = "/var/log/" + Name
	configFile  = "config.yaml"

	// virtualEncryptionFile and roleEncryption are by which tools find the configuration of the encryption.
	virtualEncryptionFile = "encryption-configuration.yaml"
	roleEncryption        = "gardener-apiserver-etcd-encryption-configuration"

	admissionKubeconfigs = "admission-kubeconfigs"
	kubeconfigFile       = "kubeconfig.yaml"
)

// renderer collects what the pods have.
type renderer struct {
	Values
	config  *operatorv1alpha1.GardenerAPIServerConfig
	process gardenerprocess.Values
	// objects are those with configuration.
	objects []client.Object
}

func newRenderer(v Values) (*renderer, error) {
	r := &renderer{Values: v, config: v.Config, process: v.process()}
	if r.config == nil {
		r.config = &operatorv1alpha1.GardenerAPIServerConfig{}
	}
	r.serving()
	r.process.Args = append(r.process.Args, v.Args...)
	for _, add := range []func() error{r.encryption, r.audit, r.admission} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	r.workloadIdentity()
	r.behaviour()
	return r, nil
}

// set adds a flag.
func (r *renderer) set(flag, value string) {
	r.process.Args = append(r.process.Args, "--"+flag+"="+value)
}

// mount mounts a volume and returns the directory it is in.
func (r *renderer) mount(volume corev1.Volume) string {
	r.process.Files = append(r.process.Files, gardenerprocess.File{Volume: volume, Path: dir + volume.Name})
	return dir + volume.Name + "/"
}

// configMap adds a ConfigMap with configuration, mounts it, and returns the directory it is in.
func (r *renderer) configMap(name string, data map[string]string) string {
	object := immutable.ConfigMap(r.Namespace, Name+"-"+name, data)
	r.objects = append(r.objects, object)
	return r.mount(workload.ConfigMapVolume(name, object.Name))
}

// secret adds a Secret with configuration, mounts it, and returns it with the directory it is in.
func (r *renderer) secret(name string, data map[string][]byte) (object *corev1.Secret, in string) {
	object = immutable.Secret(r.Namespace, Name+"-"+name, data)
	r.objects = append(r.objects, object)
	return object, r.mount(workload.SecretVolume(name, object.Name))
}

func (r *renderer) serving() {
	r.set("secure-port", strconv.Itoa(port))
	r.set("cluster-identity", r.ClusterIdentity)
	r.set("etcd-servers", strings.Join(r.EtcdServers, ","))
	credentials := r.mount(workload.SecretVolume("etcd", r.EtcdSecret))
	certificates := r.mount(workload.SecretVolume("certificates", r.Certificate))
	if r.EtcdCA == "" {
		r.set("etcd-cafile", credentials+secrets.DataKeyCertificateCA)
	} else {
		r.set("etcd-cafile", r.mount(workload.SecretVolume("etcd-ca", r.EtcdCA))+secrets.DataKeyCertificateBundle)
	}
	r.set("etcd-certfile", credentials+secrets.DataKeyCertificate)
	r.set("etcd-keyfile", credentials+secrets.DataKeyPrivateKey)
	r.set("tls-cert-file", certificates+secrets.DataKeyCertificate)
	r.set("tls-private-key-file", certificates+secrets.DataKeyPrivateKey)
	if r.Virtual != nil {
		for _, flag := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
			r.set(flag, shootaccess.PathKubeconfig)
		}
	}
}

// encryption encrypts resources at rest.
func (r *renderer) encryption() error {
	values := r.Encryption
	if len(values.Resources) == 0 {
		values.Resources = EncryptedResources()
	}
	config, err := encryption.Configuration(values)
	if err != nil || config == nil {
		return err
	}
	file := configFile
	if r.Virtual != nil {
		file = virtualEncryptionFile
	}
	object, in := r.secret("encryption", map[string][]byte{file: config})
	if r.Virtual != nil {
		object.Labels = workload.Merge(object.Labels, map[string]string{constants.GardenRole: roleEncryption, constants.Role: roleEncryption})
		// Without it, what is in etcd cannot be read any more.
		object.Annotations = map[string]string{resourcesv1alpha1.KeepObject: "true"}
	}
	r.set("encryption-provider-config", in+file)
	return nil
}

// audit configures the audit log with the policy of the Garden, and sends it to its webhook. Without a policy nothing is logged.
func (r *renderer) audit() error {
	policy := r.Files.AuditPolicy
	if policy == "" && len(r.Files.AuditWebhookKubeconfig) == 0 {
		return nil
	}
	if policy == "" {
		policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n"
	} else {
		if err := refused("audit policy", apiserverconfig.AuditPolicy(policy)); err != nil {
			return err
		}
		r.process.Files = append(r.process.Files, gardenerprocess.File{
			Volume: corev1.Volume{Name: "audit-log", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, Path: dirAuditLog, Writable: true,
		})
		r.set("audit-log-path", dirAuditLog+"/audit.log")
		r.set("audit-log-maxsize", "100")
		r.set("audit-log-maxbackup", "5")
	}
	const policyFile = "audit-policy.yaml"
	r.set("audit-policy-file", r.configMap("audit-policy-config", map[string]string{policyFile: policy})+policyFile)
	if len(r.Files.AuditWebhookKubeconfig) == 0 {
		return nil
	}
	data, errs := kubeconfig.Client(r.Files.AuditWebhookKubeconfig, nil)
	if err := refused("audit webhook: kubeconfig", errs); err != nil {
		return err
	}
	_, in := r.secret("audit-webhook-kubeconfig", map[string][]byte{kubeconfigFile: data})
	r.set("audit-webhook-config-file", in+kubeconfigFile)
	if webhook := r.config.AuditWebhook; webhook != nil {
		if size := webhook.BatchMaxSize; size != nil {
			r.set("audit-webhook-batch-max-size", strconv.Itoa(int(*size)))
		}
		if version := webhook.Version; version != nil {
			r.set("audit-webhook-version", *version)
		}
	}
	return nil
}

// admission enables and disables admission plugins, and writes their configuration.
func (r *renderer) admission() error {
	var enabled, disabled []string
	config := apiserverv1.AdmissionConfiguration{}
	config.APIVersion, config.Kind = apiserverv1.SchemeGroupVersion.String(), "AdmissionConfiguration"
	kubeconfigs := map[string][]byte{}
	for _, plugin := range r.config.AdmissionPlugins {
		if ptr.Deref(plugin.Disabled, false) {
			disabled = append(disabled, plugin.Name)
			continue
		}
		enabled = append(enabled, plugin.Name)
		raw, err := r.plugin(plugin, kubeconfigs)
		if err != nil {
			return fmt.Errorf("admission plugin %s: %w", plugin.Name, err)
		}
		if raw != nil {
			config.Plugins = append(config.Plugins, apiserverv1.AdmissionPluginConfiguration{Name: plugin.Name, Configuration: &runtime.Unknown{Raw: raw}})
		}
	}
	if len(enabled) > 0 {
		r.set("enable-admission-plugins", strings.Join(slices.Sorted(slices.Values(enabled)), ","))
	}
	if len(disabled) > 0 {
		r.set("disable-admission-plugins", strings.Join(slices.Sorted(slices.Values(disabled)), ","))
	}
	if len(kubeconfigs) > 0 {
		r.secret(admissionKubeconfigs, kubeconfigs)
	}
	if len(config.Plugins) == 0 {
		return nil
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	r.set("admission-control-config-file", r.configMap("admission-config", map[string]string{configFile: string(text)})+configFile)
	return nil
}

// plugin returns the configuration of an admission plugin, and adds its kubeconfig.
func (r *renderer) plugin(plugin corev1beta1.AdmissionPlugin, kubeconfigs map[string][]byte) ([]byte, error) {
	if !slices.Contains(apiserverconfig.ConfigurablePlugins, plugin.Name) { // one of Gardener's, which checks its configuration itself
		if plugin.Config == nil {
			return nil, nil
		}
		return plugin.Config.Raw, nil
	}
	file := ""
	if given, ok := r.Files.AdmissionKubeconfigs[plugin.Name]; ok {
		data, errs := kubeconfig.Credentials(given, nil)
		if err := refused("kubeconfig", errs); err != nil {
			return nil, err
		}
		key := plugin.Name + "-kubeconfig.yaml"
		kubeconfigs[key], file = data, dir+admissionKubeconfigs+"/"+key
	}
	raw, errs := apiserverconfig.AdmissionPlugin(plugin, file, nil)
	return raw, errs.ToAggregate()
}

func (r *renderer) workloadIdentity() {
	if identity := r.WorkloadIdentity; identity != nil {
		r.set("workload-identity-token-issuer", identity.Issuer)
		r.set("workload-identity-signing-key-file", r.mount(workload.SecretVolume("workload-identity", identity.KeySecret))+secrets.DataKeyRSAPrivateKey)
	}
}

func (r *renderer) behaviour() {
	if gates := r.config.FeatureGates; len(gates) > 0 {
		r.set("feature-gates", workload.Switches(gates))
	}
	if chance := r.config.GoAwayChance; chance != nil {
		r.set("goaway-chance", strconv.FormatFloat(*chance, 'f', -1, 64))
	}
	if requests := r.config.Requests; requests != nil {
		if n := requests.MaxNonMutatingInflight; n != nil {
			r.set("max-requests-inflight", strconv.Itoa(int(*n)))
		}
		if n := requests.MaxMutatingInflight; n != nil {
			r.set("max-mutating-requests-inflight", strconv.Itoa(int(*n)))
		}
	}
	if logging := r.config.Logging; logging != nil {
		if v := logging.Verbosity; v != nil {
			r.set("v", strconv.Itoa(int(*v)))
		}
		if v := logging.HTTPAccessVerbosity; v != nil {
			r.set("vmodule", fmt.Sprintf("httplog=%d", *v))
		}
	}
	if expiration := r.config.ShootAdminKubeconfigMaxExpiration; expiration != nil {
		r.set("shoot-admin-kubeconfig-max-expiration", expiration.Duration.String())
	}
	if sizes := r.config.WatchCacheSizes; sizes != nil {
		var list []string
		for _, size := range sizes.Resources {
			resource := corev1beta1.Resource(size.Resource)
			resource.Group = ptr.Deref(size.APIGroup, "")
			list = append(list, fmt.Sprintf("%s#%d", resource, size.CacheSize))
		}
		if len(list) > 0 {
			r.set("watch-cache-sizes", strings.Join(list, ","))
		}
	}
}

// refused returns the errors of a file that the Garden refers to, or nil. What runs stays as it is, as nothing is rendered.
func refused(what string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, errs.ToAggregate())
}
