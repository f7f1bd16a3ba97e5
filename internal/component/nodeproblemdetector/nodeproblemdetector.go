// Package nodeproblemdetector deploys node-problem-detector, which reports problems of the kernel, and of the kubelet and containerd, as conditions of each
// Node of a shoot. The objects are for a ManagedResource.
package nodeproblemdetector

import (
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// ManagedResourceName is the name of the ManagedResource with all objects.
	ManagedResourceName = "shoot-core-node-problem-detector"
	// Name is the name of the DaemonSet, of its ServiceAccount and of the command.
	Name = "node-problem-detector"
	// Port is that of /healthz and /metrics.
	Port = 20257

	target      = "gardener.cloud:target:" + Name
	policyName  = Name + ".gardener.cloud"
	priority    = "system-cluster-critical"
	nodeNameEnv = "NODE_NAME"

	runVolume, runDir = "run", "/host/run"
	systemBus         = runDir + "/dbus/system_bus_socket"
)

// Values are what it is deployed with.
type Values struct {
	// Image is the image with all processes of Gardener.
	Image string
	// APIServer is the host name of the kube-apiserver outside of the cluster: problems are also reported from nodes where Services do not work.
	APIServer string
}

// Objects renders node-problem-detector.
func Objects(v Values) []client.Object {
	w := v.workload()
	daemonSet := w.DaemonSet()
	daemonSet.Labels = workload.Merge(systemcomponent.Labels(), w.Labels)
	daemonSet.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("20%"))},
	}
	pod := &daemonSet.Spec.Template.Spec
	pod.DNSPolicy = corev1.DNSDefault // as for Services, see Values
	pod.Tolerations = []corev1.Toleration{
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, {Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	objects := append([]client.Object{w.ServiceAccount()}, w.ClusterRole(target,
		workload.Rule("", "nodes", "get"), workload.Rule("", "nodes/status", "patch"),
	)...)
	// Events of objects without a namespace are in this one.
	objects = append(objects, w.Role(metav1.NamespaceDefault, target, workload.Rule("", "events", "create patch"))...)
	return append(append(objects, ownNode(w.Labels)...), daemonSet)
}

func (v Values) workload() workload.Workload {
	probe := workload.HTTPProbe("/healthz", Port, corev1.URISchemeHTTP)
	return workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem,
		Labels: map[string]string{"app.kubernetes.io/name": Name, "app.kubernetes.io/instance": "shoot-core"},
		PodLabels: workload.Merge(
			systemcomponent.PodLabels(constants.NetworkPolicyToDNS, constants.NetworkPolicyShootToAPIServer), map[string]string{constants.App: Name},
		),
		PriorityClass: priority,
		Container: corev1.Container{
			Image: v.Image,
			Args:  []string{Name, "--node-name=$(" + nodeNameEnv + ")", "--system-bus=" + systemBus, "--port=" + strconv.Itoa(Port)},
			Env: []corev1.EnvVar{
				workload.FieldEnv(nodeNameEnv, "spec.nodeName"), {Name: "KUBERNETES_SERVICE_HOST", Value: v.APIServer},
			},
			Ports:     []corev1.ContainerPort{{Name: "metrics", ContainerPort: Port, Protocol: corev1.ProtocolTCP}},
			Resources: workload.Requests("5m", "24Mi"),
			// Without privileges there is no /dev/kmsg in a container, and mounted from the node it could not be opened.
			SecurityContext: &corev1.SecurityContext{Privileged: new(true), ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0))},
			ReadinessProbe:  probe, StartupProbe: workload.Eager(probe), LivenessProbe: probe.DeepCopy(),
			VolumeMounts: []corev1.VolumeMount{{Name: runVolume, MountPath: runDir, ReadOnly: true}},
		},
		Volumes: []corev1.Volume{workload.HostPath(runVolume, "/run", corev1.HostPathDirectory)},
	}
}

// ownNode renders a policy: a pod writes the status of its own Node only, and nothing else of it. RBAC can only allow all Nodes, so the credentials of one
// pod could have all machines replaced. The kube-apiserver evaluates the policy itself.
func ownNode(labels map[string]string) []client.Object {
	meta := metav1.ObjectMeta{Name: policyName, Labels: labels}
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: Name, Expression: `request.userInfo.username == 'system:serviceaccount:` + metav1.NamespaceSystem + `:` + Name + `'`,
			}},
			Validations: []admissionregistrationv1.Validation{
				{
					// The claim is in tokens of pods, which are bound to them.
					Expression: `request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('') == object.metadata.name`,
					Message:    Name + " writes the status of the Node only that its pod runs on",
				},
				{
					Expression: `object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?annotations == oldObject.metadata.?annotations`,
					Message:    Name + " does not write labels and annotations of Nodes",
				},
			},
		}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		}},
	}
}
