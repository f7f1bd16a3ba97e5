// Package machinecontrollermanager deploys the machine-controller-manager of a shoot, which reconciles Machines in the seed and drains Nodes in
// the shoot. A workerless cluster has none.
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
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// Name is the name of the Deployment, and of the accounts in seed and shoot.
	Name = "machine-controller-manager"
	// ManagedResourceName is the name of the ManagedResource with TargetObjects.
	ManagedResourceName = "shoot-core-machine-controller-manager"

	metricsPort int32 = 10258
	healthPort  int   = 10259

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
	// Provider is the infrastructure: local.
	Provider string
	// GenericKubeconfig is the name of the Secret with the generic token kubeconfig.
	GenericKubeconfig string
	// Flags are additional flags, such as "--machine-drain-timeout=1h".
	Flags []string
}

// Labels select the pods.
func Labels() map[string]string {
	return map[string]string{constants.App: "kubernetes", constants.Role: Name}
}

// Objects renders the objects in the seed, with the request for the token of the shoot. TargetObjects renders those in the shoot.
func Objects(v Values) ([]client.Object, error) {
	live := workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP)
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
			Command: append([]string{
				operatingsystemconfig.NodeAgentPathInImage, Name, "--namespace=" + v.Namespace, "--provider=" + v.Provider, "--target-kubeconfig=" + shootaccess.PathKubeconfig,
				fmt.Sprintf("--port=%d", metricsPort), fmt.Sprintf("--health-port=%d", healthPort),
			}, v.Flags...),
			Env:           []corev1.EnvVar{workload.PodName()},
			Ports:         []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
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
	service := w.Service("metrics", metricsPort)
	service.Labels = labels
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(metricsPort) // a number, as the labels for network policies contain it
	service.Annotations = workload.Scraped(metricsPort)
	return []client.Object{
		shootaccess.Secret(v.Namespace, Name), w.ServiceAccount(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: Name, Labels: labels}, Rules: []rbacv1.PolicyRule{
			workload.Rule("machine.sapcloud.io", "machineclasses machinedeployments", "get list patch watch"),
			workload.Rule("machine.sapcloud.io", "machines machinesets", "create delete get list patch watch"),
			workload.Rule("machine.sapcloud.io", "machinedeployments/status machines/status machinesets/status", "patch"),
			// Objects that they own: the admission plugin OwnerReferencesPermissionEnforcement checks it.
			workload.Rule("machine.sapcloud.io", "machinedeployments/finalizers machinesets/finalizers", "update"),
			// Machines of the local infrastructure are pods, whose user data are in Secrets. Other infrastructures only need to read the Secrets of MachineClasses.
			workload.Rule("", "pods", "create delete get list patch watch"),
			workload.Rule("", "secrets", "create delete get patch"),
			workload.Rule("", "events", "create patch"),
			workload.Rule("events.k8s.io", "events", "create patch"),
			workload.Rule("coordination.k8s.io", "leases", "create get update"),
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
			workload.Rule("", "nodes", "delete get list patch watch"),
			workload.Rule("", "pods", "delete get list"),
			workload.Rule("", "pods/eviction", "create"),
			workload.Rule("storage.k8s.io", "volumeattachments", "get list"),
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: targetRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole}, Subjects: []rbacv1.Subject{account},
		},
		// Bootstrap tokens.
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: targetRole}, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "secrets", "create delete get patch"),
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: targetRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: targetRole}, Subjects: []rbacv1.Subject{account},
		},
	}
}
