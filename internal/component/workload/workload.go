// Package workload renders what the Deployments and DaemonSets of components have in common: few old revisions, a service account
// of their own, no privileges. Rendering is pure.
package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// Workload is a set of equal pods with one container.
type Workload struct {
	// Name is the name of the objects, of the container and of the service account.
	Name string
	// Namespace is the namespace of the objects.
	Namespace string
	// Labels are on the objects and the pods, and select the pods. The default is Labels(Name).
	Labels map[string]string
	// PodLabels and PodAnnotations are additional ones of the pods.
	PodLabels, PodAnnotations map[string]string
	// Replicas is the number of pods of a Deployment.
	Replicas int32
	// PriorityClass is that of the pods.
	PriorityClass string
	// Container is the container. Without a security context it gets one without privileges.
	Container corev1.Container
	// Volumes are those of the pods.
	Volumes []corev1.Volume
	// HostNetwork sets hostNetwork, and tolerates all taints, also those of nodes that are not ready.
	HostNetwork bool
}

// Mutable returns labels with the one by which webhooks of extensions select what they adapt to an infrastructure.
func Mutable(labels map[string]string) map[string]string {
	return Merge(labels, map[string]string{extensionsv1alpha1.LabelMutatedByControlPlaneWebhook: "true"})
}

// HighAvailability labels a Deployment as a controller or a server (resourcesv1alpha1.HighAvailabilityConfigType), as extensions expect. The
// webhook of gardener-resource-manager then decides on the number of pods, and for servers it is never one: the annotation keeps it to the
// number given. None, of a hibernated component, stays without it.
func HighAvailability(deployment *appsv1.Deployment, kind string, replicas int32) {
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigType, kind)
	if replicas > 0 {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigReplicas, strconv.Itoa(int(replicas)))
	}
}

// Labels are the labels of a workload that has no others.
func Labels(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }

func (w Workload) labels() map[string]string {
	if w.Labels != nil {
		return w.Labels
	}
	return Labels(w.Name)
}

func (w Workload) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: w.labels()}
}

func (w Workload) template() corev1.PodTemplateSpec {
	if w.Container.SecurityContext == nil {
		w.Container.SecurityContext = Unprivileged()
	}
	w.Container.Name = w.Name
	spec := corev1.PodSpec{
		ServiceAccountName: w.Name,
		PriorityClassName:  w.PriorityClass,
		Containers:         []corev1.Container{w.Container},
		Volumes:            w.Volumes,
		SecurityContext:    &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}
	if w.HostNetwork {
		spec.HostNetwork = true
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: Merge(w.labels(), w.PodLabels), Annotations: w.PodAnnotations}, Spec: spec,
	}
}

// Deployment renders the workload with a number of replicas.
func (w Workload) Deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: w.meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(w.Replicas),
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: w.labels()},
			Template:             w.template(),
		},
	}
}

// DaemonSet renders the workload with one pod per node.
func (w Workload) DaemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: w.meta(),
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: w.labels()},
			Template:             w.template(),
		},
	}
}

// ServiceAccount renders the service account of the pods.
func (w Workload) ServiceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: w.meta()}
}

// Service renders a Service with one port of the given name and number, whose target is the container's port of that name.
func (w Workload) Service(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: w.meta(), Spec: corev1.ServiceSpec{
		Selector: w.labels(),
		Ports:    []corev1.ServicePort{{Name: name, Port: port, TargetPort: intstr.FromString(name), Protocol: corev1.ProtocolTCP}},
	}}
}

// ClusterRole renders a ClusterRole with rules, and its binding to the service account.
func (w Workload) ClusterRole(name string, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.labels()}, Rules: rules},
		w.ClusterRoleBinding(name, name),
	}
}

// Role renders a Role with rules in a namespace, and its binding to the service account.
func (w Workload) Role(namespace, name string, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: w.labels()}, Rules: rules},
		w.RoleBinding(namespace, name, name),
	}
}

// LeaderElection renders the Role for the leader election by a Lease in a namespace, and its binding to the service account.
func (w Workload) LeaderElection(namespace string) []client.Object {
	return w.Role(namespace, w.Name+"-leader-election", Rule("coordination.k8s.io", "leases", "create get update"))
}

// ClusterRoleBinding binds the service account to a ClusterRole.
func (w Workload) ClusterRoleBinding(name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{w.subject()},
	}
}

