// Package gardenerscheduler deploys gardener-scheduler, which chooses seeds for shoots.
package gardenerscheduler

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
)

// Name is the name of the Deployment.
const Name = "gardener-scheduler"

const (
	healthPort  = 10251
	metricsPort = 19251
)

// Values are what the scheduler is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads.
	Replicas int32
	// Config is its configuration. Objects overwrites ports.
	Config schedulerconfigv1alpha1.SchedulerConfiguration
	// Autoscaled renders a VerticalPodAutoscaler.
	Autoscaled bool
	// Virtual says that it works in a virtual garden. Then Objects renders what belongs into the cluster that it runs in, and TargetObjects what
	// belongs into the virtual garden. Nil means that both are the same cluster.
	Virtual *gardenerprocess.Virtual
}

// Objects renders the scheduler for the cluster that serves the garden API.
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

// TargetObjects renders what the scheduler needs in a virtual garden: the bindings of its roles, of which gardenrbac has the first.
func TargetObjects(v Values) []client.Object {
	const role = "gardener.cloud:system:scheduler"
	w := v.process().Target()
	objects := []client.Object{w.ClusterRoleBinding(role, role)}
	objects = append(objects, w.Role(constants.GardenNamespace, Name, workload.Rule("", "configmaps", "get list watch"))...) // distances of regions
	config := v.config()
	schedulerconfigv1alpha1.SetDefaults(config) // only for what is not in the file
	return append(objects, w.LeaderElection(config.LeaderElection.ResourceNamespace)...)
}

func (v Values) config() *schedulerconfigv1alpha1.SchedulerConfiguration {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = schedulerconfigv1alpha1.SchemeGroupVersion.String(), "SchedulerConfiguration"
	config.Server.HealthProbes = &schedulerconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &schedulerconfigv1alpha1.Server{Port: metricsPort}
	if v.Virtual != nil {
		if config.ClientConnection == nil {
			config.ClientConnection = &componentbaseconfigv1alpha1.ClientConnectionConfiguration{}
		}
		config.ClientConnection.Kubeconfig = shootaccess.PathKubeconfig
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
		Name: Name, Role: "scheduler", Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem200, Config: v.config(),
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources:        workload.Requests("10m", "50Mi"),
		HighAvailability: v.Virtual.HighAvailability(resourcesv1alpha1.HighAvailabilityConfigTypeController), Autoscaled: v.Autoscaled, Virtual: v.Virtual,
	}
	if v.Virtual != nil {
		process.ConfigFile = "schedulerconfiguration.yaml"
	}
	return process
}

// Configuration returns the configuration that a Garden asks for. It may be nil.
func Configuration(config *operatorv1alpha1.GardenerSchedulerConfig) schedulerconfigv1alpha1.SchedulerConfiguration {
	out := schedulerconfigv1alpha1.SchedulerConfiguration{}
	if config == nil {
		return out
	}
	out.LogLevel, out.FeatureGates = ptr.Deref(config.LogLevel, ""), maps.Clone(config.FeatureGates)
	if strategy := config.Strategy; strategy != nil {
		out.Schedulers.Shoot = &schedulerconfigv1alpha1.ShootSchedulerConfiguration{
			Strategy: schedulerconfigv1alpha1.CandidateDeterminationStrategy(*strategy),
		}
	}
	return out
}
