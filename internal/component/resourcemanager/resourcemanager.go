// Package resourcemanager deploys gardener-resource-manager, which applies ManagedResources and helps the workload of a cluster.
package resourcemanager

import (
	"cmp"
	"fmt"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
)

// Name is the name of the Deployment, of the Service and of the webhook configurations.
const Name = "gardener-resource-manager"

// ClassSeed is the class of the ManagedResources whose objects are for the seed itself.
const ClassSeed = "seed"

const (
	healthPort  = 8081
	metricsPort = 8080
	// serverPort is the port of webhooks in the pods, servicePort that of the Service.
	serverPort, servicePort = 10250, 443

	certificateDir = "/etc/gardener-resource-manager-tls"

	// seedScrapeTargets is the alias of ports with metrics in a seed.
	seedScrapeTargets = "all-seed-scrape-targets"
)

// Values are what a resource manager is deployed with.
type Values struct {
	// Of is the kind of cluster that it is for.
	Of instance.Kind
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads; all of them serve webhooks.
	Replicas int32
	// TrafficDistribution is that of the Service. Nil means none.
	TrafficDistribution *string
	// ServerSecret is the name of a Secret in the namespace with tls.crt and tls.key of the webhook server. It has to be valid for
	// ServerNames. A new certificate needs a new name, so that the pods roll. Without one, there are no webhooks.
	ServerSecret string
	// CABundle is the CA bundle with which the API server verifies the webhook server, as PEM. While a CA is rotated, it has the old and the new.
	CABundle []byte
	// Config is its configuration. Ports and the directory of the certificate are set here. ForSeed, ForShoot and
	// ForVirtualGarden return one.
	Config resourcemanagerconfigv1alpha1.ResourceManagerConfiguration
	// PriorityClass is that of the pods in the cluster that they manage. Empty means that of components that a seed cannot do without.
	PriorityClass string
	// Zones says that the pods in the cluster that they manage are spread over zones if possible. The others get that from a webhook of the one
	// of the seed.
	Zones bool
	// Shoot says that it manages the cluster of a shoot, or a virtual garden. Nil means that it is the one of a seed.
	Shoot *Shoot
}

// ServerNames are the names that the certificate of the webhook server has to be valid for.
func ServerNames(of instance.Kind, namespace string) []string {
	return workload.DNSNames(of.Name(Name), namespace)
}

// SeedNamespaces select the namespaces of a seed with components of Gardener, control planes or extensions.
func SeedNamespaces() []metav1.LabelSelector {
	selectors := []metav1.LabelSelector{{MatchLabels: map[string]string{corev1.LabelMetadataName: constants.GardenNamespace}}}
	for _, role := range []string{
		constants.GardenRoleIstioSystem, constants.GardenRoleIstioIngress, constants.GardenRoleExposureClassHandler, constants.GardenRoleShoot,
		constants.GardenRoleExtension,
	} {
		selectors = append(selectors, metav1.LabelSelector{MatchLabels: map[string]string{constants.GardenRole: role}})
	}
	return selectors
}

// ForSeed returns the configuration of the resource manager of a seed, or of the cluster that a garden runs in, which is source and target in
// one.
func ForSeed() resourcemanagerconfigv1alpha1.ResourceManagerConfiguration {
	c := resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	c.LeaderElection.LeaderElect = new(true)
	c.Controllers.ResourceClass = new(ClassSeed)
	c.Controllers.GarbageCollector.Enabled = true
	// Policies isolate the pods that they select, so Services in other namespaces, such as that of the cluster's DNS, are excluded.
	c.Controllers.NetworkPolicy.Enabled = true
	c.Controllers.NetworkPolicy.NamespaceSelectors = SeedNamespaces()
	c.Webhooks.HighAvailabilityConfig.Enabled = true
	c.Webhooks.ProjectedTokenMount.Enabled = true
	c.Webhooks.PodTopologySpreadConstraints.Enabled = true
	c.Webhooks.SeccompProfile.Enabled = true
	c.Webhooks.CRDDeletionProtection.Enabled = true
	c.Webhooks.ExtensionValidation.Enabled = true
	return c
}

// resizeSince is the version of Kubernetes from which on the requests of running pods can be changed.
var resizeSince = semver.MustParse("1.33.0")

// UpdatesInPlace says whether a Vertical Pod Autoscaler can change running pods in a cluster with a version of Kubernetes.
func UpdatesInPlace(kubernetesVersion string) bool {
	version, err := semver.NewVersion(kubernetesVersion)
	return err == nil && !version.LessThan(resizeSince)
}

