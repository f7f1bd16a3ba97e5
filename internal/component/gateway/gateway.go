// Package gateway deploys the gateway to the control planes of a seed: HAProxy, which passes TLS connections through by their server name
// (SNI), and in the same pod the controller that writes its routes. Each handler of ExposureClasses has a gateway of its own, and in seeds with
// several zones so has each zone, for control planes that are in one zone.
package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// Namespace is the namespace of the gateway of a seed that is of no handler.
	Namespace = "gateway"
	// Name is the name of each Gateway and its Deployment. It is also that of the Service, if that has no other.
	Name = "gateway"
	// ClusterRole is the name of the ClusterRole of the controllers.
	ClusterRole = "gardener.cloud:system:gateway"
	// ClassName is the GatewayClass that HAProxy serves.
	ClassName = "gardener"
	// Listener is the name of the listener that TLSRoutes refer to.
	Listener = "tls"

	process        = "gardener-gateway-controller"
	proxyProcess   = "gardener-gateway-proxy"
	controllerName = "gardener.cloud/gateway-controller"

	port        = 443
	proxyPort   = 8443
	proxyHealth = 8405
	healthPort  = 8081
	metricsPort = 8080
	// terminatorHealth and terminatorMetrics are those of the process that ends TLS connections. It has them from HAProxy, on the loopback address.
	terminatorHealth, terminatorMetrics = 8445, 8446

	configDir = "/etc/gateway"
	sharedDir = "/run/gateway"
	// unpublishSeconds is how long a terminating pod still accepts connections, until no client uses it any more. drainSeconds is how long
	// existing connections may last after that.
	unpublishSeconds, drainSeconds = 2, 30
)

// Values are what the gateway is deployed with.
type Values struct {
	// ControllerImage is the image with all processes of Gardener, ProxyImage that of HAProxy.
	ControllerImage, ProxyImage string
	// Replicas is the number of pods. Connections are distributed over all of them. Several are in different zones if possible.
	Replicas int32
	// ServiceAnnotations are those of the Service, for load balancers of the infrastructure.
	ServiceAnnotations map[string]string
	// ExternalTrafficPolicy is that of the Service. Empty means the default.
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy
	// LoadBalancerClass is that of the Service. Kubernetes does not let it change while the Service exists. It may be nil.
	LoadBalancerClass *string
	// LoadBalancerIP is the address that the load balancer is to have, if the infrastructure can choose it. It may be nil.
	LoadBalancerIP *string
	// ProxyProtocol is whether load balancers may send the address of the client with the PROXY protocol.
	ProxyProtocol bool
	// TerminateTLS is whether the gateway ends the TLS connections of routes that have Credentials. It passes others through.
	TerminateTLS bool
	// PodLabels are further labels of the pods. They cannot replace the labels that select the pods.
	PodLabels map[string]string
	// Handler is the name of the handler of ExposureClasses that the gateway is for. The one for all other shoots has none.
	Handler string
	// Zone is the zone of the seed in which the pods are. Empty means all of them.
	Zone string
	// Namespace is where it is deployed, and ServiceName the name of the Service. The defaults are Namespace and Name. A gateway of a handler or of
	// a zone has a namespace of its own.
	Namespace, ServiceName string
}

// KeyOr returns the key of a Gateway: that of the seed, if the key is the zero value.
func KeyOr(key client.ObjectKey) client.ObjectKey {
	return cmp.Or(key, client.ObjectKey{Namespace: Namespace, Name: Name})
}

// ZoneNamespace returns the namespace of the gateway of a zone, from that of the gateway for all zones.
func ZoneNamespace(namespace, zone string) string { return namespace + "--zone--" + zone }

