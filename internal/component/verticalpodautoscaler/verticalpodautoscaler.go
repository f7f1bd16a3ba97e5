// Package verticalpodautoscaler deploys the Vertical Pod Autoscaler: a recommender, an updater, and a webhook that applies recommendations to new pods. That
// of a seed runs in the cluster that it scales, and that of a shoot in its control plane.
package verticalpodautoscaler

import (
	"maps"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

// Names of the Deployments, which are those of the images too, and of the Service of the webhook.
const (
	Recommender         = "vpa-recommender"
	Updater             = "vpa-updater"
	AdmissionController = "vpa-admission-controller"
	WebhookService      = "vpa-webhook"
)

// ManagedResourceName is the name of the ManagedResource with TargetObjects.
const ManagedResourceName = "shoot-core-vpa"

const (
	webhookConfiguration      = "vpa-webhook-config-seed"
	shootWebhookConfiguration = "zzz-vpa-webhook-config-target" // after those of others, which may add containers
	serverPort, servicePort   = 10250, 443
	recommenderPort           = 8942
	updaterPort               = 8943
	admissionPort             = 8944
	certificateDir            = "/etc/tls-certs"
	rolePrefix                = "gardener.cloud:vpa:source:"
	shootRolePrefix           = "gardener.cloud:vpa:target:"
	autoscalingGroup          = "autoscaling.k8s.io"
	read                      = "get list watch"
	serverVolume, metricsName = "tls", "metrics"
)

// Values are what it is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Images are those of its parts.
	Images Images
	// Replicas is the number of pods of each part. One recommender and one updater lead; all pods of the webhook serve.
	Replicas int32
	// Config is its configuration, whose field enabled is ignored. Nil means the defaults.
	Config *corev1beta1.VerticalPodAutoscaler
	// ServerSecret is the name of a Secret in the namespace with tls.crt and tls.key, valid for ServerNames.
	ServerSecret string
	// CABundle is the CA bundle with which the API server verifies the webhook, as PEM.
	CABundle []byte
	// TrafficDistribution is that of the Service of the webhook.
	TrafficDistribution *string
	// Shoot is for the one of a shoot. Nil means that it scales the cluster that it runs in.
	Shoot *Shoot
}

// Shoot is how the one of a shoot reaches it.
type Shoot struct {
	// GenericKubeconfig is the name of the Secret with the generic token kubeconfig.
	GenericKubeconfig string
}

// Images are references of images.
type Images struct {
	Recommender, Updater, AdmissionController string
}

// ServerNames are the names that the certificate of the webhook has to be valid for.
func ServerNames(namespace string) []string {
	return workload.DNSNames(WebhookService, namespace)
}

// Parts are the names of its Deployments, and of its accounts in a shoot.
func Parts() []string { return []string{Recommender, Updater, AdmissionController} }

// Objects renders the Vertical Pod Autoscaler. The definitions of its kinds are in package crds. What that of a shoot needs there is in TargetObjects.
func Objects(v Values) ([]client.Object, error) {
	if v.Config == nil {
		v.Config = &corev1beta1.VerticalPodAutoscaler{}
	}
	var objects []client.Object
	for _, part := range []workload.Workload{v.recommender(), v.updater(), v.admissionController()} {
		rendered, err := v.part(part)
		if err != nil {
			return nil, err
		}
		objects = append(objects, rendered...)
	}
	objects = append(objects, v.service())
	if v.Shoot != nil {
		return objects, nil
	}
	return append(append(objects, v.roles()...), v.webhook()), nil
}

// TargetObjects renders the objects in the shoot: the definitions of its kinds, its permissions, and the webhook.
func TargetObjects(v Values) ([]client.Object, error) {
	definitions, err := crds.VerticalPodAutoscaler()
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for _, definition := range definitions {
		objects = append(objects, definition)
	}
	return append(append(objects, v.roles()...), v.webhook()), nil
}

// namespace is that of the accounts and Leases in the cluster that it scales.
func (v Values) namespace() string {
	if v.Shoot != nil {
		return metav1.NamespaceSystem
	}
	return v.Namespace
}

