package local

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/cloudcontroller"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// cloudControllerName is the name of the Deployment with the cloud-controller-manager, and of its accounts in seed and shoot.
const cloudControllerName = "cloud-controller-manager"

// cloudController is what the cloud-controller-manager of a shoot is deployed with.
type cloudController struct {
	namespace, image, genericKubeconfig string
	replicas                            int32
	access                              driverAccess
}

// renderCloudController returns generic.ControlPlane.Components. A shoot without workers has none.
func renderCloudController(image string, access func(ctx context.Context, controlPlane string, ref corev1.SecretReference) (driverAccess, error)) generic.RenderControlPlane {
	return func(ctx context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
		if in.Cluster == nil || in.Cluster.Shoot == nil || len(in.Cluster.Shoot.Spec.Provider.Workers) == 0 {
			return nil, nil
		}
		if image == "" {
			return nil, errors.New("provider-local is configured without the image of Gardener, which has the cloud-controller-manager")
		}
		to, err := access(ctx, in.ControlPlane.Namespace, in.ControlPlane.Spec.SecretRef)
		if err != nil {
			return nil, err
		}
		return cloudController{
			namespace: in.ControlPlane.Namespace, image: image, genericKubeconfig: genericKubeconfigOf(in.Cluster.Annotations),
			replicas: in.Replicas(1), access: to,
		}.objects(), nil
	}
}

// genericKubeconfigOf returns the name of the Secret with the kubeconfig that components of a control plane share.
func genericKubeconfigOf(cluster map[string]string) string {
	if name := cluster[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]; name != "" {
		return name
	}
	return constants.SecretNameGenericTokenKubeconfig
}

// objects renders the objects in the seed.
func (c cloudController) objects() []client.Object {
	labels := map[string]string{constants.App: "kubernetes", constants.Role: cloudControllerName}
	port := int(cloudcontroller.Port)
	w := workload.Workload{
		Name: cloudControllerName, Namespace: c.namespace, Labels: labels, Replicas: c.replicas, PriorityClass: constants.PriorityClassNameShootControlPlane200,
		PodLabels: workload.Merge(labels, map[string]string{
			constants.GardenRole:                      constants.GardenRoleControlPlane,
			constants.NetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			kubeapiserver.PolicyLabel(instance.Shoot): constants.NetworkPolicyAllowed,
		}),
		Container: corev1.Container{
			Image: c.image, Command: []string{operatingsystemconfig.NodeAgentPathInImage, cloudcontroller.Name},
			Args:           []string{"--namespace=" + c.namespace, "--kubeconfig=" + shootaccess.PathKubeconfig},
			Ports:          []corev1.ContainerPort{{Name: "metrics", ContainerPort: cloudcontroller.Port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe:  workload.HTTPProbe("/healthz", port, corev1.URISchemeHTTP),
			ReadinessProbe: workload.HTTPProbe("/readyz", port, corev1.URISchemeHTTP),
			Resources:      workload.Requests("5m", "30Mi"), VolumeMounts: []corev1.VolumeMount{shootaccess.Mount()},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		},
		Volumes: []corev1.Volume{shootaccess.Volume(c.genericKubeconfig, cloudControllerName)},
	}
	objects := []client.Object{shootaccess.Secret(c.namespace, cloudControllerName), w.ServiceAccount()}
	if len(c.access.kubeconfig) == 0 {
		role, binding := cloudControllerRole(c.namespace)
		objects = append(objects, role, binding)
	}
	deployment := w.Deployment()
	c.access.addTo(&deployment.Spec.Template, &deployment.Spec.Template.Spec.Containers[0])
	deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType // there is no leader election
	deployment.Labels = workload.Merge(labels, map[string]string{constants.GardenRole: constants.GardenRoleControlPlane})
	return append(objects, deployment)
}

// cloudControllerRole lets it create load balancers beside the machines.
func cloudControllerRole(controlPlane string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: localv1alpha1.InfrastructureNamespace(controlPlane), Name: cloudControllerName}
	return &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "services", "create delete get patch"), workload.Rule("networking.k8s.io", "networkpolicies", "create delete patch"),
		}}, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: cloudControllerName},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: controlPlane, Name: cloudControllerName}},
		}
}

// renderCloudControllerAccess renders its permissions in the shoot.
func renderCloudControllerAccess(_ context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
	if in.Cluster == nil || in.Cluster.Shoot == nil || len(in.Cluster.Shoot.Spec.Provider.Workers) == 0 {
		return nil, nil
	}
	const name = "gardener.cloud:target:" + cloudControllerName
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			workload.Rule("", "services", "get list patch update watch"),
			workload.Rule("", "services/status", "patch update"),
			workload.Rule("", "nodes", "get list watch"),
			workload.Rule("", "events", "create patch update"),
			workload.Rule("events.k8s.io", "events", "create patch update"),
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: cloudControllerName}},
		},
	}, nil
}
