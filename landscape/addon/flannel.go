package addon

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

// flannel connects the pods of all nodes. Machines of a landscape share one network, so plain routes do ("host-gw").
func flannel(v Values) ([]client.Object, error) {
	image, err := v.image("flannel")
	if err != nil {
		return nil, err
	}
	network, err := json.Marshal(map[string]any{
		"Network": v.Pods.String(), "EnableNFTables": true, "Backend": map[string]any{"Type": "host-gw"},
	})
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
	const name, namespace = "flannel", "kube-system"
	config := &corev1.ConfigMap{ObjectMeta: meta(namespace, name), Data: map[string]string{
		"net-conf.json": string(network), "cni-conf.json": string(conflist),
	}}
	w := workload.Workload{
		Name: name, Namespace: namespace, PriorityClass: "system-node-critical", HostNetwork: true,
		Container: corev1.Container{
			Image: image,
			Args:  []string{"--ip-masq", "--kube-subnet-mgr", "--iface=eth0"},
			Env: []corev1.EnvVar{
				fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_NAMESPACE", "metadata.namespace"),
			},
			// The node counts as ready once it has a CNI configuration, so that comes when flannel has found its subnet.
			Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
				"/opt/bin/install-cni",
				"/opt/cni/bin/flannel=/host/opt/cni/bin/flannel",
				"--after=/run/flannel/subnet.env",
				"/etc/kube-flannel/cni-conf.json=/host/etc/cni/net.d/10-flannel.conflist",
			}}}},
			Resources: workload.Requests("10m", "32Mi"),
			SecurityContext: &corev1.SecurityContext{
				RunAsUser:    ptr.To[int64](0),
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
	objects := clusterRole(w, workload.Rule("", "pods", "get"), workload.Rule("", "nodes", "get list watch"), workload.Rule("", "nodes/status", "patch"))
	return append(objects, config, w.DaemonSet()), nil
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}
