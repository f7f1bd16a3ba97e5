package kubeapiserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

// Directories of the container.
const (
	dirConfig   = "/etc/kubernetes/"
	dirSecrets  = "/srv/kubernetes/"
	dirAuditLog = "/var/log/kube-apiserver"
)

// oldest is the first version that can restrict anonymous requests to health checks.
var oldest = version.MustParseGeneric("1.32")

// shutdownDelay is how long it serves requests after SIGTERM, until no client uses it any more.
const shutdownDelay = "10s"

// renderer collects what the pods have.
type renderer struct {
	Values
	version *version.Version
	config  *corev1beta1.KubeAPIServerConfig
	flags   map[string][]string
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	// objects are those with configuration.
	objects []client.Object
}

func newRenderer(v Values) (*renderer, error) {
	parsed, err := version.ParseGeneric(v.Version)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes: %w", err)
	}
	if parsed.LessThan(oldest) {
		err := fmt.Errorf("version %s of Kubernetes is too old: the oldest is %s", v.Version, oldest)
		return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	r := &renderer{Values: v, version: parsed, config: v.Config, flags: map[string][]string{}}
	if r.config == nil {
		r.config = &corev1beta1.KubeAPIServerConfig{}
	}
	r.serving()
	r.storage()
	r.credentials()
	r.behaviour()
	for _, add := range []func() error{r.audit, r.authentication, r.authorization, r.admission, r.encryption, r.egress, r.garden} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// set sets a flag. Several values make it appear several times.
func (r *renderer) set(flag string, values ...string) { r.flags[flag] = values }

// secret mounts a Secret and returns the directory it is in. Extensions mount volumes by their names, too.
func (r *renderer) secret(name, secret string) string {
	r.volumes = append(r.volumes, workload.SecretVolume(name, secret))
	r.mounts = append(r.mounts, corev1.VolumeMount{Name: name, MountPath: dirSecrets + name, ReadOnly: true})
	return dirSecrets + name + "/"
}

func (r *renderer) bundle(name, secret string) string {
	return r.secret(name, secret) + secrets.DataKeyCertificateBundle
}

func (r *renderer) certificate(name, secret string) (cert, key string) {
	dir := r.secret(name, secret)
	return dir + secrets.DataKeyCertificate, dir + secrets.DataKeyPrivateKey
}

func (r *renderer) serving() {
	cert, key := r.certificate("server", r.Secrets.Server)
	r.set("tls-cert-file", cert)
	r.set("tls-private-key-file", key)
	r.set("tls-min-version", ptr.Deref(r.config.TLSMinVersion, "VersionTLS12"))
	r.set("tls-cipher-suites", strings.Join(ciphers, ","))
	r.set("secure-port", strconv.Itoa(int(Port)))
	r.set("bind-address", "0.0.0.0")
	if r.AdvertiseAddress != "" {
		r.set("advertise-address", r.AdvertiseAddress)
		if strings.Contains(r.AdvertiseAddress, ":") {
			r.set("bind-address", "::")
		}
	}
	if r.ExternalHostname != "" {
		r.set("external-hostname", r.ExternalHostname)
	}
	r.set("service-cluster-ip-range", strings.Join(r.ServiceNetworks, ","))
	r.set("profiling", "false")
	r.set("shutdown-delay-duration", shutdownDelay)
	r.set("shutdown-send-retry-after", "true")
	r.set("livez-grace-period", "1m")
	r.set("http2-max-streams-per-connection", "1000")
	r.set("allow-privileged", "true")
	if r.Replicas > 1 || r.Autoscaling != nil {
		// Clients move to other pods now and then, or those that come later would have nothing to do.
		r.set("goaway-chance", "0.0010")
	}
}

// ciphers are those of TLS 1.2 that keep old connections secret when a key is stolen. TLS 1.3 has no choice.
var ciphers = []string{
	"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
}

func (r *renderer) storage() {
	r.set("etcd-servers", etcd.URL(r.Of, etcd.Main))
	r.set("etcd-servers-overrides", "/events#"+etcd.URL(r.Of, etcd.Events))
	r.set("etcd-cafile", r.bundle("ca-etcd", r.Secrets.EtcdCA))
	cert, key := r.certificate("etcd-client", r.Secrets.EtcdClient)
	r.set("etcd-certfile", cert)
	r.set("etcd-keyfile", key)
	r.set("event-ttl", "1h")
	if ttl := r.config.EventTTL; ttl != nil {
		r.set("event-ttl", ttl.Duration.String())
	}
	if sizes := r.config.WatchCacheSizes; sizes != nil {
		var list []string
		for _, size := range sizes.Resources {
			resource := size.Resource
			if group := ptr.Deref(size.APIGroup, ""); group != "" {
				resource += "." + group
			}
			list = append(list, fmt.Sprintf("%s#%d", resource, size.CacheSize))
		}
		if len(list) > 0 {
			r.set("watch-cache-sizes", strings.Join(list, ","))
		}
	}
}

func (r *renderer) credentials() {
	r.set("client-ca-file", r.bundle("ca-client", r.Secrets.ClientCA))
	r.set("requestheader-client-ca-file", r.bundle("ca-front-proxy", r.Secrets.FrontProxyCA))
	r.set("requestheader-allowed-names", AggregatorUserName)
	r.set("requestheader-username-headers", "X-Remote-User")
	r.set("requestheader-group-headers", "X-Remote-Group")
	r.set("requestheader-extra-headers-prefix", "X-Remote-Extra-")
	cert, key := r.certificate("kube-aggregator", r.Secrets.Aggregator)
	r.set("proxy-client-cert-file", cert)
	r.set("proxy-client-key-file", key)
	if !r.Workerless {
		r.set("kubelet-certificate-authority", r.bundle("ca-kubelet", r.Secrets.KubeletCA))
		cert, key := r.certificate("kubelet-client", r.Secrets.KubeletClient)
		r.set("kubelet-client-certificate", cert)
		r.set("kubelet-client-key", key)
		r.set("kubelet-preferred-address-types", "InternalIP,Hostname,ExternalIP")
	}
	if !r.Workerless || r.Of == instance.VirtualGarden {
		r.set("enable-bootstrap-token-auth", "true") // nodes join with them, and seeds
	}
	r.set("service-account-signing-key-file", r.secret("service-account-key", r.Secrets.ServiceAccountKey)+secrets.DataKeyRSAPrivateKey)
	r.set("service-account-key-file", r.secret("service-account-key-bundle", r.Secrets.ServiceAccountKeys)+secrets.DataKeyPrivateKeyBundle)
	r.tokens()
}

// tokens says who issues tokens of service accounts, and for whom.
func (r *renderer) tokens() {
	config := r.config.ServiceAccountConfig
	if config == nil {
		config = &corev1beta1.ServiceAccountConfig{}
	}
	// The first one issues tokens; those of all others are good too.
	issuers := []string{ptr.Deref(config.Issuer, r.Issuer)}
	for _, issuer := range slices.Concat(config.AcceptedIssuers, []string{r.Issuer}, r.AcceptedIssuers) {
		if issuer != "" && !slices.Contains(issuers, issuer) {
			issuers = append(issuers, issuer)
		}
	}
	r.set("service-account-issuer", issuers...)
	if r.JWKSURI != "" {
		r.set("service-account-jwks-uri", r.JWKSURI)
	}
	if lifetime := config.MaxTokenExpiration; lifetime != nil {
		r.set("service-account-max-token-expiration", lifetime.Duration.String())
	}
	if extend := config.ExtendTokenExpiration; extend != nil {
		r.set("service-account-extend-token-expiration", strconv.FormatBool(*extend))
	}
	audiences := slices.Clone(r.config.APIAudiences)
	if len(audiences) == 0 {
		audiences = []string{"kubernetes"}
	}
	if !slices.Contains(audiences, constants.GardenerAudience) {
		audiences = append(audiences, constants.GardenerAudience)
	}
	r.set("api-audiences", strings.Join(audiences, ","))
}

// workerlessAPIs are APIs that make no sense without nodes. Not to have them makes the start quicker, too.
var workerlessAPIs = map[string]bool{
	"apps/v1": false, "autoscaling/v2": false, "batch/v1": false, "policy/v1/poddisruptionbudgets": false,
	"storage.k8s.io/v1/csidrivers": false, "storage.k8s.io/v1/csinodes": false,
}

// gardenAPIs are those that a virtual garden has only on request: there are no pods, and their objects would do nothing.
var gardenAPIs = map[string]bool{
	"apps/v1": false, "autoscaling/v2": false, "batch/v1": false, "policy/v1": false, "storage.k8s.io/v1/csinodes": false,
}

func (r *renderer) behaviour() {
	if gates := r.config.FeatureGates; len(gates) > 0 {
		r.set("feature-gates", workload.Switches(gates))
	}
	apis := map[string]bool{}
	switch {
	case r.Of == instance.VirtualGarden:
		maps.Copy(apis, gardenAPIs)
	case r.Workerless:
		maps.Copy(apis, workerlessAPIs)
	}
	maps.Copy(apis, r.config.RuntimeConfig)
	if len(apis) > 0 {
		r.set("runtime-config", workload.Switches(apis))
	}
	r.set("max-requests-inflight", "400")
	r.set("max-mutating-requests-inflight", "200")
	if requests := r.config.Requests; requests != nil {
		if n := requests.MaxNonMutatingInflight; n != nil {
			r.set("max-requests-inflight", strconv.Itoa(int(*n)))
		}
		if n := requests.MaxMutatingInflight; n != nil {
			r.set("max-mutating-requests-inflight", strconv.Itoa(int(*n)))
		}
	}
	seconds := func(flag string, n *int64) {
		if n != nil {
			r.set(flag, strconv.FormatInt(*n, 10))
		}
	}
	seconds("default-not-ready-toleration-seconds", r.config.DefaultNotReadyTolerationSeconds)
	seconds("default-unreachable-toleration-seconds", r.config.DefaultUnreachableTolerationSeconds)
	r.set("v", "2")
	if logging := r.config.Logging; logging != nil {
		if v := logging.Verbosity; v != nil {
			r.set("v", strconv.Itoa(int(*v)))
		}
		if v := logging.HTTPAccessVerbosity; v != nil {
			r.set("vmodule", fmt.Sprintf("httplog=%d", *v))
		}
	}
}

// args are the flags, in order.
func (r *renderer) args() []string {
	var args []string
	for _, flag := range slices.Sorted(maps.Keys(r.flags)) {
		for _, value := range r.flags[flag] {
			args = append(args, "--"+flag+"="+value)
		}
	}
	return args
}

func (r *renderer) deployment() (*appsv1.Deployment, error) {
	// Without etcd no request succeeds, but it recovers by itself when etcd is back: a restart would only take longer.
	live := workload.HTTPProbe("/livez?exclude=etcd", int(Port), corev1.URISchemeHTTPS)
	live.FailureThreshold, live.TimeoutSeconds = 3, 15
	ready := workload.HTTPProbe("/readyz", int(Port), corev1.URISchemeHTTPS)
	ready.FailureThreshold, ready.TimeoutSeconds = 3, 15
	startup := workload.Eager(ready)
	// It may have to wait for etcd, which may have a backup to restore.
	startup.FailureThreshold = 300
	resources := workload.Requests("50m", "300Mi")
	switch {
	case r.Autoscaling != nil && r.Of == instance.VirtualGarden:
		resources = workload.Requests("600m", "512Mi")
	case r.Autoscaling != nil: // until there is a recommendation, which may be lower
		resources = workload.Requests("250m", "500Mi")
	}
	if autoscaling := r.config.Autoscaling; autoscaling != nil {
		maps.Copy(resources.Requests, autoscaling.MinAllowed)
	}
	w := workload.Workload{
		Name: r.Of.Name(Name), Namespace: r.Namespace, Labels: Labels(), PodLabels: r.podLabels(), Replicas: r.Replicas,
		PriorityClass: r.Of.PriorityClass(constants.PriorityClassNameShootControlPlane500),
		Container: corev1.Container{
			Image: r.Image, Command: []string{"/usr/local/bin/kube-apiserver"}, Args: r.args(),
			Ports:          []corev1.ContainerPort{{Name: "https", ContainerPort: Port, Protocol: corev1.ProtocolTCP}},
			ReadinessProbe: ready, LivenessProbe: live, StartupProbe: startup, Resources: resources, VolumeMounts: r.mounts,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		},
		Volumes: r.volumes,
	}
	deployment := w.Deployment()
	deployment.Labels = exposed(workload.Mutable(labels()))
	if r.Autoscaling != nil {
		deployment.Spec.Replicas = nil // the autoscaler's to say
		workload.HighAvailability(deployment, resourcesv1alpha1.HighAvailabilityConfigTypeServer, r.Autoscaling.MinReplicas)
	} else {
		workload.HighAvailability(deployment, resourcesv1alpha1.HighAvailabilityConfigTypeServer, r.Replicas)
	}
	deployment.Spec.RevisionHistoryLimit = new(int32(2))
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromString("25%")), MaxUnavailable: new(intstr.FromInt32(0))},
	}
	if r.Autoscaling != nil { // with fewer pods than before, the others would be overloaded, and more pods be created
		deployment.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromString("100%"))
		deployment.Spec.MinReadySeconds = 30
	}
	if r.Of == instance.VirtualGarden {
		// All components of the garden are its clients: it must not have fewer pods than before, which have to be noticed by the gateway.
		deployment.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromString("100%"))
		if r.Replicas > 1 { // load balancers find a new pod before another one ends
			deployment.Spec.MinReadySeconds = 30
		}
	}
	pod := &deployment.Spec.Template.Spec
	pod.ServiceAccountName = "" // it needs nothing of the seed
	pod.AutomountServiceAccountToken = new(false)
	pod.EnableServiceLinks = new(false)
	pod.TerminationGracePeriodSeconds = new(int64(60))
	// The port is below 1024, and the process has no privileges.
	pod.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	for _, key := range r.Spread {
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector.DeepCopy(),
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		})
	}
	return deployment, references.Inject(deployment, nil)
}

