package addon

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

const corefile = `.:8053 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`

// LocalZone is the domain of all names that provider-local answers for.
const LocalZone = "local.gardener.cloud"

// zone forwards queries for names of clusters to the servers of their zone. Answers are not cached, so a new name resolves at once.
func zone(domain string, servers ...netip.AddrPort) string {
	return domain + ":8053 {\n    errors\n" + Forward(servers...) + "}\n"
}

// Forward is the part of a CoreDNS configuration that asks servers, each for what those before it do not know.
func Forward(servers ...netip.AddrPort) string {
	forward := ""
	for i, server := range servers {
		forward += fmt.Sprintf("    forward . %s {\n        max_concurrent 1000\n", server)
		if i < len(servers)-1 {
			forward += "        next NXDOMAIN\n"
		}
		forward += "    }\n"
	}
	return forward
}

// registryZone is the one name of the zone that provider-local does not serve: the landscape's resolver, which machines use, does.
const registryZone = "registry." + LocalZone + `:8053 {
    errors
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
}
`

// coreDNS serves the names of the cluster's Services, and forwards everything else to the node's resolver.
func coreDNS(v Values) ([]client.Object, error) {
	image, err := v.image("coredns")
	if err != nil {
		return nil, err
	}
	const name, namespace = "coredns", "kube-system"
	content := corefile
	if len(v.LocalDNS) > 0 {
		content += zone(LocalZone, v.LocalDNS...) + registryZone
	}
	if v.GardenDomain != "" {
		content += zone(v.GardenDomain, v.GardenDNS)
	}
	config := &corev1.ConfigMap{ObjectMeta: meta(namespace, name), Data: map[string]string{"Corefile": content}}
	// Other software finds the cluster's DNS by this name and the k8s-app label.
	service := &corev1.Service{ObjectMeta: meta(namespace, "kube-dns"), Spec: corev1.ServiceSpec{
		ClusterIP: v.DNS.String(),
		Selector:  labels(name),
		Ports: []corev1.ServicePort{
			{Name: "dns", Port: 53, TargetPort: intstr.FromInt(8053), Protocol: corev1.ProtocolUDP},
			{Name: "dns-tcp", Port: 53, TargetPort: intstr.FromInt(8053), Protocol: corev1.ProtocolTCP},
		},
	}}
	service.Labels["k8s-app"] = "kube-dns"
	service.Labels["kubernetes.io/cluster-service"] = "true"
	service.Labels["kubernetes.io/name"] = "CoreDNS"
	w := workload.Workload{
		Name: name, Namespace: namespace, Replicas: v.DNSReplicas, PriorityClass: "system-cluster-critical",
		Container: corev1.Container{
			Image: image,
			Args:  []string{"-conf", "/etc/coredns/Corefile"},
			Ports: []corev1.ContainerPort{
				{Name: "dns", ContainerPort: 8053, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", ContainerPort: 8053, Protocol: corev1.ProtocolTCP},
			},
			Resources:      workload.Requests("10m", "32Mi"),
			ReadinessProbe: workload.HTTPProbe("/ready", 8181, corev1.URISchemeHTTP),
			StartupProbe:   workload.Eager(workload.HTTPProbe("/ready", 8181, corev1.URISchemeHTTP)),
			LivenessProbe:  workload.HTTPProbe("/health", 8080, corev1.URISchemeHTTP),
			VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/coredns", ReadOnly: true}},
		},
		Volumes: []corev1.Volume{workload.ConfigMapVolume("config", name)},
	}
	deployment := w.Deployment()
	// It must use the node's resolver, not itself.
	deployment.Spec.Template.Spec.DNSPolicy = corev1.DNSDefault
	deployment.Spec.Template.Labels["k8s-app"] = "kube-dns"
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(10))
	if v.DNSReplicas > 1 {
		deployment.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			// At first there is only one machine, and both would stay on it.
			TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, MinDomains: new(int32(2)), WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: deployment.Spec.Selector,
		}}
	}
	objects := clusterRole(w,
		workload.Rule("", "services namespaces", "list watch"),
		workload.Rule("discovery.k8s.io", "endpointslices", "list watch"),
	)
	return append(objects, config, service, deployment), nil
}
