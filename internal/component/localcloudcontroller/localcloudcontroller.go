// Package localcloudcontroller deploys the cloud-controller-manager of a shoot with local machines, which gives Services of type LoadBalancer addresses.
package localcloudcontroller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// Name is the name of the Deployment, and of the accounts in seed and shoot.
	Name = "cloud-controller-manager"
	// Command is the name of the command.
	Command = Name + "-local"
	// Port is where metrics and probes are served.
	Port int32 = 10258

	targetRole = "gardener.cloud:target:" + Name
)

// Values are what a cloud-controller-manager is deployed with.
type Values struct {
	// Namespace is that of the control plane.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods, at most 1: there is no leader election.
	Replicas int32
	// GenericKubeconfig is the name of the Secret with the generic token kubeconfig.
	GenericKubeconfig string
}

// Objects renders the objects in the seed, TargetObjects renders those in the shoot.
func Objects(v Values) []client.Object {
	labels := map[string]string{constants.App: "kubernetes", constants.Role: Name}
	port := int(Port)
	w := workload.Workload{
		Name: Name, Namespace: v.Namespace, Labels: labels, Replicas: v.Replicas, PriorityClass: constants.PriorityClassNameShootControlPlane200,
		PodLabels: workload.Merge(labels, map[string]string{
			constants.GardenRole:                      constants.GardenRoleControlPlane,
			constants.NetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			kubeapiserver.PolicyLabel(instance.Shoot): constants.NetworkPolicyAllowed,
		}),
		Container: corev1.Container{
			Image: v.Image, Command: []string{operatingsystemconfig.NodeAgentPathInImage, Command},
			Args:           []string{"--namespace=" + v.Namespace, "--kubeconfig=" + shootaccess.PathKubeconfig},
			Ports:          []corev1.ContainerPort{{Name: "metrics", ContainerPort: Port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe:  workload.HTTPProbe("/healthz", port, corev1.URISchemeHTTP),
			ReadinessProbe: workload.HTTPProbe("/readyz", port, corev1.URISchemeHTTP),
			Resources:      workload.Requests("5m", "30Mi"), VolumeMounts: []corev1.VolumeMount{shootaccess.Mount()},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		},
		Volumes: []corev1.Volume{shootaccess.Volume(v.GenericKubeconfig, Name)},
	}
	deployment := w.Deployment()
	deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType // there is no leader election
	deployment.Labels = workload.Merge(labels, map[string]string{constants.GardenRole: constants.GardenRoleControlPlane})
	return []client.Object{shootaccess.Secret(v.Namespace, Name), w.ServiceAccount(), deployment}
}

// Role lets it create load balancers beside the machines, if they are in the seed.
func Role(controlPlane string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: localv1alpha1.InfrastructureNamespace(controlPlane), Name: Name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		workload.Rule("", "services", "create delete get patch"), workload.Rule("networking.k8s.io", "networkpolicies", "create delete patch"),
	}}
	return role, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: controlPlane, Name: Name}},
	}
}

// TargetObjects renders its permissions in the shoot.
func TargetObjects() []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: targetRole}, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "services", "get list patch update watch"),
			workload.Rule("", "services/status", "patch update"),
			workload.Rule("", "nodes", "get list watch"),
			workload.Rule("", "events", "create patch update"),
			workload.Rule("events.k8s.io", "events", "create patch update"),
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: targetRole}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Name}},
		},
	}
}