func (v Values) labels(name string) map[string]string {
	role := "vpa"
	if v.Shoot != nil {
		role = constants.GardenRoleControlPlane
	}
	return map[string]string{constants.App: name, constants.GardenRole: role}
}

// flags returns sorted flags, with those that all parts have.
func (v Values) flags(flags map[string]string) []string {
	all := map[string]string{"v": "2", "kube-api-qps": "100", "kube-api-burst": "120"}
	if v.Shoot != nil {
		all["kubeconfig"] = shootaccess.PathKubeconfig
	}
	maps.Copy(all, flags)
	if len(v.Config.FeatureGates) > 0 {
		all["feature-gates"] = workload.Switches(v.Config.FeatureGates)
	}
	var out []string
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		if all[flag] != "" {
			out = append(out, "--"+flag+"="+all[flag])
		}
	}
	return out
}

// leading are the flags for leader election of a part.
func (v Values) leading(name string) map[string]string {
	return map[string]string{"leader-elect": "true", "leader-elect-resource-name": name, "leader-elect-resource-namespace": v.namespace()}
}

// fraction and duration return settings. The defaults are those for seeds: Shoots have all settings that have a default.
func fraction(value *float64, fallback float64) string {
	return strconv.FormatFloat(ptr.Deref(value, fallback), 'f', -1, 64)
}

func duration(value *metav1.Duration, fallback string) string {
	if value == nil {
		return fallback
	}
	return value.Duration.String()
}

func (v Values) recommender() workload.Workload {
	c, leastCPU := v.Config, "5"
	if v.Shoot != nil {
		leastCPU = "10"
	}
	flags := workload.Merge(v.leading(Recommender), map[string]string{
		"recommendation-margin-fraction":               fraction(c.RecommendationMarginFraction, 0.05),
		"recommender-interval":                         duration(c.RecommenderInterval, "1m0s"),
		"target-cpu-percentile":                        fraction(c.TargetCPUPercentile, 0.9),
		"recommendation-lower-bound-cpu-percentile":    fraction(c.RecommendationLowerBoundCPUPercentile, 0.5),
		"recommendation-upper-bound-cpu-percentile":    fraction(c.RecommendationUpperBoundCPUPercentile, 0.95),
		"target-memory-percentile":                     fraction(c.TargetMemoryPercentile, 0.9),
		"recommendation-lower-bound-memory-percentile": fraction(c.RecommendationLowerBoundMemoryPercentile, 0.5),
		"recommendation-upper-bound-memory-percentile": fraction(c.RecommendationUpperBoundMemoryPercentile, 0.95),
		"cpu-histogram-decay-half-life":                duration(c.CPUHistogramDecayHalfLife, "24h0m0s"),
		"memory-histogram-decay-half-life":             duration(c.MemoryHistogramDecayHalfLife, "24h0m0s"),
		"memory-aggregation-interval":                  duration(c.MemoryAggregationInterval, "24h0m0s"),
		"memory-aggregation-interval-count":            strconv.FormatInt(ptr.Deref(c.MemoryAggregationIntervalCount, 8), 10),
		"update-worker-count":                          strconv.FormatInt(ptr.Deref(c.RecommenderUpdateWorkerCount, 10), 10),
		"pod-recommendation-min-cpu-millicores":        leastCPU,
		"pod-recommendation-min-memory-mb":             "10",
		"memory-saver":                                 "true", // pods without a VerticalPodAutoscaler are not tracked
		"container-recommendation-max-allowed-cpu":     maximum(c.MaxAllowed, corev1.ResourceCPU),
		"container-recommendation-max-allowed-memory":  maximum(c.MaxAllowed, corev1.ResourceMemory),
		"address": ":" + strconv.Itoa(recommenderPort),
	})
	return v.workload(Recommender, v.Images.Recommender, recommenderPort, v.flags(flags))
}

// maximum is the quantity of a resource in a list, or empty.
func maximum(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity, ok := list[name]
	if !ok {
		return ""
	}
	return quantity.String()
}

