// Package flannel renders flannel, the pod network of a cluster: every node has a subnet, and flannel connects them. Rendering is pure.
package flannel

import (
	"encoding/json"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

// Name is the name of the DaemonSet in kube-system.
const Name = "flannel"

// Backend is how packets get to another node.
type Backend string

const (
	// HostGateway uses plain routes. All nodes have to be in one network.
	HostGateway Backend = "host-gw"
	// VXLAN encapsulates packets in UDP.
	VXLAN Backend = "vxlan"
)

// Values are what flannel is deployed with.
type Values struct {
	// Image is the image of flannel with the program install-cni.
	Image string
	// Pods are the ranges of the pod network, one per IP family. Every node has a part of each: flannel exits on a node without.
	Pods []netip.Prefix
	// Backend is how packets get to another node.
	Backend Backend
	// ClusterRole is the name of the ClusterRole.
	ClusterRole string
	// APIServer is an address of the API server that works without Services. The zero value means that flannel uses the Service. Flannel
	// exits if it cannot connect.
	APIServer netip.AddrPort
}

// network returns the content of net-conf.json. IPv4 is enabled by default.
func (v Values) network() map[string]any {
	network := map[string]any{"EnableNFTables": true, "EnableIPv4": false, "Backend": map[string]any{"Type": v.Backend}}
	for _, pods := range v.Pods {
		if pods.Addr().Is4() {
			network["Network"] = pods.String()
			delete(network, "EnableIPv4")
		} else {
			network["IPv6Network"], network["EnableIPv6"] = pods.String(), true
		}
	}
	return network
}

// Objects renders flannel.
func Objects(v Values) ([]client.Object, error) {
	network, err := json.Marshal(v.network())
	if err != nil {
		return nil, err
	}
	conflist, err := json.Marshal(map[string]any{
		"name": "cbr0", "cniVersion": "0.4.0",
		"plugins": []any{
			map[string]any{"type": "flannel", "delegate": map[string]any{"hairpinMode": true, "isDefaultGateway": true}},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}, "backend": "nftables"},
		},
	})
	if err != nil {
		return nil, err
	}
	const name, namespace = Name, metav1.NamespaceSystem
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: workload.Labels(name)}, Data: map[string]string{
		"net-conf.json": string(network), "cni-conf.json": string(conflist),
	}}
	w := workload.Workload{
		Name: name, Namespace: namespace, PriorityClass: "system-node-critical", HostNetwork: true,
		Container: corev1.Container{
			Image: v.Image,
			Args:  []string{"--ip-masq", "--kube-subnet-mgr", "--iface=eth0"},
			Env: []corev1.EnvVar{
				workload.FieldEnv("POD_NAME", "metadata.name"), workload.FieldEnv("POD_NAMESPACE", "metadata.namespace"),
			},
			// The node is ready when it has a CNI configuration, so that is only installed when flannel has the subnet. A hook after the start of the container would not
			// be repeated if the container runtime restarts meanwhile, and the node would never become ready.
			StartupProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
					"/opt/bin/install-cni",
					"/opt/cni/bin/flannel=/host/opt/cni/bin/flannel",
					"--after=/run/flannel/subnet.env",
					"/etc/kube-flannel/cni-conf.json=/host/etc/cni/net.d/10-flannel.conflist",
				}}},
				TimeoutSeconds: 60, PeriodSeconds: 1, FailureThreshold: 10,
			},
			Resources: workload.Requests("10m", "32Mi"),
			SecurityContext: &corev1.SecurityContext{
				RunAsUser:    new(int64(0)),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "run", MountPath: "/run/flannel"},
				{Name: "config", MountPath: "/etc/kube-flannel", ReadOnly: true},
				{Name: "cni-plugins", MountPath: "/host/opt/cni/bin"},
				{Name: "cni-config", MountPath: "/host/etc/cni/net.d"},
			},
		},
		Volumes: []corev1.Volume{
			workload.HostPath("run", "/run/flannel", corev1.HostPathDirectoryOrCreate),
			workload.HostPath("cni-plugins", "/opt/cni/bin", corev1.HostPathDirectoryOrCreate),
			workload.HostPath("cni-config", "/etc/cni/net.d", corev1.HostPathDirectoryOrCreate),
			workload.ConfigMapVolume("config", name),
		},
	}
	if v.APIServer.IsValid() {
		w.Container.Env = append(w.Container.Env,
			corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: v.APIServer.Addr().String()},
			corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: strconv.Itoa(int(v.APIServer.Port()))})
	}
	// It reads its configuration when it starts.
	daemonSet := w.DaemonSet()
	metav1.SetMetaDataAnnotation(&daemonSet.Spec.Template.ObjectMeta, "checksum/configmap-"+name, workload.Checksum(string(network)))
	role := w.ClusterRole(v.ClusterRole, workload.Rule("", "pods", "get"), workload.Rule("", "nodes", "get list watch"), workload.Rule("", "nodes/status", "patch"))
	return append(append([]client.Object{w.ServiceAccount()}, role...), config, daemonSet), nil
}
