// Package machinecontrollermanager deploys the machine-controller-manager of a shoot, which replaces Machines in the seed when the template of their
// MachineDeployment changes. The webhook of the extension for the infrastructure adds a container to its pods, which creates and deletes the machines,
// and drains Nodes in the shoot. A workerless cluster has none.
package machinecontrollermanager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// Name is the name of the Deployment, and of the accounts in seed and shoot.
	Name = "machine-controller-manager"
	// ManagedResourceName is the name of the ManagedResource with TargetObjects.
	ManagedResourceName = "shoot-core-machine-controller-manager"

	// MetricsPort is where the container serves metrics and probes.
	MetricsPort int32 = 10258
	// ProviderPort is where the container of the provider does so. It has a name of ProviderPortName.
	ProviderPort     int32 = 10259
	ProviderPortName       = "providermetrics"
	metricsPortName        = "metrics"

	// Command is where both our image and that of the original have the binary: in the working directory.
	Command = "./" + Name
	// gracePeriod is how long a pod has to end, in seconds. Its Leases are free then, and nothing else has to be done.
	gracePeriod = 5

	// machineVerbs are all verbs that processes of either origin use.
	machineVerbs = "create delete deletecollection get list patch update watch"

	targetRole = "gardener.cloud:target:machine-controller-manager"
)

// Values are what a machine-controller-manager is deployed with.
type Values struct {
	// Namespace is where it runs, and where the Machines are.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. One of them leads. It is 0 while machines must not change, such as before a migration.
	Replicas int32
	// GenericKubeconfig is the name of the Secret with the generic token kubeconfig.
	GenericKubeconfig string
}

// Labels select the pods.
func Labels() map[string]string {
	return map[string]string{constants.App: "kubernetes", constants.Role: Name}
}

// Objects renders the objects in the seed, with the request for the token of the shoot. TargetObjects renders those in the shoot.
func Objects(v Values) ([]client.Object, error) {
	live := workload.HTTPProbe("/healthz", int(MetricsPort), corev1.URISchemeHTTP)
	live.TimeoutSeconds = 15
	labels := workload.Merge(Labels(), map[string]string{constants.GardenRole: constants.GardenRoleControlPlane})
	w := workload.Workload{
		Name: Name, Namespace: v.Namespace, Labels: Labels(), Replicas: v.Replicas, PriorityClass: constants.PriorityClassNameShootControlPlane300,
		PodLabels: workload.Merge(labels, map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			// The container that an extension adds talks to its infrastructure.
			constants.NetworkPolicyToPublicNetworks: constants.NetworkPolicyAllowed, constants.NetworkPolicyToPrivateNetworks: constants.NetworkPolicyAllowed,
			kubeapiserver.PolicyLabel(instance.Shoot): constants.NetworkPolicyAllowed,
		}),
		Container: corev1.Container{
			Image: v.Image,
			// Flags are in the command, where extensions look for them.
			Command: []string{
				Command, "--control-kubeconfig=inClusterConfig", "--machine-safety-overshooting-period=1m", "--namespace=" + v.Namespace,
				fmt.Sprintf("--port=%d", MetricsPort), "--safety-up=2", "--safety-down=1", "--target-kubeconfig=" + shootaccess.PathKubeconfig,
				"--concurrent-syncs=30", "--kube-api-qps=150", "--kube-api-burst=200", "--v=3",
			},
			Env:           []corev1.EnvVar{workload.PodName()},
			Ports:         []corev1.ContainerPort{{Name: metricsPortName, ContainerPort: MetricsPort, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: live, Resources: workload.Requests("5m", "30Mi"), VolumeMounts: []corev1.VolumeMount{shootaccess.Mount()},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		},
		Volumes: []corev1.Volume{shootaccess.Volume(v.GenericKubeconfig, Name)},
	}
	deployment := w.Deployment()
	deployment.Labels = workload.Mutable(labels)
	workload.HighAvailability(deployment, resourcesv1alpha1.HighAvailabilityConfigTypeController, v.Replicas)
	deployment.Spec.Template.Spec.EnableServiceLinks = new(false)
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(gracePeriod))
	service := w.Service(metricsPortName, MetricsPort)
	service.Labels, service.Spec.ClusterIP = labels, corev1.ClusterIPNone
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(MetricsPort) // a number, as the labels for network policies contain it
	provider := *service.Spec.Ports[0].DeepCopy()
	provider.Name, provider.Port, provider.TargetPort = ProviderPortName, ProviderPort, intstr.FromInt32(ProviderPort)
	service.Spec.Ports = append(service.Spec.Ports, provider)
	service.Annotations = workload.Scraped(MetricsPort, ProviderPort)
	return []client.Object{
		shootaccess.Secret(v.Namespace, Name), w.ServiceAccount(),
		// For both containers, of any implementation. The gardenlet may grant what it has not, under this name.
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: Name, Labels: labels}, Rules: []rbacv1.PolicyRule{
			workload.Rule("machine.sapcloud.io", "machineclasses machinedeployments machines machinesets", machineVerbs),
			workload.Rule("machine.sapcloud.io", "machineclasses/status machinedeployments/status machines/status machinesets/status", machineVerbs),
			// Objects that they own: the admission plugin OwnerReferencesPermissionEnforcement checks it.
			workload.Rule("machine.sapcloud.io", "machinedeployments/finalizers machinesets/finalizers", "update"),
			// Those of MachineClasses, with user data and credentials.
			workload.Rule("", "secrets", "create delete get list patch update watch"),
			workload.Rule("", "events", "create patch update"),
			workload.Rule("events.k8s.io", "events", "create patch update"),
			workload.Rule("coordination.k8s.io", "leases", "create"),
			{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "patch", "update", "watch"},
				ResourceNames: []string{Name, "machine-controller"},
			},
		}},
		w.RoleBinding(v.Namespace, Name, Name),
		service, deployment,
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: Name, Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		},
	}, nil
}

// TargetObjects renders its permissions in the shoot.
func TargetObjects() []client.Object {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: targetRole}, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "nodes nodes/status", machineVerbs),
			workload.Rule("", "pods", machineVerbs),
			workload.Rule("", "pods/eviction", "create"),
			workload.Rule("", "endpoints persistentvolumeclaims persistentvolumes replicationcontrollers services", "get list watch"),
			workload.Rule("apps", "daemonsets deployments replicasets statefulsets", "get list watch"),
			workload.Rule("batch", "cronjobs jobs", "get list watch"),
			workload.Rule("policy", "poddisruptionbudgets", "get list watch"),
			workload.Rule("storage.k8s.io", "volumeattachments", "delete get list watch"),
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: targetRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole}, Subjects: []rbacv1.Subject{account},
		},
		// Bootstrap tokens.
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: targetRole}, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "secrets", "create delete get list patch update watch"),
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: targetRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: targetRole}, Subjects: []rbacv1.Subject{account},
		},
	}
}
