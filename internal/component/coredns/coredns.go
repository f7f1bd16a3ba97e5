// Package coredns deploys the DNS server of a shoot.
//
// Its replicas are scaled by load, with a HorizontalPodAutoscaler, or, if the Shoot is configured so, with the number of nodes and their cores.
// These are calculated from the minimum of machines of worker pools, without reading nodes.
package coredns

import (
	_ "embed"
	"math"
	"net/netip"
	"regexp"
	"strings"
	"text/template"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// ManagedResourceName is the name of the ManagedResource with all objects.
	ManagedResourceName = "shoot-core-coredns"
	// Name is the name of the Deployment.
	Name = "coredns"
	// port is the port of the pods, for UDP and TCP. The Service has 53.
	port int32 = 8053

	// labelKey and labelValue select the pods, also in network policies.
	labelKey, labelValue = "k8s-app", "kube-dns"
	// CustomName is the ConfigMap with configuration of users.
	CustomName = "coredns-custom"
	// serviceName is a name that other software relies on.
	serviceName = "kube-dns"

	healthPort, readyPort, metricsPort = 8080, 8181, 9153

	minReplicas, maxReplicas = 2, 5
	// nodesPerReplica and coresPerReplica are the numbers of nodes, and of their cores, per pod.
	nodesPerReplica, coresPerReplica = 16, 256
	// busy is the CPU utilization, in percent of the request, above which replicas are added.
	busy = 70

	configVolume, customVolume = "config", "custom"
	configDir                  = "/etc/coredns"
	priority                   = "system-cluster-critical"
)

// Values are what CoreDNS is deployed with.
type Values struct {
	// Image is the image of CoreDNS.
	Image string
	// Addresses are those of the Service, one per IP family.
	Addresses []netip.Addr
	// Proportional says that the replicas depend on the number of Nodes and of their Cores.
	Proportional bool
	Nodes, Cores int64
	// CommonSuffixes are domains outside of the cluster, whose names are not searched in the cluster.
	CommonSuffixes []string
}

// PodLabels select the pods.
func PodLabels() client.MatchingLabels { return client.MatchingLabels{labelKey: labelValue} }

// For returns the values for a Shoot, without the image and the cores.
func For(shoot *corev1beta1.Shoot) (Values, error) {
	networks, err := systemcomponent.NetworksOf(shoot)
	if err != nil {
		return Values{}, err
	}
	v := Values{Addresses: networks.DNS()}
	for i := range shoot.Spec.Provider.Workers {
		v.Nodes += int64(shoot.Spec.Provider.Workers[i].Minimum)
	}
	c := shoot.Spec.SystemComponents
	if c == nil || c.CoreDNS == nil {
		return v, nil
	}
	if c.CoreDNS.Rewriting != nil {
		v.CommonSuffixes = c.CoreDNS.Rewriting.CommonSuffixes
	}
	v.Proportional = c.CoreDNS.Autoscaling != nil && c.CoreDNS.Autoscaling.Mode == corev1beta1.CoreDNSAutoscalingModeClusterProportional
	return v, nil
}

// replicas is the number of pods, or the initial number if they are scaled by load.
func (v Values) replicas() int32 {
	if !v.Proportional {
		return minReplicas
	}
	perUnit := func(n, unit int64) int64 { return (n + unit - 1) / unit }
	wanted := max(minReplicas, perUnit(v.Nodes, nodesPerReplica), perUnit(v.Cores, coresPerReplica))
	return int32(min(wanted, math.MaxInt32)) //nolint:gosec // it fits
}

//go:embed Corefile.tmpl
var corefileText string

var corefileTemplate = template.Must(template.New("Corefile").Parse(corefileText))

// corefile renders the configuration. Pods query complete names with the domains of their search path appended first. Such queries are
// rewritten to the complete name, so that pods need one query instead of up to four.
func corefile(v Values) (string, error) {
	domain := regexp.QuoteMeta(systemcomponent.Domain)
	search := `\.(?:(?:[^.]+\.)?svc\.)?` + domain + `\.$`
	rewrites := []string{`^(.+\.svc\.` + domain + `)` + search}
	for _, suffix := range v.CommonSuffixes {
		rewrites = append(rewrites, `^((?:.+\.)?`+regexp.QuoteMeta(strings.ToLower(strings.Trim(suffix, ".")))+`)`+search)
	}
	out := &strings.Builder{}
	err := corefileTemplate.Execute(out, map[string]any{"Domain": systemcomponent.Domain, "Rewrites": rewrites})
	return out.String(), err
}

