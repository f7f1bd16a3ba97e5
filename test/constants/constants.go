// Package constants has the values by which unmodified extensions of the original find, change or mount what a control plane has, as rows of a table,
// and compares the objects of a control plane with them. Source: nodes-and-autoscaling.md, section 5, of the compatibility facts.
package constants

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

// constant is a value by which unmodified extensions find, change or mount what a control plane has.
type constant struct {
	// object is the kind and name, a regular expression.
	object string
	// path leads to the value, separated by spaces: fields, positions in lists, [field=value] for the element of a list with that field, [prefix]
	// for the element of a list of texts that begins with it, and # for how many there are.
	path string
	want string
	// absent is why there is no such value here. It must be so: a value that appears needs no reason any more.
	absent string
}

// Labels and annotations of objects are in TestLabelsThatToolsLookFor.
var rows = slices.Concat(
	// Webhooks change flags in the command, by their prefix, and those of the kube-apiserver in the arguments.
	process("kube-apiserver", "apiserver", "gardener-system-500"),
	process("kube-controller-manager", "controller-manager", "gardener-system-300"),
	process("kube-scheduler", "scheduler", "gardener-system-300"),
	process("machine-controller-manager", "machine-controller-manager", "gardener-system-300"),
	process("cluster-autoscaler", "cluster-autoscaler", "gardener-system-300"),
	[]constant{
		{object: "Deployment/kube-apiserver", path: container("kube-apiserver", "command #"), want: "1"},
		{object: "Deployment/kube-apiserver", path: container("kube-apiserver", "args [--etcd-servers=]"), want: "--etcd-servers=https://etcd-main-client:2379"},
		{object: "Deployment/kube-controller-manager", path: container("kube-controller-manager", "args"), want: ""},
		{
			object: "Deployment/kube-controller-manager", path: container("kube-controller-manager", "command [--cluster-name=]"),
			want: "--cluster-name=shoot--dev--crazy-botany",
		},
		{object: "Deployment/kube-scheduler", path: container("kube-scheduler", "args"), want: ""},
		{object: "Deployment/kube-scheduler", path: container("kube-scheduler", "command [--config=]"), want: "--config=/var/lib/kube-scheduler-config/config.yaml"},
		{object: "Deployment/machine-controller-manager", path: container("machine-controller-manager", "args"), want: ""},
		{
			object: "Deployment/machine-controller-manager", path: container("machine-controller-manager", "command [./machine-controller-manager]"),
			want: "./machine-controller-manager",
		},
		{
			object: "Deployment/machine-controller-manager", path: container("machine-controller-manager", "command [--target-kubeconfig=]"),
			want: "--target-kubeconfig=/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig",
		},
		{
			object: "Deployment/machine-controller-manager", path: container("machine-controller-manager", "command [--control-kubeconfig=]"),
			want: "--control-kubeconfig=inClusterConfig",
		},
		{object: "Deployment/machine-controller-manager", path: container("machine-controller-manager", "command [--port=]"), want: "--port=10258"},
		{object: "Deployment/machine-controller-manager", path: "spec template spec terminationGracePeriodSeconds", want: "5"},
		{object: "Service/machine-controller-manager", path: "spec clusterIP", want: "None"},
		{object: "Service/machine-controller-manager", path: "spec ports [name=metrics] port", want: "10258"},
		{object: "Service/machine-controller-manager", path: "spec ports [name=providermetrics] port", want: "10259"},
		{object: "ServiceAccount/machine-controller-manager", path: "metadata name", want: "machine-controller-manager"},
		{object: "Role/machine-controller-manager", path: "metadata name", want: "machine-controller-manager"},
		{object: "RoleBinding/machine-controller-manager", path: "subjects [name=machine-controller-manager] kind", want: "ServiceAccount"},
		{object: "PodDisruptionBudget/machine-controller-manager", path: "spec maxUnavailable", want: "1"},
		{object: "ManagedResource/shoot-core-machine-controller-manager", path: "metadata name", want: "shoot-core-machine-controller-manager"},
		{
			object: "Deployment/machine-controller-manager", path: container("machine-controller-manager", "command [--namespace=]"),
			want: "--namespace=shoot--dev--crazy-botany",
		},
		{object: "Deployment/vpn-seed-server", path: container("vpn-seed-server", "name"), want: "vpn-seed-server"},
		{object: "Deployment/vpn-seed-server", path: container("envoy-proxy", "name"), absent: "the tunnel server is its own HTTP proxy"},
		{object: "Deployment/vpn-seed-server", path: "spec template spec priorityClassName", want: "gardener-system-300"},
		{object: "Deployment/cluster-autoscaler", path: container("cluster-autoscaler", "args"), want: ""},
		{object: "Deployment/cluster-autoscaler", path: container("cluster-autoscaler", "command [--cloud-provider=]"), want: "--cloud-provider=mcm"},
		{object: "Deployment/cluster-autoscaler", path: container("cluster-autoscaler", "env [name=CONTROL_NAMESPACE] value"), want: "shoot--dev--crazy-botany"},
		{object: "Deployment/cluster-autoscaler", path: container("cluster-autoscaler", "env [name=TARGET_KUBECONFIG] value"), want: "*"},
	},

	volume("kube-apiserver", "ca-client", "/srv/kubernetes/ca-client"),
	volume("kube-apiserver", "ca-front-proxy", "/srv/kubernetes/ca-front-proxy"),
	volume("kube-apiserver", "ca-kubelet", "/srv/kubernetes/ca-kubelet"),
	volume("kube-apiserver", "ca-vpn", "/srv/kubernetes/ca-vpn"),
	volume("kube-apiserver", "ca-etcd", "/srv/kubernetes/ca-etcd"),
	volume("kube-apiserver", "etcd-client", "/srv/kubernetes/etcd-client"),
	volume("kube-apiserver", "server", "/srv/kubernetes/server"),
	volume("kube-apiserver", "service-account-key", "/srv/kubernetes/service-account-key"),
	volume("kube-apiserver", "service-account-key-bundle", "/srv/kubernetes/service-account-key-bundle"),
	volume("kube-apiserver", "kube-aggregator", "/srv/kubernetes/kube-aggregator"),
	volume("kube-apiserver", "kubelet-client", "/srv/kubernetes/kubelet-client"),
	volume("kube-apiserver", "http-proxy", "/srv/kubernetes/http-proxy"),
	volume("kube-apiserver", "egress-selection-config", "*"),
	volume("kube-apiserver", "authorization-config", "*"),
	volume("kube-apiserver", "authorization-kubeconfigs", "*"),
	volume("kube-apiserver", "authentication-config", "*"),
	volume("kube-apiserver", "audit-policy-config", "*"),
	noVolume("kube-apiserver", "audit-policy", "extensions for audit logs add a volume of this name with their own policy"),
	noVolume("kube-apiserver", "ca", "nothing in the pods reads the CA of the cluster"),
	noVolume("kube-apiserver", "static-token", "the probes of the kube-apiserver are anonymous, so that there is no static token"),
	noVolume("kube-apiserver", "tls-sni-0", "shoots have one server certificate; those of gardens are in internal/component/kubeapiserver"),
	volume("kube-controller-manager", "ca", "/srv/kubernetes/ca"),
	volume("kube-controller-manager", "ca-client", "/srv/kubernetes/ca-client"),
	volume("kube-controller-manager", "ca-kubelet", "/srv/kubernetes/ca-kubelet"),
	volume("kube-controller-manager", "service-account-key", "/srv/kubernetes/service-account-key"),
	volume("kube-controller-manager", "server", "/var/lib/kube-controller-manager-server"),
	volume("kube-controller-manager", "kubeconfig", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"),
	volume("kube-scheduler", "client-ca", "/var/lib/kube-scheduler-client-ca"),
	volume("kube-scheduler", "kube-scheduler-server", "/var/lib/kube-scheduler-server"),
	volume("kube-scheduler", "kube-scheduler-config", "/var/lib/kube-scheduler-config"),
	volume("kube-scheduler", "kubeconfig", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"),
	volume("machine-controller-manager", "kubeconfig", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"),
	volume("cluster-autoscaler", "kubeconfig", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"),

	may("kube-apiserver",
		"networking.gardener.cloud/to-dns", "networking.gardener.cloud/to-public-networks", "networking.gardener.cloud/to-private-networks",
		"networking.resources.gardener.cloud/to-etcd-main-client-tcp-2379", "networking.resources.gardener.cloud/to-etcd-events-client-tcp-2379",
		"networking.resources.gardener.cloud/to-all-webhook-targets", "networking.resources.gardener.cloud/to-extensions-all-webhook-targets"),
	may("kube-controller-manager", "networking.gardener.cloud/to-dns", "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443"),
	may("kube-scheduler", "networking.gardener.cloud/to-dns", "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443"),
	may("machine-controller-manager",
		"networking.gardener.cloud/to-dns", "networking.gardener.cloud/to-runtime-apiserver", "networking.gardener.cloud/to-public-networks",
		"networking.gardener.cloud/to-private-networks", "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443"),
	may("cluster-autoscaler",
		"networking.gardener.cloud/to-dns", "networking.gardener.cloud/to-runtime-apiserver", "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443"),
	may("vpn-seed-server", "networking.gardener.cloud/to-dns", "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443"),
	[]constant{
		{
			object: "Deployment/vpn-seed-server", path: "spec template metadata labels networking.gardener.cloud/to-private-networks",
			absent: "agents connect to the tunnel server, which connects to nothing but the kube-apiserver",
		},
		{
			object: "Deployment/kube-apiserver", path: "spec template metadata labels networking.gardener.cloud/to-runtime-apiserver",
			absent: "only a VPN of several servers in the pods of the kube-apiserver needs it, and the tunnel is no VPN",
		},
		{
			object: "Deployment/kube-apiserver", path: "spec template metadata labels networking.resources.gardener.cloud/to-vpn-seed-server-0-tcp-1194",
			absent: "the tunnel server is one Deployment, also with several pods",
		},
		{object: "Deployment/machine-controller-manager", path: "metadata labels high-availability-config.resources.gardener.cloud/type", want: "controller"},
		{object: "Deployment/cluster-autoscaler", path: "metadata labels high-availability-config.resources.gardener.cloud/type", want: "controller"},
	},

	// Webhooks add a container to machine-controller-manager, and its policy to the VerticalPodAutoscaler. What they add must not be scaled by accident.
	autoscaled("kube-apiserver"), autoscaled("kube-controller-manager"), autoscaled("kube-scheduler"), autoscaled("machine-controller-manager"),
	autoscaled("cluster-autoscaler"),
	[]constant{{
		object: "VerticalPodAutoscaler/machine-controller-manager-vpa", path: "metadata labels provider.extensions.gardener.cloud/mutated-by-controlplane-webhook", want: "true",
	}},

	[]constant{
		{object: "OperatingSystemConfig/.+-init", path: "spec purpose", want: "provision"},
		{object: "OperatingSystemConfig/.+-original", path: "spec purpose", want: "reconcile"},
		{object: "OperatingSystemConfig/.+-init", path: "spec type", want: "local"},
		{object: "OperatingSystemConfig/.+-init", path: "spec units [name=gardener-node-init.service] name", want: "gardener-node-init.service"},
		{object: "OperatingSystemConfig/.+-init", path: "spec criConfig name", want: "containerd"},
		{object: "OperatingSystemConfig/.+-original", path: "spec criConfig name", want: "containerd"},
		{object: "OperatingSystemConfig/.+-original", path: "spec criConfig containerd sandboxImage", want: "*"},
		{object: "OperatingSystemConfig/.+-original", path: "spec criConfig cgroupDriver", want: "systemd"},
	},
	unit("kubelet.service", ""), unit("containerd.service", ""), unit("updatecacerts.service", ""), unit("gardener-node-agent.service", ""),
	unit("sshd-ensurer.service", ""), unit("gardener-user.service", ""),
	unit("var-lib-kubelet.mount", "gardener-node-agent mounts the volume before it starts the kubelet"),
	unit("valitail.service", "there is no logging"), unit("opentelemetry-collector.service", "there is no logging"),
	unit("containerd-logrotate.service", "kubelets rotate the logs of containers"), unit("containerd-logrotate.timer", "kubelets rotate the logs of containers"),
	file("/var/lib/kubelet/config/kubelet", ""), file("/var/lib/kubelet/ca.crt", ""), file("/opt/bin/kubelet", ""),
	file("/var/lib/kubelet/kubeconfig-bootstrap", "gardener-node-agent writes it, with the bootstrap token of the machine"),
	file("/etc/sysctl.d/99-k8s-general.conf", ""),
	file("/var/lib/ca-certificates-local/ROOTcerts.crt", ""), file("/etc/pki/trust/anchors/ROOTcerts.pem", ""),
	file("/var/lib/ssl/update-local-ca-certificates.sh", ""),
	file("/var/lib/gardener-node-agent/config.yaml", ""), file("/var/lib/gardener-node-agent/cluster-ca.crt", ""),

	[]constant{
		{object: "Secret/gardener", path: "data kubeconfig", want: "*"},
		{object: "Secret/gardener-internal", path: "data kubeconfig", want: "*"},
		{
			object: "ManagedResource/shoot-core-gardeneraccess", path: "metadata name",
			absent: "the gardenlet writes the binding itself, as gardener-resource-manager can apply nothing before there are permissions",
		},
		{object: "Cluster/shoot--dev--crazy-botany", path: "metadata annotations generic-token-kubeconfig.secret.gardener.cloud/name", want: "*"},
		{object: "Secret/shoot-access-kube-scheduler", path: "metadata labels resources.gardener.cloud/class", want: "shoot"},
		{object: "Secret/shoot-access-cluster-autoscaler", path: "metadata labels resources.gardener.cloud/class", want: "shoot"},
		{object: "ManagedResource/shoot-core-cluster-autoscaler", path: "metadata name", want: "shoot-core-cluster-autoscaler"},
	},
)

func process(name, role, priority string) []constant {
	object := "Deployment/" + name
	return []constant{
		{object: object, path: container(name, "name"), want: name},
		{object: object, path: "metadata labels provider.extensions.gardener.cloud/mutated-by-controlplane-webhook", want: "true"},
		{object: object, path: "metadata labels app", want: "kubernetes"},
		{object: object, path: "metadata labels role", want: role},
		{object: object, path: "metadata labels gardener.cloud/role", want: "controlplane"},
		{object: object, path: "spec template metadata labels app", want: "kubernetes"},
		{object: object, path: "spec template metadata labels role", want: role},
		{object: object, path: "spec template metadata labels gardener.cloud/role", want: "controlplane"},
		{object: object, path: "spec template spec priorityClassName", want: priority},
		{
			object: object, path: "spec template metadata labels maintenance.gardener.cloud/restart",
			absent: "a restart rolls these Deployments out, so that one pod is always there: the label is for pods that the gardenlet deletes",
		},
	}
}

func container(name, path string) string {
	return "spec template spec containers [name=" + name + "] " + path
}

func volume(deployment, name, at string) []constant {
	return []constant{
		{object: "Deployment/" + deployment, path: "spec template spec volumes [name=" + name + "] name", want: name},
		{object: "Deployment/" + deployment, path: container(deployment, "volumeMounts [name="+name+"] mountPath"), want: at},
	}
}

func noVolume(deployment, name, why string) []constant {
	return []constant{{object: "Deployment/" + deployment, path: "spec template spec volumes [name=" + name + "] name", absent: why}}
}

func may(deployment string, labels ...string) []constant {
	var out []constant
	for _, label := range labels {
		out = append(out, constant{object: "Deployment/" + deployment, path: "spec template metadata labels " + label, want: "allowed"})
	}
	return out
}

func autoscaled(deployment string) []constant {
	object := "VerticalPodAutoscaler/" + deployment + "-vpa"
	return []constant{
		{object: object, path: "spec targetRef name", want: deployment},
		{object: object, path: "spec resourcePolicy containerPolicies [containerName=" + deployment + "] controlledValues", want: "RequestsOnly"},
		{object: object, path: "spec resourcePolicy containerPolicies [containerName=*] mode", want: "Off"},
	}
}

func unit(name, absent string) []constant {
	c := constant{object: "OperatingSystemConfig/.+-original", path: "spec units [name=" + name + "] name", want: name, absent: absent}
	return []constant{c}
}

func file(path, absent string) []constant {
	return []constant{{object: "OperatingSystemConfig/.+-original", path: "spec files [path=" + path + "] path", want: path, absent: absent}}
}

// Objects are the contents of objects by kind and name, such as Deployment/kube-scheduler.
type Objects map[string]map[string]any

// Read returns the objects of a seed with one control plane. The shoot is shoot--dev--crazy-botany, has one pool with an SSH key, CA bundle and 1 to 3
// nodes, a maintenance time window, and the seed has Vertical Pod Autoscalers.
func Read(t *testing.T, seed client.Client) Objects {
	t.Helper()
	objects := Objects{}
	autoscalers := &unstructured.UnstructuredList{}
	autoscalers.SetGroupVersionKind(workload.AutoscalerKind)
	for kind, list := range map[string]client.ObjectList{
		"Deployment": &appsv1.DeploymentList{}, "Secret": &corev1.SecretList{}, "OperatingSystemConfig": &extensionsv1alpha1.OperatingSystemConfigList{},
		"Service": &corev1.ServiceList{}, "ServiceAccount": &corev1.ServiceAccountList{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{},
		"Role": &rbacv1.RoleList{}, "RoleBinding": &rbacv1.RoleBindingList{},
		"ManagedResource": &resourcesv1alpha1.ManagedResourceList{}, "Cluster": &extensionsv1alpha1.ClusterList{}, "VerticalPodAutoscaler": autoscalers,
	} {
		if err := seed.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(object runtime.Object) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err == nil {
				objects[kind+"/"+object.(client.Object).GetName()] = content //nolint:forcetypeassert // items of lists are objects
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return objects
}

// At returns the value that a path leads to, as text. Paths are those of rows.
func (o Objects) At(object, path string) string {
	return at(o[object], strings.Fields(path))
}

// Compare compares objects with each row of the table, as a test of its own, and checks that flags can be replaced by their prefix.
func Compare(t *testing.T, objects Objects) {
	t.Helper()
	found := 0
	for _, c := range rows {
		t.Run(c.object+" "+c.path, func(t *testing.T) { found += c.compare(t, objects) })
	}
	t.Logf("%d rows of constants, compared with %d values", len(rows), found)
	for deployment, list := range map[string]string{
		"kube-apiserver": "args", "kube-controller-manager": "command", "kube-scheduler": "command", "machine-controller-manager": "command",
		"cluster-autoscaler": "command",
	} {
		checkFlags(t, objects, deployment, list)
	}
}

// compare returns the number of objects that the row is about.
func (c constant) compare(t *testing.T, objects Objects) int {
	t.Helper()
	name, found := regexp.MustCompile("^"+c.object+"$"), 0
	for key := range objects {
		if !name.MatchString(key) {
			continue
		}
		found++
		got := objects.At(key, c.path)
		switch {
		case c.absent != "" && got != "":
			t.Errorf("it is there, although %s: %q", c.absent, got)
		case c.absent == "" && got != c.want && (c.want != "*" || got == ""):
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if found == 0 && c.absent == "" {
		t.Error("there is no such object")
	}
	return found
}

// checkFlags checks the flags in a list of a container. One that is in the list twice cannot be replaced, and one that is not --name=value is not found.
func checkFlags(t *testing.T, objects Objects, deployment, list string) {
	t.Helper()
	flag := regexp.MustCompile(`^(--[a-z0-9-]+)=`)
	var content any = objects["Deployment/"+deployment]
	for _, segment := range strings.Fields(container(deployment, list)) {
		content = step(content, segment)
	}
	entries, _ := content.([]any)
	seen := map[string]bool{}
	for i, entry := range entries {
		match := flag.FindStringSubmatch(fmt.Sprint(entry))
		if match == nil {
			if list == "command" && i == 0 {
				continue // the binary
			}
			t.Errorf("%s: %q is not --name=value", deployment, entry)
			continue
		}
		if seen[match[1]] && match[1] != "--service-account-issuer" && match[1] != "--ignore-taint" && match[1] != "--nodes" {
			t.Errorf("%s: %s is there twice", deployment, match[1])
		}
		seen[match[1]] = true
	}
	if len(seen) < 4 {
		t.Errorf("%s: %d flags in %s", deployment, len(seen), list)
	}
}

// at returns the value that a path of a constant leads to, as text.
func at(object any, path []string) string {
	for _, segment := range path {
		object = step(object, segment)
	}
	if object == nil {
		return ""
	}
	return fmt.Sprint(object)
}

func step(object any, segment string) any {
	switch v := object.(type) {
	case map[string]any:
		return v[segment]
	case []any:
		if segment == "#" {
			return len(v)
		}
		if i, err := strconv.Atoi(segment); err == nil && i < len(v) {
			return v[i]
		}
		selector := strings.TrimSuffix(strings.TrimPrefix(segment, "["), "]")
		for _, element := range v {
			field, value, _ := strings.Cut(selector, "=")
			if text, ok := element.(string); ok && strings.HasPrefix(text, selector) {
				return text
			} else if m, ok := element.(map[string]any); ok && fmt.Sprint(m[field]) == value {
				return m
			}
		}
	}
	return nil
}