func (v Values) updater() workload.Workload {
	c := v.Config
	return v.workload(Updater, v.Images.Updater, updaterPort, v.flags(workload.Merge(v.leading(Updater), map[string]string{
		"min-replicas":              "1", // most workloads of a control plane have one
		"updater-interval":          duration(c.UpdaterInterval, "1m0s"),
		"eviction-rate-burst":       strconv.Itoa(int(ptr.Deref(c.EvictionRateBurst, 1))),
		"eviction-rate-limit":       fraction(c.EvictionRateLimit, -1),
		"eviction-tolerance":        fraction(c.EvictionTolerance, 1),
		"evict-after-oom-threshold": duration(c.EvictAfterOOMThreshold, "48h0m0s"),
		"address":                   ":" + strconv.Itoa(updaterPort),
	})))
}

func (v Values) admissionController() workload.Workload {
	w := v.workload(AdmissionController, v.Images.AdmissionController, admissionPort, v.flags(map[string]string{
		"register-webhook": "false", "port": strconv.Itoa(serverPort), "address": ":" + strconv.Itoa(admissionPort),
		"tls-cert-file": certificateDir + "/" + secrets.DataKeyCertificate, "tls-private-key": certificateDir + "/" + secrets.DataKeyPrivateKey,
		"client-ca-file": certificateDir + "/" + secrets.DataKeyCertificateCA,
	}))
	w.Container.Ports = append(w.Container.Ports, corev1.ContainerPort{Name: "server", ContainerPort: serverPort, Protocol: corev1.ProtocolTCP})
	w.Container.VolumeMounts = append(w.Container.VolumeMounts, corev1.VolumeMount{Name: serverVolume, MountPath: certificateDir, ReadOnly: true})
	w.Volumes = append(w.Volumes, workload.SecretVolume(serverVolume, v.ServerSecret))
	return w
}

func (v Values) workload(name, image string, port int32, args []string) workload.Workload {
	probe := workload.HTTPProbe("/health-check", int(port), corev1.URISchemeHTTP)
	w := workload.Workload{
		Name: name, Namespace: v.Namespace, Labels: v.labels(name), Replicas: v.Replicas, PriorityClass: constants.PriorityClassNameSeedSystem800,
		PodLabels: map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		},
		Container: corev1.Container{
			Image: image, Args: args, Resources: workload.Requests("5m", "30Mi"), LivenessProbe: probe,
			Ports: []corev1.ContainerPort{{Name: metricsName, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			// Leases are in this namespace.
			Env: []corev1.EnvVar{{Name: "NAMESPACE", Value: v.namespace()}},
		},
	}
	if v.Shoot != nil {
		w.PriorityClass = constants.PriorityClassNameShootControlPlane200
		w.PodLabels = map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, kubeapiserver.PolicyLabel(instance.Shoot): constants.NetworkPolicyAllowed,
		}
		w.Volumes = []corev1.Volume{shootaccess.Volume(v.Shoot.GenericKubeconfig, name)}
		w.Container.VolumeMounts = []corev1.VolumeMount{shootaccess.Mount()}
	}
	return w
}

func (v Values) part(w workload.Workload) ([]client.Object, error) {
	deployment := w.Deployment()
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
	}
	if v.Replicas > 1 {
		deployment.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector,
		}}
	}
	account := client.Object(w.ServiceAccount())
	if v.Shoot != nil {
		account = shootaccess.Secret(v.Namespace, w.Name)
		pod := &deployment.Spec.Template.Spec
		pod.ServiceAccountName, pod.AutomountServiceAccountToken, pod.EnableServiceLinks = "", new(false), new(false) // it needs nothing of the seed
		kind := resourcesv1alpha1.HighAvailabilityConfigTypeController
		if w.Name == AdmissionController {
			kind = resourcesv1alpha1.HighAvailabilityConfigTypeServer
		}
		deployment.Labels = maps.Clone(deployment.Labels) // they are those of the selector, too
		workload.HighAvailability(deployment, kind, v.Replicas)
	}
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	objects := []client.Object{account, deployment}
	if v.Replicas > 1 {
		objects = append(objects, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: w.Name, Labels: w.Labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		})
	}
	return objects, nil
}

// ClusterRoles returns the names of the ClusterRoles of all parts.
func ClusterRoles() []string {
	return []string{rolePrefix + AdmissionController, rolePrefix + Recommender, rolePrefix + Updater}
}

