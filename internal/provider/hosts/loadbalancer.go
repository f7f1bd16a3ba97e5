package hosts

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

const (
	// cloudControllerName is the Deployment that gives Services addresses, and its accounts in seed and shoot.
	cloudControllerName = "cloud-controller-manager"
	// announcerName is the DaemonSet in shoots that answers for the addresses.
	announcerName = "address-announcer"
	// kubeconfigDirectory is where the pods of a control plane have the kubeconfig and the token for the shoot.
	kubeconfigDirectory = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
	// binary is all processes of Gardener.
	binary = "/usr/local/bin/gardener"
	// cloudControllerPort and announcerPort are those of probes and metrics. The announcer uses the network of the node.
	cloudControllerPort, announcerPort int32 = 10258, 16912
)

// withWorkers says whether a shoot has nodes, without which there are no load balancers.
func withWorkers(cluster *extension.Cluster) bool {
	return cluster != nil && cluster.Shoot != nil && len(cluster.Shoot.Spec.Provider.Workers) > 0
}

// cloudController renders the cloud-controller-manager of a control plane.
func cloudController(image string, in generic.ControlPlaneInput) []client.Object {
	if !withWorkers(in.Cluster) {
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: in.ControlPlane.Namespace, Name: cloudControllerName, Labels: map[string]string{
		constants.App: "kubernetes", constants.Role: cloudControllerName, constants.GardenRole: constants.GardenRoleControlPlane,
	}}
	access := "shoot-access-" + cloudControllerName
	kubeconfig := cmp.Or(in.Cluster.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName], constants.SecretNameGenericTokenKubeconfig)
	return []client.Object{
		&corev1.Secret{Type: corev1.SecretTypeOpaque, ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.Namespace, Name: access,
			Labels: map[string]string{
				resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
				resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassShoot,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.ServiceAccountName: cloudControllerName, resourcesv1alpha1.ServiceAccountNamespace: metav1.NamespaceSystem,
			},
		}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			rule(hostsv1alpha1.GroupName, []string{"addressclaims"}, "create", "delete", "get", "list", "watch"),
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: roleRef("Role", meta.Name), Subjects: account(meta.Namespace, meta.Name)},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: new(in.Replicas(1)), RevisionHistoryLimit: new(int32(1)),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, // there is no leader election
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.App: "kubernetes", constants.Role: cloudControllerName}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: in.Checksums, Labels: map[string]string{
					constants.App: "kubernetes", constants.Role: cloudControllerName, constants.GardenRole: constants.GardenRoleControlPlane,
					constants.NetworkPolicyToDNS:                                       constants.NetworkPolicyAllowed,
					constants.NetworkPolicyToRuntimeAPIServer:                          constants.NetworkPolicyAllowed,
					resourcesv1alpha1.NetworkPolicyToPrefix + "kube-apiserver-tcp-443": constants.NetworkPolicyAllowed,
				}},
				Spec: corev1.PodSpec{
					ServiceAccountName: meta.Name, PriorityClassName: constants.PriorityClassNameShootControlPlane200,
					SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{withProbes(corev1.Container{
						Name: meta.Name, Image: image, Command: []string{binary, cloudControllerName + "-hosts"},
						Args:            []string{"--namespace=" + meta.Namespace, "--kubeconfig=" + kubeconfigDirectory + "/kubeconfig"},
						VolumeMounts:    []corev1.VolumeMount{{Name: "kubeconfig", MountPath: kubeconfigDirectory, ReadOnly: true}},
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
					}, cloudControllerPort)},
					Volumes: []corev1.Volume{{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{projection(kubeconfig, "kubeconfig"), projection(access, "token")},
					}}}},
				},
			},
		}},
	}
}

// renderShoot returns what is in shoots: the permissions of the cloud-controller-manager, and the announcer with its Leases.
func renderShoot(image string) generic.RenderControlPlane {
	return func(_ context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
		if !withWorkers(in.Cluster) {
			return nil, nil
		}
		controller := metav1.ObjectMeta{Name: "gardener.cloud:target:" + cloudControllerName}
		objects := []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: controller, Rules: []rbacv1.PolicyRule{
				rule("", []string{"services"}, "get", "list", "patch", "watch"),
				rule("", []string{"services/status"}, "patch"),
				rule("events.k8s.io", []string{"events"}, "create", "patch"),
			}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: controller, RoleRef: roleRef("ClusterRole", controller.Name), Subjects: account(metav1.NamespaceSystem, cloudControllerName),
			},
		}
		return append(objects, announcer(image)...), nil
	}
}

// announcer renders the DaemonSet. It may write Leases in a namespace of its own only: those of kube-system belong to controllers.
func announcer(image string) []client.Object {
	labels := map[string]string{constants.App: announcerName, constants.GardenRole: constants.GardenRoleSystemComponent}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: announcerName, Labels: labels}
	reader := metav1.ObjectMeta{Name: "gardener.cloud:" + announcerName}
	leases := metav1.ObjectMeta{Namespace: hostsv1alpha1.LeaseNamespace, Name: announcerName}
	subjects := account(meta.Namespace, meta.Name)
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: leases.Namespace, Labels: map[string]string{constants.ShootNoCleanup: "true"},
			// It goes with the cluster: the namespace controller does not finish while the API of metrics-server has no pods any more.
			Annotations: map[string]string{resourcesv1alpha1.KeepObject: "true"},
		}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: reader, Rules: []rbacv1.PolicyRule{
			rule("", []string{"nodes", "services"}, "get", "list", "watch"), rule("discovery.k8s.io", []string{"endpointslices"}, "get", "list", "watch"),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: reader, RoleRef: roleRef("ClusterRole", reader.Name), Subjects: subjects},
		&rbacv1.Role{ObjectMeta: leases, Rules: []rbacv1.PolicyRule{
			rule("coordination.k8s.io", []string{"leases"}, "create", "get", "list", "update", "watch"),
		}},
		&rbacv1.RoleBinding{ObjectMeta: leases, RoleRef: roleRef("Role", leases.Name), Subjects: subjects},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.App: announcerName}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: meta.Name, PriorityClassName: "system-node-critical", HostNetwork: true, TerminationGracePeriodSeconds: new(int64(15)),
				Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{withProbes(corev1.Container{
					Name: announcerName, Image: image, Command: []string{binary, announcerName},
					Env:  []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
					Args: []string{"--node=$(NODE_NAME)"},
					// It adds addresses to network interfaces, and sends packets of ARP.
					SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0)),
						Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}},
					},
				}, announcerPort)},
			}},
		}},
	}
}

// withProbes adds the probes of a process, and what it needs.
func withProbes(c corev1.Container, port int32) corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 10, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)}}}
	}
	c.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	c.LivenessProbe, c.ReadinessProbe = probe("/healthz"), probe("/readyz")
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("30Mi")}
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	return c
}

func projection(secret, key string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: []corev1.KeyToPath{{Key: key, Path: key}}, Optional: new(false),
	}}
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func account(namespace, name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
}