// Zones are the zones of a seed that have a gateway of their own. Those whose name cannot be part of that of a namespace have none.
func Zones(seed *corev1beta1.Seed) []string {
	zones := seed.Spec.Provider.Zones
	if len(zones) < 2 {
		return nil
	}
	if settings := seed.Spec.Settings; settings != nil && settings.LoadBalancerServices != nil {
		if zonal := settings.LoadBalancerServices.ZonalIngress; zonal != nil && !ptr.Deref(zonal.Enabled, true) {
			return nil
		}
	}
	return slices.DeleteFunc(slices.Clone(zones), func(zone string) bool {
		return len(validation.IsDNS1123Label(ZoneNamespace(Namespace, zone))) > 0
	})
}

// Objects renders the gateway of a seed, and what it has in common with further ones: the ClusterRole and the GatewayClass. The
// CustomResourceDefinitions of the Gateway API have to exist.
func Objects(v Values) []client.Object {
	v.Namespace, v.ServiceName = cmp.Or(v.Namespace, Namespace), cmp.Or(v.ServiceName, Name)
	w := workload.Workload{Name: Name, Namespace: v.Namespace, Labels: map[string]string{"app": Name}}
	return slices.Concat(clusterRole(w), []client.Object{class(w)}, objects(v, w.Labels, namespace(v, constants.GardenRoleIstioIngress, nil)))
}

// FurtherObjects renders the gateway of a handler of ExposureClasses, of a zone, or of both. The objects that it has in common with other gateways
// have to exist, see Objects.
func FurtherObjects(v Values) []client.Object {
	v.ServiceName = cmp.Or(v.ServiceName, Name)
	role, labels := constants.GardenRoleIstioIngress, map[string]string{"app": Name}
	if v.Handler != "" {
		role, labels = constants.GardenRoleExposureClassHandler, map[string]string{constants.ExposureClassHandlerName: v.Handler}
	}
	return append([]client.Object{FurtherBinding(v.Namespace)}, objects(v, labels, namespace(v, role, Marks(v)))...)
}

// Marks are the labels by which the namespace of a further gateway is known.
func Marks(v Values) map[string]string {
	marks := map[string]string{}
	if v.Handler != "" {
		marks[constants.ExposureClassHandlerName] = v.Handler
	}
	if v.Zone != "" {
		marks[corev1.LabelTopologyZone] = v.Zone
	}
	return marks
}

// namespace renders the Namespace of a gateway. By the role, pods and extensions know that connections come from a gateway.
func namespace(v Values, role string, labels map[string]string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: v.Namespace, Labels: workload.Merge(labels, map[string]string{constants.GardenRole: role}),
	}}
}

// objects renders what each gateway has of its own.
func objects(v Values, labels map[string]string, namespace client.Object) []client.Object {
	config := Configuration(sharedDir, proxyPort, proxyHealth, v.ProxyProtocol)
	w := workload.Workload{
		Name: Name, Namespace: v.Namespace, Labels: labels, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameSeedSystemCritical,
		PodLabels: workload.Merge(v.PodLabels, labels, map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			// The backends of routes.
			workload.AllShootsPolicyLabel("kube-apiserver", 443):   constants.NetworkPolicyAllowed,
			workload.AllShootsPolicyLabel("vpn-seed-server", 8132): constants.NetworkPolicyAllowed,
		}),
		PodAnnotations: map[string]string{"checksum/configuration": workload.Checksum(config)},
		Container: corev1.Container{
			Image: v.ControllerImage,
			Args: []string{
				process, "--gateway=" + v.Namespace + "/" + Name, "--service=" + v.ServiceName, "--directory=" + sharedDir,
				"--health-port=" + strconv.Itoa(healthPort), "--metrics-port=" + strconv.Itoa(metricsPort),
			},
			Env:            []corev1.EnvVar{workload.PodName()},
			Ports:          []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}},
			ReadinessProbe: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP),
			StartupProbe:   workload.Eager(workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP)),
			LivenessProbe:  workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
			Resources:      workload.Requests("10m", "40Mi"),
			VolumeMounts:   []corev1.VolumeMount{{Name: "shared", MountPath: sharedDir}},
		},
		Volumes: []corev1.Volume{
			{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			workload.ConfigMapVolume("configuration", Name),
		},
	}
	deployment := w.Deployment()
	pod := &deployment.Spec.Template.Spec
	pod.Containers[0].Name = "controller"
	pod.Containers = append(pod.Containers, proxy(v.ProxyImage))
	if v.TerminateTLS {
		pod.Containers[0].Args = append(pod.Containers[0].Args, "--terminate-tls")
		pod.Containers = append(pod.Containers, terminator(v))
	}
	pod.TerminationGracePeriodSeconds = new(int64(unpublishSeconds + drainSeconds + 5))
	pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector,
	}}
	if v.Zone != "" {
		pod.Affinity = inZone(v.Zone)
	} else if v.Replicas > 1 {
		// Not a second constraint: nodes without the label of a zone would count for neither.
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: deployment.Spec.Selector},
			}},
		}}
	}
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
	}
	all := []client.Object{
		namespace,
		w.ServiceAccount(),
		&corev1.ConfigMap{ObjectMeta: deployment.ObjectMeta, Data: map[string]string{"haproxy.cfg": config}},
	}
	all = append(all, role(w, v.TerminateTLS)...)
	all = append(all, deployment, service(w, v))
	if v.TerminateTLS && v.ServiceName != InternalService {
		all = append(all, internalService(w))
	}
	if v.Replicas > 1 {
		all = append(all, &policyv1.PodDisruptionBudget{
			ObjectMeta: deployment.ObjectMeta,
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		})
	}
	return append(all, gateway(w))
}