// RoleBinding binds the service account to a Role in a namespace.
func (w Workload) RoleBinding(namespace, name, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: w.labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{w.subject()},
	}
}

func (w Workload) subject() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: w.Name}
}

// Rule renders an RBAC rule. Resources and verbs are separated by spaces.
func Rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
}

// Unprivileged is the security context of a container without privileges.
func Unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		RunAsUser:                new(int64(65532)),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// Requests are requests of CPU time and memory without limits.
func Requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// HTTPProbe gets a path every ten seconds, with a timeout of five, so that a busy node does not cause restarts.
func HTTPProbe(path string, port int, scheme corev1.URIScheme) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port), Scheme: scheme}},
		PeriodSeconds: 10, TimeoutSeconds: 5,
	}
}

// Eager returns a startup probe for a readiness probe. It runs every second until it succeeds, so that pods become ready without delay.
func Eager(probe *corev1.Probe) *corev1.Probe {
	startup := probe.DeepCopy()
	startup.PeriodSeconds, startup.FailureThreshold = 1, 120
	return startup
}

// HostPath is a volume with a path of the node.
func HostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

// SecretVolume is a volume with the keys of a Secret.
func SecretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
}

// ConfigMapVolume is a volume with the keys of a ConfigMap.
func ConfigMapVolume(name, configMap string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap},
	}}}
}

// FieldEnv is an environment variable with a field of the pod, such as metadata.name.
func FieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// Merge returns the entries of all maps; later ones win.
func Merge(maps ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range maps {
		for key, value := range m {
			out[key] = value
		}
	}
	return out
}

// PolicyLabel is the label of pods that may connect to a port of the pods of a Service in their namespace. Its value is
// constants.NetworkPolicyAllowed.
func PolicyLabel(service string, port int32) string {
	return fmt.Sprintf("%s%s-tcp-%d", resourcesv1alpha1.NetworkPolicyToPrefix, service, port)
}

// AllShoots is the alias of all control plane namespaces for Services that pods of other namespaces of the seed connect to.
const AllShoots = "all-shoots"

// AllShootsPolicyLabel is the label of pods that may connect to a port of a Service in all control plane namespaces.
func AllShootsPolicyLabel(service string, port int32) string {
	return PolicyLabel(AllShoots+"-"+service, port)
}

// scrapeTargets is the alias of ports with metrics in the namespace of a control plane.
const scrapeTargets = "all-scrape-targets"

// WebhookTargets is the alias of ports that the API server of the cluster calls, which the pods are a control plane of.
const WebhookTargets = "all-webhook-targets"

// Scraped are annotations of a Service in a control plane's namespace: pods that scrape metrics there may connect to these ports of its pods.
func Scraped(ports ...int32) map[string]string {
	return FromPods(scrapeTargets, ports...)
}

// FromPods are annotations of a Service: pods with the label PolicyTo(alias) may connect to these ports of its pods.
func FromPods(alias string, ports ...int32) map[string]string {
	var list []string
	for _, port := range ports {
		list = append(list, fmt.Sprintf(`{"protocol":"TCP","port":%d}`, port))
	}
	key := resourcesv1alpha1.NetworkPolicyFromPolicyAnnotationPrefix + alias + resourcesv1alpha1.NetworkPolicyFromPolicyAnnotationSuffix
	return map[string]string{key: "[" + strings.Join(list, ",") + "]"}
}

// PolicyTo is the label of pods that may connect to the ports which Services list for an alias with FromPods.
func PolicyTo(alias string) string { return resourcesv1alpha1.NetworkPolicyToPrefix + alias }

// DNSNames are the names under which a Service can be reached in its cluster, for certificates.
func DNSNames(service, namespace string) []string {
	in := service + "." + namespace
	return []string{service, in, in + ".svc", in + ".svc." + constants.DefaultDomain}
}

// PodName is an environment variable for leader election: a process that restarts after a crash recognizes its own lease, see internal/process.
func PodName() corev1.EnvVar {
	return FieldEnv("POD_NAME", "metadata.name")
}

// Switches formats boolean settings, such as feature gates, as the value of a flag, sorted.
func Switches(on map[string]bool) string {
	list := make([]string, 0, len(on))
	for _, name := range slices.Sorted(maps.Keys(on)) {
		list = append(list, name+"="+strconv.FormatBool(on[name]))
	}
	return strings.Join(list, ",")
}