// podLabels say what the pods talk to: names, both etcds, webhooks in the control plane and anywhere else, the tunnel.
func (r *renderer) podLabels() map[string]string {
	out := labels()
	for _, label := range []string{
		constants.NetworkPolicyToDNS, constants.NetworkPolicyToPrivateNetworks, constants.NetworkPolicyToPublicNetworks,
		etcd.PolicyLabel(r.Of, etcd.Main), etcd.PolicyLabel(r.Of, etcd.Events),
		workload.PolicyTo(workload.WebhookTargets), workload.PolicyTo("extensions-" + workload.WebhookTargets),
		workload.PolicyLabel(r.Of.Name("gardener-resource-manager"), 10250),
	} {
		out[label] = constants.NetworkPolicyAllowed
	}
	if r.Tunnel != nil {
		maps.Copy(out, r.Tunnel.PodLabels)
	}
	if r.Garden != nil { // API servers behind it are no webhooks
		out[workload.PolicyLabel("gardener-apiserver", 8443)] = constants.NetworkPolicyAllowed
		out[workload.PolicyLabel(gardeneradmissioncontroller.Name, 2719)] = constants.NetworkPolicyAllowed
	}
	return out
}

func autoscaler(v Values) client.Object {
	average := func(name corev1.ResourceName, value string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(value))},
		}}
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Of.Name(Name), Labels: labels()},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: v.Of.Name(Name)},
			MinReplicas:    &v.Autoscaling.MinReplicas, MaxReplicas: v.Autoscaling.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{average(corev1.ResourceCPU, "6"), average(corev1.ResourceMemory, "24G")},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: &autoscalingv2.HPAScalingRules{
					StabilizationWindowSeconds: new(int32(60)),
					Policies:                   []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 60}},
				},
				// Caches of a new pod are filled from etcd: do not come and go.
				ScaleDown: &autoscalingv2.HPAScalingRules{
					StabilizationWindowSeconds: new(int32(1800)),
					Policies:                   []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 300}},
				},
			},
		},
	}
}