// roles are the permissions of each part.
func (v Values) roles() []client.Object {
	vpas := workload.Rule(autoscalingGroup, "verticalpodautoscalers", read)
	pods := workload.Rule("", "pods nodes limitranges", read)
	targets := []rbacv1.PolicyRule{
		workload.Rule("*", "*/scale", "get watch"),
		workload.Rule("", "replicationcontrollers", read),
		workload.Rule("apps", "daemonsets deployments replicasets statefulsets", read),
		workload.Rule("batch", "jobs cronjobs", read),
		// Other resources with a scale subresource.
		workload.Rule("druid.gardener.cloud", "etcds etcds/scale", read),
	}
	events := []rbacv1.PolicyRule{
		workload.Rule("", "events", "create get list patch update watch"), workload.Rule("events.k8s.io", "events", "create patch update"),
	}
	rules := map[string][]rbacv1.PolicyRule{
		Recommender: append([]rbacv1.PolicyRule{
			vpas, pods, workload.Rule("metrics.k8s.io", "pods", "get list"), workload.Rule("", "namespaces", read),
			workload.Rule(autoscalingGroup, "verticalpodautoscalers/status", "get patch"),
			workload.Rule(autoscalingGroup, "verticalpodautoscalercheckpoints", "create delete patch "+read),
		}, append(events, targets...)...),
		Updater: append([]rbacv1.PolicyRule{
			vpas, pods, workload.Rule("", "pods/eviction", "create"), workload.Rule("", "pods pods/resize", "patch"),
		}, append(events, targets...)...),
		AdmissionController: append([]rbacv1.PolicyRule{vpas, pods, workload.Rule("", "configmaps", read)}, targets...),
	}
	prefix, leases, leasesPrefix := rolePrefix, v.namespace(), ""
	if v.Shoot != nil {
		prefix, leasesPrefix = shootRolePrefix, shootRolePrefix // kube-system is the user's, too
	}
	var objects []client.Object
	for _, name := range Parts() {
		w := workload.Workload{Name: name, Namespace: leases, Labels: v.labels(name)}
		objects = append(objects, w.ClusterRole(prefix+name, rules[name]...)...)
		objects = append(objects, w.Role(leases, leasesPrefix+name, workload.Rule("coordination.k8s.io", "leases", "create update patch "+read))...)
	}
	return objects
}

func (v Values) service() client.Object {
	service := (workload.Workload{
		Name: WebhookService, Namespace: v.Namespace, Labels: v.labels(AdmissionController),
	}).Service("server", servicePort)
	service.Spec.Ports[0].TargetPort, service.Spec.TrafficDistribution = intstr.FromInt32(serverPort), v.TrafficDistribution
	if v.Shoot != nil {
		service.Annotations = workload.FromPods(workload.WebhookTargets, serverPort)
		return service
	}
	service.Annotations = map[string]string{
		// The API server is not a pod of this cluster.
		resourcesv1alpha1.NetworkingFromWorldToPorts: `[{"protocol":"TCP","port":` + strconv.Itoa(serverPort) + `}]`,
	}
	return service
}

func (v Values) webhook() client.Object {
	rule := func(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
		}}
	}
	name, config := webhookConfiguration, admissionregistrationv1.WebhookClientConfig{CABundle: v.CABundle}
	if v.Shoot != nil {
		name, config.URL = shootWebhookConfiguration, new("https://"+WebhookService+"."+v.Namespace+":"+strconv.Itoa(servicePort))
	} else {
		config.Service = &admissionregistrationv1.ServiceReference{Namespace: v.Namespace, Name: WebhookService, Port: new(int32(servicePort))}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{constants.ExcludeWebhookFromRemediation: "true"}},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "vpa.k8s.io", ClientConfig: config,
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule("", "v1", "pods", admissionregistrationv1.Create),
				rule(autoscalingGroup, "*", "verticalpodautoscalers", admissionregistrationv1.Create, admissionregistrationv1.Update),
			},
			// Without it, pods start with their own requests.
			FailurePolicy: new(admissionregistrationv1.Ignore), MatchPolicy: new(admissionregistrationv1.Exact),
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: new(int32(2)),
			ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}