// Objects renders the resource manager for the cluster that it runs in.
func Objects(v Values) ([]client.Object, error) {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = resourcemanagerconfigv1alpha1.SchemeGroupVersion.String(), "ResourceManagerConfiguration"
	if config.LeaderElection.ResourceNamespace == "" {
		config.LeaderElection.ResourceNamespace = v.Namespace
	}
	if v.Of != instance.Shoot && config.LeaderElection.ResourceName == "" {
		config.LeaderElection.ResourceName = v.Of.Name(Name) // that of the runtime cluster is in the same namespace
	}
	resourcemanagerconfigv1alpha1.SetDefaults(config)
	config.Server.HealthProbes = &resourcemanagerconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &resourcemanagerconfigv1alpha1.Server{Port: metricsPort}
	config.Server.Webhooks.Port, config.Server.Webhooks.TLS.ServerCertDir = serverPort, certificateDir
	var files []gardenerprocess.File
	if v.ServerSecret == "" {
		config.Webhooks = resourcemanagerconfigv1alpha1.ResourceManagerWebhookConfiguration{}
	} else {
		files = append(files, gardenerprocess.File{Volume: workload.SecretVolume("tls", v.ServerSecret), Path: certificateDir})
	}
	name := v.Of.Name(Name)
	process := gardenerprocess.Values{
		Name: name, Process: Name, Labels: map[string]string{"app": name}, Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: cmp.Or(v.PriorityClass, constants.PriorityClassNameSeedSystemCritical), Config: config,
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			{Name: "server", ContainerPort: serverPort, Protocol: corev1.ProtocolTCP},
		},
		Files: files,
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources: workload.Requests("25m", "60Mi"),
		PodLabels: map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		},
	}
	if v.Shoot != nil {
		v.forShoot(&process)
	}
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	w := process.Workload()
	objects = append(objects, v.service(w))
	if v.Shoot != nil {
		for _, object := range objects {
			if deployment, ok := object.(*appsv1.Deployment); ok {
				if err := references.Inject(deployment, nil); err != nil {
					return nil, err
				}
			}
		}
		return append(objects, v.sourceObjects(w)...), nil
	}
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			v.withoutWebhook(deployment, config.Webhooks.HighAvailabilityConfig)
		}
	}
	// It applies objects of any kind, so it needs all permissions.
	objects = append(objects, w.ClusterRole(Name, everything()...)...)
	return append(objects, Webhooks(config, Scope{Namespace: v.Namespace, CABundle: v.CABundle})...), nil
}

// withoutWebhook keeps the Deployment from its own webhook, which pods that do not start, or whose certificate has expired, do not answer: a change that repairs
// them would be refused. What the webhook would set is set here.
func (v Values) withoutWebhook(deployment *appsv1.Deployment, c resourcemanagerconfigv1alpha1.HighAvailabilityConfigWebhookConfig) {
	deployment.Labels = workload.Merge(deployment.Labels, map[string]string{resourcesv1alpha1.HighAvailabilityConfigSkip: "true"})
	pod := &deployment.Spec.Template.Spec
	if v.Zones && v.Replicas > 1 {
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector,
		})
	}
	for _, gone := range []struct {
		taint   string
		seconds *int64
	}{{corev1.TaintNodeNotReady, c.DefaultNotReadyTolerationSeconds}, {corev1.TaintNodeUnreachable, c.DefaultUnreachableTolerationSeconds}} {
		if gone.seconds != nil {
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
				Key: gone.taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: gone.seconds,
			})
		}
	}
}

func everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}
}

func (v Values) service(w workload.Workload) client.Object {
	service := w.Service("server", servicePort)
	service.Spec.TrafficDistribution = v.TrafficDistribution
	service.Spec.Ports = append(service.Spec.Ports, w.Service("metrics", metricsPort).Spec.Ports...)
	// Numbers, as the labels for network policies contain them.
	service.Spec.Ports[0].TargetPort, service.Spec.Ports[1].TargetPort = intstr.FromInt32(serverPort), intstr.FromInt32(metricsPort)
	if v.Shoot != nil {
		service.Annotations = workload.Scraped(metricsPort)
		return service
	}
	service.Annotations = workload.Merge(workload.FromPods(seedScrapeTargets, metricsPort), map[string]string{
		// The API server is not a pod of this cluster.
		resourcesv1alpha1.NetworkingFromWorldToPorts: fmt.Sprintf(`[{"protocol":"TCP","port":%d}]`, serverPort),
	})
	return service
}