// inZone lets pods only run in a zone.
func inZone(zone string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
			}},
		}}},
	}}
}

// share is a command that sets EnvConnections to a quarter of the connections that HAProxy can have, each with two files, of 100000 at most.
const share = `n=$(ulimit -Hn); [ "$n" -le 100000 ] 2>/dev/null || n=100000; export ` + EnvConnections + `=$((n / 8))`

// proxy is the container of HAProxy.
func proxy(image string) corev1.Container {
	context := workload.Unprivileged()
	return corev1.Container{
		Name: "haproxy", Image: image,
		// HAProxy needs the files of the maps to exist. After a restart of this container, they still have the routes.
		Command: []string{"/bin/sh", "-c", fmt.Sprintf(
			": >>%[1]s/exact.map && : >>%[1]s/suffix.map && %[3]s && exec haproxy -W -db -f %[2]s/haproxy.cfg", sharedDir, configDir, share)},
		Ports: []corev1.ContainerPort{
			{Name: "tls", ContainerPort: proxyPort, Protocol: corev1.ProtocolTCP},
			{Name: "proxy-metrics", ContainerPort: proxyHealth, Protocol: corev1.ProtocolTCP},
		},
		ReadinessProbe: workload.HTTPProbe("/healthz", proxyHealth, corev1.URISchemeHTTP),
		LivenessProbe:  workload.HTTPProbe("/healthz", proxyHealth, corev1.URISchemeHTTP),
		StartupProbe:   workload.Eager(workload.HTTPProbe("/healthz", proxyHealth, corev1.URISchemeHTTP)),
		// USR1 closes the listeners, but not the connections.
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			"/bin/sh", "-c", fmt.Sprintf("sleep %d; kill -USR1 1; sleep %d", unpublishSeconds, drainSeconds),
		}}}},
		// The limit is above what all connections take, if each of them has its buffers: 40 KB. Idle ones have none.
		Resources: corev1.ResourceRequirements{
			Requests: workload.Requests("20m", "60Mi").Requests,
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
		SecurityContext: context,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "shared", MountPath: sharedDir}, {Name: "configuration", MountPath: configDir, ReadOnly: true},
		},
	}
}

// clusterRole renders the ClusterRole of the controllers of all gateways, and its binding for one.
func clusterRole(w workload.Workload) []client.Object {
	return w.ClusterRole(ClusterRole,
		workload.Rule(gatewayv1.GroupName, "gatewayclasses gateways tlsroutes", "get list watch"),
		workload.Rule(gatewayv1.GroupName, "gatewayclasses/status gateways/status tlsroutes/status", "patch"),
		workload.Rule("", "namespaces services", "get list watch"),
		workload.Rule("discovery.k8s.io", "endpointslices", "get list watch"),
	)
}

