// Package clusterautoscaler deploys the cluster-autoscaler of a shoot, which changes the replicas of MachineDeployments in the seed, for pods that no
// node of the shoot has room for, and for idle nodes. A shoot has one if a worker pool has a maximum above its minimum.
package clusterautoscaler

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// Name is the name of the Deployment, and of the accounts in seed and shoot.
	Name = "cluster-autoscaler"
	// ManagedResourceName is the name of the ManagedResource with TargetObjects.
	ManagedResourceName = "shoot-core-cluster-autoscaler"

	// command is where both our image and that of the original have the binary: in the working directory.
	command = "./" + Name
	port    = 8085
	// gracePeriod is how long a pod has to end, in seconds. Its Lease is free then, and nodes that were being drained are not tainted any more.
	gracePeriod = 5
)

// Values are what a cluster-autoscaler is deployed with.
type Values struct {
	// Namespace is where it runs, and where the MachineDeployments are.
	Namespace string
	// Image is that of the cluster-autoscaler.
	Image string
	// Replicas is the number of pods. It is 0 while the cluster is hibernated.
	Replicas int32
	// GenericKubeconfig is the name of the Secret with the generic token kubeconfig.
	GenericKubeconfig string
	// KubernetesVersion is that of the cluster.
	KubernetesVersion string
	// Config is spec.kubernetes.clusterAutoscaler of the Shoot. Nil means the defaults.
	Config *corev1beta1.ClusterAutoscaler
	// MachineDeployments are those in the status of the Worker: the groups of nodes, with their bounds.
	MachineDeployments []extensionsv1alpha1.MachineDeployment
	// MaxNodesTotal is how many nodes the cluster may have. 0 means that there is no limit.
	MaxNodesTotal int64
}

// Labels select the pods.
func Labels() map[string]string {
	return map[string]string{constants.App: "kubernetes", constants.Role: Name}
}

// Objects renders the objects in the seed, with the request for the token of the shoot. TargetObjects renders those in the shoot.
func Objects(v Values) ([]client.Object, error) {
	labels := workload.Merge(Labels(), map[string]string{constants.GardenRole: constants.GardenRoleControlPlane})
	live := workload.HTTPProbe("/health-check", port, corev1.URISchemeHTTP)
	live.TimeoutSeconds = 15
	resources := workload.Requests("10m", "30M")
	if c := v.Config; c != nil && c.Autoscaling != nil {
		maps.Copy(resources.Requests, c.Autoscaling.MinAllowed) // the autoscaler of pods keeps to requests as the minimum
	}
	w := workload.Workload{
		Name: Name, Namespace: v.Namespace, Labels: Labels(), Replicas: v.Replicas, PriorityClass: constants.PriorityClassNameShootControlPlane300,
		PodLabels: workload.Merge(labels, map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			kubeapiserver.PolicyLabel(instance.Shoot): constants.NetworkPolicyAllowed,
		}),
		Container: corev1.Container{
			Image: v.Image,
			// Flags are in the command, where extensions look for them.
			Command: append([]string{command}, flags(v)...),
			Env: []corev1.EnvVar{
				{Name: "CONTROL_NAMESPACE", Value: v.Namespace}, {Name: "TARGET_KUBECONFIG", Value: shootaccess.PathKubeconfig},
			},
			Ports:         []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: live, Resources: resources, VolumeMounts: []corev1.VolumeMount{shootaccess.Mount()},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		},
		Volumes: []corev1.Volume{shootaccess.Volume(v.GenericKubeconfig, Name)},
	}
	deployment := w.Deployment()
	deployment.Labels = workload.Mutable(labels)
	workload.HighAvailability(deployment, resourcesv1alpha1.HighAvailabilityConfigTypeController, v.Replicas)
	deployment.Spec.Template.Spec.EnableServiceLinks = new(false)
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(gracePeriod))
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	service := w.Service("metrics", port)
	service.Labels, service.Spec.ClusterIP = labels, corev1.ClusterIPNone
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(port) // a number, as the labels for network policies contain it
	service.Annotations = workload.Scraped(port)
	objects := []client.Object{
		shootaccess.Secret(v.Namespace, Name), w.ServiceAccount(), service, deployment,
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: Name, Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		},
	}
	// A Role, and not a ClusterRole as in the original: it must not reach the machines of other shoots. Ours patches; the original's image updates,
	// and reads MachineSets.
	return append(objects, w.Role(v.Namespace, Name,
		workload.Rule("machine.sapcloud.io", "machineclasses machinesets", "get list watch"),
		workload.Rule("machine.sapcloud.io", "machinedeployments machines", "get list patch update watch"),
		workload.Rule("apps", "deployments", "get list watch"), // whether a machine-controller-manager is available
	)...), nil
}
