// Package gardenercontrollermanager deploys gardener-controller-manager, which keeps the objects of the garden consistent.
package gardenercontrollermanager

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
)

// Name is the name of the Deployment.
const Name = "gardener-controller-manager"

const (
	healthPort  = 2718
	metricsPort = 2719
)

// Values are what the controller manager is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads.
	Replicas int32
	// Config is its configuration. Objects overwrites ports.
	Config controllermanagerconfigv1alpha1.ControllerManagerConfiguration
	// Autoscaled renders a VerticalPodAutoscaler.
	Autoscaled bool
	// Virtual says that it works in a virtual garden. Then Objects renders what belongs into the cluster that it runs in, and TargetObjects what
	// belongs into the virtual garden. Nil means that both are the same cluster.
	Virtual *gardenerprocess.Virtual
}

// Objects renders the controller manager for the cluster that serves the garden API.
func Objects(v Values) ([]client.Object, error) {
	process := v.process()
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	objects = append(objects, process.Reachable(process.Workload().Service("metrics", metricsPort), nil, []int32{metricsPort}))
	if v.Virtual != nil {
		return objects, nil
	}
	return append(objects, TargetObjects(v)...), nil
}

// TargetObjects renders what the controller manager needs in a virtual garden: the bindings of its roles, of which gardenrbac has the first.
func TargetObjects(v Values) []client.Object {
	const role = "gardener.cloud:system:controller-manager"
	w := v.process().Target()
	objects := []client.Object{w.ClusterRoleBinding(role, role)}
	config := v.config()
	controllermanagerconfigv1alpha1.SetDefaults(config) // only for what is not in the file
	return append(objects, w.LeaderElection(config.LeaderElection.ResourceNamespace)...)
}

func (v Values) config() *controllermanagerconfigv1alpha1.ControllerManagerConfiguration {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = controllermanagerconfigv1alpha1.SchemeGroupVersion.String(), "ControllerManagerConfiguration"
	config.Server.HealthProbes = &controllermanagerconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &controllermanagerconfigv1alpha1.Server{Port: metricsPort}
	if v.Virtual != nil {
		config.GardenClientConnection.Kubeconfig = shootaccess.PathKubeconfig
		// Other namespaces of a virtual garden may not exist yet when the process starts.
		if config.LeaderElection == nil {
			config.LeaderElection = &componentbaseconfigv1alpha1.LeaderElectionConfiguration{}
		}
		config.LeaderElection.ResourceNamespace = metav1.NamespaceSystem
	}
	return config
}

func (v Values) process() gardenerprocess.Values {
	process := gardenerprocess.Values{
		Name: Name, Role: "controller-manager", Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem200, Config: v.config(),
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources:        workload.Requests("20m", "80Mi"),
		HighAvailability: v.Virtual.HighAvailability(resourcesv1alpha1.HighAvailabilityConfigTypeController), Autoscaled: v.Autoscaled, Virtual: v.Virtual,
	}
	if v.Virtual != nil {
		// The clusters of Plants, whose addresses tenants choose: not in private networks, where a garden may have services of its own.
		process.PodLabels = map[string]string{constants.NetworkPolicyToPublicNetworks: constants.NetworkPolicyAllowed}
	}
	return process
}

const (
	// workers are those of controllers for objects that a garden has many of. The defaults of the process are for small ones.
	workers = 20
	// shootMonitorPeriod is for how long gardenlets may be away before conditions of their shoots become unknown. The default is shorter.
	shootMonitorPeriod = 5 * time.Minute
	// eventWorkers delete events that are older than eventTTL, except those of Shoots.
	eventWorkers, eventTTL = 10, 2 * time.Hour
)

// Configuration returns the configuration that a Garden asks for. It may be nil.
func Configuration(config *operatorv1alpha1.GardenerControllerManagerConfig) controllermanagerconfigv1alpha1.ControllerManagerConfiguration {
	out := controllermanagerconfigv1alpha1.ControllerManagerConfiguration{Controllers: controllers()}
	if config == nil {
		return out
	}
	out.LogLevel, out.FeatureGates = ptr.Deref(config.LogLevel, ""), maps.Clone(config.FeatureGates)
	if len(config.PlantAllowCIDRs) > 0 {
		out.Controllers.Plant = &controllermanagerconfigv1alpha1.PlantControllerConfiguration{AllowCIDRs: slices.Clone(config.PlantAllowCIDRs)}
	}
	for _, quota := range config.DefaultProjectQuotas {
		selector := quota.ProjectSelector.DeepCopy()
		if selector == nil {
			selector = &metav1.LabelSelector{} // all Projects: without a selector, the process selects none
		}
		out.Controllers.Project.Quotas = append(out.Controllers.Project.Quotas, controllermanagerconfigv1alpha1.QuotaConfiguration{
			Config: *quota.Config.DeepCopy(), ProjectSelector: selector,
		})
	}
	return out
}

func controllers() controllermanagerconfigv1alpha1.ControllerManagerControllerConfiguration {
	return controllermanagerconfigv1alpha1.ControllerManagerControllerConfiguration{
		ControllerRegistration: &controllermanagerconfigv1alpha1.ControllerRegistrationControllerConfiguration{ConcurrentSyncs: new(workers)},
		CredentialsBinding:     &controllermanagerconfigv1alpha1.CredentialsBindingControllerConfiguration{ConcurrentSyncs: new(workers)},
		Event: &controllermanagerconfigv1alpha1.EventControllerConfiguration{
			ConcurrentSyncs: new(eventWorkers), TTLNonShootEvents: &metav1.Duration{Duration: eventTTL},
		},
		Project:       &controllermanagerconfigv1alpha1.ProjectControllerConfiguration{ConcurrentSyncs: new(workers)},
		SecretBinding: &controllermanagerconfigv1alpha1.SecretBindingControllerConfiguration{ConcurrentSyncs: new(workers)},
		Seed: &controllermanagerconfigv1alpha1.SeedControllerConfiguration{
			ConcurrentSyncs: new(workers), ShootMonitorPeriod: &metav1.Duration{Duration: shootMonitorPeriod},
		},
		ShootConditions:  &controllermanagerconfigv1alpha1.ShootConditionsControllerConfiguration{ConcurrentSyncs: new(workers)},
		ShootHibernation: controllermanagerconfigv1alpha1.ShootHibernationControllerConfiguration{ConcurrentSyncs: new(workers)},
		ShootMaintenance: controllermanagerconfigv1alpha1.ShootMaintenanceControllerConfiguration{ConcurrentSyncs: new(workers)},
		ShootReference:   &controllermanagerconfigv1alpha1.ShootReferenceControllerConfiguration{ConcurrentSyncs: new(workers)},
		ShootRetry:       &controllermanagerconfigv1alpha1.ShootRetryControllerConfiguration{ConcurrentSyncs: new(workers)},
		ShootState:       &controllermanagerconfigv1alpha1.ShootStateControllerConfiguration{ConcurrentSyncs: new(workers)},
		ShootStatusLabel: &controllermanagerconfigv1alpha1.ShootStatusLabelControllerConfiguration{ConcurrentSyncs: new(workers)},
	}
}