// FurtherBinding renders the binding of the ClusterRole for a further gateway in a namespace. It is the one object of that gateway which is not
// deleted with the namespace.
func FurtherBinding(namespace string) client.Object {
	w := workload.Workload{Name: Name, Namespace: namespace}
	return w.ClusterRoleBinding(ClusterRole+":"+namespace, ClusterRole)
}

// role renders the role of one gateway: for the leader election of its controllers, and for Credentials.
func role(w workload.Workload, terminateTLS bool) []client.Object {
	rules := []rbacv1.PolicyRule{
		workload.Rule("coordination.k8s.io", "leases", "create get update"),
		workload.Rule("", "events", "create patch"), // of the leader election
	}
	if terminateTLS {
		rules = append(rules, workload.Rule("", "secrets", "get list watch"))
	}
	return w.Role(w.Namespace, Name, rules...)
}

// terminator is the container that ends TLS connections.
func terminator(v Values) corev1.Container {
	return corev1.Container{
		Name: "proxy", Image: v.ControllerImage,
		Args: []string{
			proxyProcess, "--gateway=" + v.Namespace + "/" + Name,
			"--health-port=" + strconv.Itoa(terminatorHealth), "--metrics-port=" + strconv.Itoa(terminatorMetrics),
		},
		Env:            []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "1800MiB"}}, // below the limit
		Ports:          []corev1.ContainerPort{{Name: "tls-metrics", ContainerPort: terminatorMetrics, Protocol: corev1.ProtocolTCP}},
		ReadinessProbe: workload.HTTPProbe("/readyz", terminatorHealth, corev1.URISchemeHTTP),
		StartupProbe:   workload.Eager(workload.HTTPProbe("/readyz", terminatorHealth, corev1.URISchemeHTTP)),
		LivenessProbe:  workload.HTTPProbe("/healthz", terminatorHealth, corev1.URISchemeHTTP),
		Resources: corev1.ResourceRequirements{
			Requests: workload.Requests("20m", "60Mi").Requests,
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
		SecurityContext: workload.Unprivileged(),
	}
}

func service(w workload.Workload, v Values) *corev1.Service {
	service := w.Service("tls", port)
	service.Name = v.ServiceName
	scraped := []int32{metricsPort, proxyHealth}
	if v.TerminateTLS {
		scraped = append(scraped, terminatorMetrics)
	}
	service.Annotations = workload.Merge(v.ServiceAnnotations, workload.FromPods("all-seed-scrape-targets", scraped...),
		map[string]string{resourcesv1alpha1.NetworkingFromWorldToPorts: fmt.Sprintf(`[{"protocol":"TCP","port":%d}]`, proxyPort)})
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(proxyPort)
	service.Spec.ExternalTrafficPolicy, service.Spec.LoadBalancerClass = v.ExternalTrafficPolicy, v.LoadBalancerClass
	service.Spec.LoadBalancerIP = ptr.Deref(v.LoadBalancerIP, "") // annotations instead of it differ between infrastructures
	return service
}

// class renders the GatewayClass of all gateways.
func class(w workload.Workload) client.Object {
	return &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: ClassName, Labels: w.Labels},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: controllerName, Description: new("HAProxy that passes TLS through")},
	}
}

// gateway renders the Gateway, which allows routes of all namespaces.
func gateway(w workload.Workload) client.Object {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: Name, Labels: w.Labels},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: ClassName, Listeners: []gatewayv1.Listener{{
			Name: Listener, Port: port, Protocol: gatewayv1.TLSProtocolType,
			TLS:           &gatewayv1.ListenerTLSConfig{Mode: new(gatewayv1.TLSModePassthrough)},
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
		}}},
	}
}