// Objects renders CoreDNS.
func Objects(v Values) ([]client.Object, error) {
	text, err := corefile(v)
	if err != nil {
		return nil, err
	}
	config := immutable.ConfigMap(metav1.NamespaceSystem, Name, map[string]string{"Corefile": text})
	config.Labels = workload.Merge(systemcomponent.Labels(), config.Labels)
	w := v.workload(config.Name)
	objects := []client.Object{w.ServiceAccount()}
	objects = append(objects, w.ClusterRole("system:coredns",
		workload.Rule("", "services pods namespaces", "list watch"),
		workload.Rule("discovery.k8s.io", "endpointslices", "list watch"),
	)...)
	deployment := w.Deployment()
	deployment.Labels = workload.Merge(systemcomponent.Labels(), w.Labels, map[string]string{
		resourcesv1alpha1.HighAvailabilityConfigType: resourcesv1alpha1.HighAvailabilityConfigTypeServer,
	})
	pod := &deployment.Spec.Template.Spec
	// It forwards to the node's resolver, not to itself.
	pod.DNSPolicy = corev1.DNSDefault
	pod.TerminationGracePeriodSeconds = new(int64(30))
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == customVolume {
			pod.Volumes[i].ConfigMap.Optional = new(true)
		}
	}
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	if !v.Proportional {
		objects = append(objects, autoscaler(deployment.Labels))
	}
	return append(objects, config, custom(), v.service(w.Labels), deployment,
		&policyv1.PodDisruptionBudget{ObjectMeta: meta(Name, w.Labels), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector,
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		}},
	), nil
}

func (v Values) workload(config string) workload.Workload {
	ready := workload.HTTPProbe("/ready", readyPort, corev1.URISchemeHTTP)
	return workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{labelKey: labelValue}, Replicas: v.replicas(),
		PodLabels:     systemcomponent.PodLabels(constants.NetworkPolicyShootToAPIServer, constants.NetworkPolicyShootFromSeed),
		PriorityClass: priority,
		Container: corev1.Container{
			Image: v.Image,
			Args:  []string{"-conf", configDir + "/Corefile"},
			Ports: []corev1.ContainerPort{
				{Name: "dns", ContainerPort: port, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", ContainerPort: port, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			},
			Resources:      workload.Requests("50m", "32Mi"),
			ReadinessProbe: ready, StartupProbe: workload.Eager(ready),
			LivenessProbe: workload.HTTPProbe("/health", healthPort, corev1.URISchemeHTTP),
			VolumeMounts: []corev1.VolumeMount{
				{Name: configVolume, MountPath: configDir, ReadOnly: true}, {Name: customVolume, MountPath: configDir + "/custom", ReadOnly: true},
			},
		},
		Volumes: []corev1.Volume{workload.ConfigMapVolume(configVolume, config), workload.ConfigMapVolume(customVolume, CustomName)},
	}
}

// service has the name and the labels by which other software finds the cluster's DNS server.
func (v Values) service(selector map[string]string) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: meta(serviceName, workload.Merge(selector, map[string]string{
			"kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS",
		})),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: 53, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", Port: 53, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP},
				{Name: "metrics", Port: metricsPort, TargetPort: intstr.FromInt32(metricsPort), Protocol: corev1.ProtocolTCP},
			},
		},
	}
	for i, address := range v.Addresses {
		service.Spec.ClusterIPs = append(service.Spec.ClusterIPs, address.String())
		if i == 0 {
			service.Spec.ClusterIP = address.String()
		} else {
			service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
		}
	}
	return service
}

// custom is for configuration of users: keys that end in ".override" are added to the server block, those in ".server" are further server
// blocks. It is created once and not updated.
func custom() *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{ObjectMeta: meta(CustomName, nil), Data: map[string]string{
		"changeme.override": "# Plugins for the server block of the cluster, such as: log",
		"changeme.server":   "# Further server blocks, such as: example.com:8053 { forward . 192.0.2.1 }",
	}}
	configMap.Annotations = map[string]string{resourcesv1alpha1.Ignore: "true"}
	return configMap
}

func autoscaler(labels map[string]string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: meta(Name, labels),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: Name},
			MinReplicas:    new(int32(minReplicas)), MaxReplicas: maxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(busy))},
				},
			}},
		},
	}
}

func meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: workload.Merge(systemcomponent.Labels(), labels)}
}
