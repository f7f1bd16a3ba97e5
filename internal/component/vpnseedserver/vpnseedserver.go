// Package vpnseedserver deploys vpn-seed-server, the tunnel server beside the kube-apiserver of a shoot: it connects the kube-apiserver to the
// networks of the shoot, and pods of the shoot to the kube-apiserver.
//
// It is a Deployment of its own and not a sidecar: it is small, has its own number of replicas, and a rollout of one does not break
// connections of the other.
package vpnseedserver

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is the name of the Deployment, the Service and the TLSRoute.
	Name = "vpn-seed-server"
	// TunnelPort is the port for agents and proxies, which connect through the gateway.
	TunnelPort int32 = 8132
	// ProxyPort is the port of the HTTP proxy.
	ProxyPort int32 = 9443
	// HealthPort is the port of health and metrics. /tunnel says whether an agent is connected.
	HealthPort int32 = 8080

	// AgentCommonName, APIServerProxyCommonName and ProxyClientCommonName are common names of client certificates of the tunnel's CA.
	AgentCommonName          = "vpn-shoot-client"
	APIServerProxyCommonName = "apiserver-proxy-client"
	ProxyClientCommonName    = "kube-apiserver-http-proxy"

	serverDir, caDir = "/srv/kubernetes/server", "/srv/kubernetes/ca"
)

// Values are what the server is deployed with.
type Values struct {
	// Namespace is that of the control plane.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. Agents connect to each of them.
	Replicas int32
	// Spread are the topology keys over which pods are spread if possible.
	Spread []string
	// ServerSecret has tls.crt and tls.key, valid for ServerNames and Host.
	ServerSecret string
	// CASecret has the CA bundle of the tunnel in bundle.crt.
	CASecret string
	// Host is the server name (SNI) that agents and proxies use, for the route of the gateway.
	Host string
	// Nodes is the maximum number of nodes of the shoot. What its clients can open, and the memory for that, is proportional.
	Nodes int32
	// Gateway is the Gateway of the route. The default is that of the seed.
	Gateway client.ObjectKey
	// OtherGateways are further Gateways of the route.
	OtherGateways []client.ObjectKey
}

// URL is the URL of the HTTP proxy within the namespace.
func URL() string { return fmt.Sprintf("https://%s:%d", Name, ProxyPort) }

// PolicyLabel is the label of pods of the namespace that connect to the HTTP proxy.
func PolicyLabel() string { return workload.PolicyLabel(Name, ProxyPort) }

// Tunnel returns what a kube-apiserver needs to use the server, with the names of the Secrets that have its client certificate and the
// CA bundle.
func Tunnel(clientSecret, caSecret string) *kubeapiserver.Tunnel {
	return &kubeapiserver.Tunnel{
		URL: URL(), ClientSecret: clientSecret, CASecret: caSecret, PodLabels: map[string]string{PolicyLabel(): constants.NetworkPolicyAllowed},
	}
}

