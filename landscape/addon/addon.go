// Package addon renders what makes a bare kubeadm cluster useful on a local landscape: pod network, DNS, storage, load
// balancers and metrics. Rendering is pure: the same values give the same objects.
package addon

import (
	"fmt"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Values is what addons depend on.
type Values struct {
	// Images are the images' references by the name of their product, such as "coredns".
	Images map[string]string
	// Pods is the pod network. Every node has a /24 of it.
	Pods netip.Prefix
	// DNS is the address of the cluster's DNS service, within the service network.
	DNS netip.Addr
	// Pool are the addresses for Services of type LoadBalancer.
	Pool netip.Prefix
}

// Products are the products whose images addons need.
func Products() []string {
	return []string{"flannel", "coredns", "local-storage", "local-loadbalancer", "metrics-server"}
}

// Objects returns all objects of all addons, in the order in which they are best applied.
func Objects(v Values) ([]client.Object, error) {
	var all []client.Object
	for _, addon := range []func(Values) ([]client.Object, error){flannel, coreDNS, localStorage, localLoadBalancer, metricsServer} {
		objects, err := addon(v)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (v Values) image(product string) (string, error) {
	if reference, ok := v.Images[product]; ok {
		return reference, nil
	}
	return "", fmt.Errorf("no image of product %q is known", product)
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels(name)}
}

func labels(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }

// workload is the part in which the addons' pods are alike: few replicas, a service account of their own, no privileges.
type workload struct {
	name      string
	namespace string
	priority  string
	container corev1.Container
	volumes   []corev1.Volume
	// everywhere lets the pods run on nodes that are not ready or tainted, in the network of the node.
	everywhere bool
}

func (w workload) template() corev1.PodTemplateSpec {
	if w.container.SecurityContext == nil {
		w.container.SecurityContext = unprivileged()
	}
	w.container.Name = w.name
	spec := corev1.PodSpec{
		ServiceAccountName: w.name,
		PriorityClassName:  w.priority,
		Containers:         []corev1.Container{w.container},
		Volumes:            w.volumes,
		SecurityContext:    &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}
	if w.everywhere {
		spec.HostNetwork = true
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(w.name)}, Spec: spec}
}

func (w workload) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: meta(w.namespace, w.name),
		Spec: appsv1.DeploymentSpec{
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](1),
			Selector:             &metav1.LabelSelector{MatchLabels: labels(w.name)},
			Template:             w.template(),
		},
	}
}

func (w workload) daemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: meta(w.namespace, w.name),
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: ptr.To[int32](1),
			Selector:             &metav1.LabelSelector{MatchLabels: labels(w.name)},
			Template:             w.template(),
		},
	}
}

func unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		RunAsNonRoot:             ptr.To(true),
		RunAsUser:                ptr.To[int64](65532),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

func httpProbe(path string, port int, scheme corev1.URIScheme) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port), Scheme: scheme}},
		PeriodSeconds: 10,
	}
}

// eager makes a readiness probe look every second until it first succeeds, so that nobody waits for a period.
func eager(probe *corev1.Probe) *corev1.Probe {
	startup := probe.DeepCopy()
	startup.PeriodSeconds, startup.FailureThreshold = 1, 120
	return startup
}

func hostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

func serviceAccount(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: meta(namespace, name)}
}

// clusterRole grants rules to the service account of the same name.
func clusterRole(namespace, name string, rules ...rbacv1.PolicyRule) []client.Object {
	full := "landscape:" + name
	return []client.Object{
		serviceAccount(namespace, name),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: full, Labels: labels(name)}, Rules: rules},
		clusterRoleBinding(namespace, name, full, full),
	}
}

func clusterRoleBinding(namespace, account, name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(account)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
}

// rule takes resources and verbs separated by spaces.
func rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
}
