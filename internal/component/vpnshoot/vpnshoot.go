// Package vpnshoot deploys vpn-shoot, the tunnel agent, into a shoot: it dials the server beside the kube-apiserver, and connects it to the
// networks of the shoot. The objects are for a ManagedResource; the agent is ready when it is connected to a server.
package vpnshoot

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is the name of the Deployment.
	Name = "vpn-shoot"

	healthPort  = 8080
	metricsName = "metrics"
	secretDir   = "/srv/tunnel"

	// evictionSeconds is how long a pod stays on an unreachable node. The default of five minutes is too long, as kubectl logs and exec need
	// the agent. A node only becomes unreachable after a while, so a short interruption has no effect.
	evictionSeconds = 20
)

// Values are what the agent is deployed with.
type Values struct {
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. Connections are distributed over them.
	Replicas int32
	// Server is the address of the seed's gateway, as HOST:PORT: the name of the kube-apiserver, which nodes can resolve.
	Server string
	// ServerName is the server name (SNI) of the tunnel.
	ServerName string
	// Certificate and Key are the client certificate of the agent and its key, CABundle is the CA bundle of the tunnel. All are PEM.
	Certificate, Key, CABundle []byte
	// Networks are those of nodes, pods and services, as CIDRs. The agent refuses connections to others.
	Networks []string
}

// Objects renders the agent for the namespace kube-system of the shoot.
func Objects(v Values) ([]client.Object, error) {
	secret := immutable.Secret(metav1.NamespaceSystem, Name, map[string][]byte{
		secrets.DataKeyCertificate: v.Certificate, secrets.DataKeyPrivateKey: v.Key, secrets.DataKeyCertificateBundle: v.CABundle,
	})
	args := []string{
		Name, "--server=" + v.Server, "--server-name=" + v.ServerName,
		"--certificate-directory=" + secretDir, "--ca-file=" + secretDir + "/" + secrets.DataKeyCertificateBundle,
	}
	for _, network := range v.Networks {
		args = append(args, "--network="+network)
	}
	probe := func(path string) *corev1.Probe { return workload.HTTPProbe(path, healthPort, corev1.URISchemeHTTP) }
	labels := map[string]string{constants.App: Name, constants.GardenRole: constants.GardenRoleSystemComponent}
	w := workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{constants.App: Name}, PodLabels: systemcomponent.PodLabels(),
		Replicas: v.Replicas, PriorityClass: "system-cluster-critical",
		Container: corev1.Container{
			Image: v.Image, Args: args,
			ReadinessProbe: probe("/readyz"), StartupProbe: workload.Eager(probe("/healthz")), LivenessProbe: probe("/healthz"),
			Ports:        []corev1.ContainerPort{{Name: metricsName, ContainerPort: healthPort, Protocol: corev1.ProtocolTCP}},
			Resources:    workload.Requests("10m", "30Mi"),
			VolumeMounts: []corev1.VolumeMount{{Name: "tunnel", MountPath: secretDir, ReadOnly: true}},
		},
		Volumes: []corev1.Volume{workload.SecretVolume("tunnel", secret.Name)},
	}
	// The flow of a shoot waits for it. A startup probe must not check the tunnel: it would restart agents that wait for their server.
	w.Container.ReadinessProbe.PeriodSeconds = 2
	deployment := w.Deployment()
	// Two agents on one node, or in one zone, are better than one. With the webhook for high availability the second would wait for another node.
	deployment.Labels = workload.Merge(labels, map[string]string{resourcesv1alpha1.HighAvailabilityConfigSkip: "true"})
	pod := &deployment.Spec.Template.Spec
	pod.AutomountServiceAccountToken = new(false)
	pod.DNSPolicy = corev1.DNSDefault // the DNS of the cluster may need the tunnel
	pod.TerminationGracePeriodSeconds = new(int64(30))
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(evictionSeconds)),
		})
	}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector.DeepCopy(),
		})
	}
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	account := w.ServiceAccount()
	account.AutomountServiceAccountToken = new(false)
	objects := []client.Object{
		account, secret, deployment,
		&networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-vpn", Annotations: map[string]string{
				constants.GardenerDescription: "Allows the tunnel's agent to connect to its server, and to all addresses that the control plane requests.",
			}},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: *deployment.Spec.Selector, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			},
		},
	}
	if v.Replicas > 1 {
		objects = append(objects, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: Name, Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector,
				UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		})
	}
	return objects, nil
}