// Objects renders the server, and its route of the gateway.
func Objects(v Values) ([]client.Object, error) {
	probe := func(path string) *corev1.Probe {
		return workload.HTTPProbe(path, int(HealthPort), corev1.URISchemeHTTP)
	}
	labels := map[string]string{constants.App: Name, constants.GardenRole: constants.GardenRoleControlPlane}
	l := limitsFor(v.Nodes)
	w := workload.Workload{
		Name: Name, Namespace: v.Namespace, Labels: map[string]string{constants.App: Name}, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameShootControlPlane300,
		PodLabels: workload.Merge(labels, map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, kubeapiserver.PolicyLabel(instance.Shoot): constants.NetworkPolicyAllowed,
		}),
		Container: corev1.Container{
			Image: v.Image,
			Args: []string{
				Name, "--certificate-directory=" + serverDir, "--ca-file=" + caDir + "/" + secrets.DataKeyCertificateBundle,
				"--tunnel-port=" + number(TunnelPort), "--proxy-port=" + number(ProxyPort), "--health-port=" + number(HealthPort),
				"--replicas=" + number(max(v.Replicas, 1)),
				"--apiserver=" + kubeapiserver.Name + ":" + number(kubeapiserver.Port),
				"--max-apiserver-proxies=" + number(l.proxies), "--max-streams=" + number(l.streams),
				"--agent=" + AgentCommonName, "--apiserver-proxy=" + APIServerProxyCommonName, "--proxy-client=" + ProxyClientCommonName,
			},
			Ports: []corev1.ContainerPort{
				{Name: "tunnel", ContainerPort: TunnelPort, Protocol: corev1.ProtocolTCP},
				{Name: "proxy", ContainerPort: ProxyPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: HealthPort, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe: probe("/readyz"), StartupProbe: workload.Eager(probe("/readyz")), LivenessProbe: probe("/healthz"),
			// Until no client opens new connections any more.
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 2}}},
			Resources: corev1.ResourceRequirements{
				Requests: workload.Requests("10m", "30Mi").Requests,
				Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(l.memory, resource.BinarySI)},
			},
			// The garbage collector runs more often near the limit.
			Env: []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(l.memory/10*9>>20, 10) + "MiB"}},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "server", MountPath: serverDir, ReadOnly: true}, {Name: "ca", MountPath: caDir, ReadOnly: true},
			},
		},
		Volumes: []corev1.Volume{workload.SecretVolume("server", v.ServerSecret), workload.SecretVolume("ca", v.CASecret)},
	}
	deployment := w.Deployment()
	deployment.Labels = workload.Mutable(labels)
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
	}
	pod := &deployment.Spec.Template.Spec
	pod.ServiceAccountName = "" // it does not use the API of the seed
	pod.AutomountServiceAccountToken = new(false)
	pod.EnableServiceLinks = new(false)
	pod.TerminationGracePeriodSeconds = new(int64(35))
	for _, key := range v.Spread {
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector.DeepCopy(),
		})
	}
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	objects := []client.Object{
		service(w, labels), deployment,
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: Name, Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector,
				UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		},
	}
	return append(objects, exposure.Objects(exposure.Values{
		Namespace: v.Namespace, Hosts: []string{v.Host}, Service: Name, Port: TunnelPort, Gateway: v.Gateway, Others: v.OtherGateways,
	})...), nil
}

// limits are the maximum numbers of what clients can open, and the memory in bytes. Clients can be run by the owner of the shoot.
type limits struct {
	proxies, streams int32
	memory           int64
}

// limitsFor returns the limits for a number of nodes. It is rounded up to a power of two, as each change replaces the pods.
func limitsFor(nodes int32) limits {
	const (
		fewest, most = 32, 8192 // the owner of a shoot sets the maximum of a worker pool
		// Two connections of each node, as a new one may exist before the old one has ended. A pod that uses the API has one stream.
		proxiesPerNode, streamsPerNode = 2, 32
		// For connections that do not grow with the nodes: kubectl exec and logs, webhooks.
		streams, mostStreams = 1024, 16384
		// Twice what the buffers and goroutines of a connection and of a stream take.
		memory, memoryPerProxy, memoryPerStream = 256 << 20, 128 << 10, 128 << 10
	)
	size := int32(fewest)
	for size < min(nodes, most) {
		size *= 2
	}
	l := limits{proxies: proxiesPerNode * size, streams: min(streams+streamsPerNode*size, mostStreams)}
	l.memory = memory + memoryPerProxy*int64(l.proxies) + memoryPerStream*int64(l.streams)
	return l
}

func service(w workload.Workload, labels map[string]string) *corev1.Service {
	service := w.Service("tunnel", TunnelPort)
	service.Labels = labels
	service.Spec.Ports = append(service.Spec.Ports,
		corev1.ServicePort{Name: "proxy", Port: ProxyPort, Protocol: corev1.ProtocolTCP},
		corev1.ServicePort{Name: "metrics", Port: HealthPort, Protocol: corev1.ProtocolTCP},
	)
	// Numbers, as the labels for network policies contain them.
	for i := range service.Spec.Ports {
		service.Spec.Ports[i].TargetPort = intstr.FromInt32(service.Spec.Ports[i].Port)
	}
	gateways := `[{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleIstioIngress + `"}},` +
		`{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleExposureClassHandler + `"}}]`
	service.Annotations = workload.Merge(workload.Scraped(HealthPort), map[string]string{
		resourcesv1alpha1.NetworkingNamespaceSelectors:             gateways,
		resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias: workload.AllShoots,
	})
	return service
}

func number(n int32) string { return strconv.Itoa(int(n)) }
