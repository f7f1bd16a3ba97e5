// Package vpnseedserver deploys the end of the tunnel that is beside the kube-apiserver of a shoot: it leads the kube-apiserver into the
// networks of the shoot, and pods of the shoot to the kube-apiserver.
//
// It is a Deployment of its own and not a sidecar: it is small, has as many pods as availability asks for, and a rollout of the one does
// not break the connections of the other.
package vpnseedserver

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is that of the Deployment, the Service and the TLSRoute.
	Name = "vpn-seed-server"
	// TunnelPort is where agents and proxies connect, through the gateway.
	TunnelPort int32 = 8132
	// ProxyPort is where HTTP CONNECT is served.
	ProxyPort int32 = 9443
	// HealthPort is where health and metrics are served. /tunnel says whether bytes get through to an agent.
	HealthPort int32 = 8080

	// AgentCommonName, APIServerProxyCommonName and ProxyClientCommonName are who certificates of the authority of the tunnel are for.
	AgentCommonName          = "vpn-shoot-client"
	APIServerProxyCommonName = "apiserver-proxy-client"
	ProxyClientCommonName    = "kube-apiserver-http-proxy"

	serverDir, caDir = "/srv/kubernetes/server", "/srv/kubernetes/ca"
)

// Values are what the server is deployed with.
type Values struct {
	// Namespace is that of the control plane.
	Namespace string
	// Image is the image with all our processes.
	Image string
	// Replicas is how many pods there are. Agents connect to each of them.
	Replicas int32
	// Spread says what pods must not share if they need not.
	Spread []string
	// ServerSecret has tls.crt and tls.key for ServerNames and Host.
	ServerSecret string
	// CASecret has the authorities of the tunnel in bundle.crt.
	CASecret string
	// Host is the name that agents and proxies ask for, which leads through the gateway to the server.
	Host string
	// Gateway is the Gateway, the default is that of the seed.
	Gateway client.ObjectKey
}

// URL is where HTTP CONNECT is served within the namespace.
func URL() string { return fmt.Sprintf("https://%s:%d", Name, ProxyPort) }

// PolicyLabel is on pods of the namespace that connect to the proxy.
func PolicyLabel() string { return workload.PolicyLabel(Name, ProxyPort) }

// Tunnel returns what a kube-apiserver needs to use the server, with the names of the Secrets that have its certificate and the
// authorities.
func Tunnel(clientSecret, caSecret string) *kubeapiserver.Tunnel {
	return &kubeapiserver.Tunnel{
		URL: URL(), ClientSecret: clientSecret, CASecret: caSecret, PodLabels: map[string]string{PolicyLabel(): constants.NetworkPolicyAllowed},
	}
}

// Objects renders the server, and the way to it through the gateway.
func Objects(v Values) ([]client.Object, error) {
	probe := func(path string) *corev1.Probe {
		return workload.HTTPProbe(path, int(HealthPort), corev1.URISchemeHTTP)
	}
	labels := map[string]string{constants.App: Name, constants.GardenRole: constants.GardenRoleControlPlane}
	w := workload.Workload{
		Name: Name, Namespace: v.Namespace, Labels: map[string]string{constants.App: Name}, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameShootControlPlane300,
		PodLabels: workload.Merge(labels, map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, kubeapiserver.PolicyLabel(): constants.NetworkPolicyAllowed,
		}),
		Container: corev1.Container{
			Image: v.Image,
			Args: []string{
				Name, "--certificate-directory=" + serverDir, "--ca-file=" + caDir + "/" + secrets.DataKeyCertificateBundle,
				"--tunnel-port=" + number(TunnelPort), "--proxy-port=" + number(ProxyPort), "--health-port=" + number(HealthPort),
				"--replicas=" + number(max(v.Replicas, 1)),
				"--apiserver=" + kubeapiserver.Name + ":" + number(kubeapiserver.Port),
				"--agent=" + AgentCommonName, "--apiserver-proxy=" + APIServerProxyCommonName, "--proxy-client=" + ProxyClientCommonName,
			},
			Ports: []corev1.ContainerPort{
				{Name: "tunnel", ContainerPort: TunnelPort, Protocol: corev1.ProtocolTCP},
				{Name: "proxy", ContainerPort: ProxyPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: HealthPort, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe: probe("/readyz"), StartupProbe: workload.Eager(probe("/readyz")), LivenessProbe: probe("/healthz"),
			// Until nobody sends new connections any more.
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 2}}},
			Resources: workload.Requests("10m", "30Mi"),
			VolumeMounts: []corev1.VolumeMount{
				{Name: "server", MountPath: serverDir, ReadOnly: true}, {Name: "ca", MountPath: caDir, ReadOnly: true},
			},
		},
		Volumes: []corev1.Volume{workload.SecretVolume("server", v.ServerSecret), workload.SecretVolume("ca", v.CASecret)},
	}
	deployment := w.Deployment()
	deployment.Labels = labels
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
	}
	pod := &deployment.Spec.Template.Spec
	pod.ServiceAccountName = "" // it needs nothing of the seed
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
		Namespace: v.Namespace, Hosts: []string{v.Host}, Service: Name, Port: TunnelPort, Gateway: v.Gateway,
	})...), nil
}

func service(w workload.Workload, labels map[string]string) *corev1.Service {
	service := w.Service("tunnel", TunnelPort)
	service.Labels = labels
	service.Spec.Ports = append(service.Spec.Ports,
		corev1.ServicePort{Name: "proxy", Port: ProxyPort, Protocol: corev1.ProtocolTCP},
		corev1.ServicePort{Name: "metrics", Port: HealthPort, Protocol: corev1.ProtocolTCP},
	)
	// Numbers, as the labels of those who talk to it name them.
	for i := range service.Spec.Ports {
		service.Spec.Ports[i].TargetPort = intstr.FromInt32(service.Spec.Ports[i].Port)
	}
	gateways := `[{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleIstioIngress + `"}}]`
	service.Annotations = workload.Merge(workload.Scraped(HealthPort), map[string]string{
		resourcesv1alpha1.NetworkingNamespaceSelectors:             gateways,
		resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias: "all-shoots",
	})
	return service
}

func number(n int32) string { return strconv.Itoa(int(n)) }
