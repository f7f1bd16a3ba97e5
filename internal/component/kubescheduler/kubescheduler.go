// Package kubescheduler deploys the kube-scheduler of a shoot. A workerless cluster has none.
package kubescheduler

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/controlplane"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is the name of the Deployment, of the Service and of the account in the shoot.
	Name = "kube-scheduler"
	// Port is the port of metrics and health.
	Port int32 = 10259
	// BinPackingSchedulerName is the scheduler that packs pods onto few nodes, in clusters with the profile bin-packing.
	BinPackingSchedulerName = "bin-packing-scheduler"

	configFile = "config.yaml"
)

// Values are what a kube-scheduler is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is that of the kube-scheduler in the version of the cluster.
	Image string
	// Replicas is the number of pods. One of them leads. It is 0 while the cluster is hibernated.
	Replicas int32
	// Spread are the topology keys over which pods are spread if possible: corev1.LabelHostname, corev1.LabelTopologyZone.
	Spread []string
	// Config is spec.kubernetes.kubeScheduler of the Shoot. Nil means the defaults.
	Config *corev1beta1.KubeSchedulerConfig
	// Secrets are the Secrets that it mounts.
	Secrets Secrets
	// MinAllowed are the minimum requests. It may be nil.
	MinAllowed corev1.ResourceList
}

// Secrets are names of Secrets in the namespace.
type Secrets struct {
	// GenericKubeconfig has the generic token kubeconfig.
	GenericKubeconfig string
	// Server has tls.crt and tls.key, valid for ServerNames.
	Server string
	// ClientCA has the CA bundle for client certificates of the cluster in bundle.crt.
	ClientCA string
}

// ServerNames are the names that its certificate has to be valid for.
func ServerNames(namespace string) []string { return workload.DNSNames(Name, namespace) }

// Labels select the pods.
func Labels() map[string]string {
	return map[string]string{constants.App: "kubernetes", constants.Role: "scheduler"}
}

// BinPacking says whether the cluster has the profile bin-packing. A webhook then sets BinPackingSchedulerName in pods.
func BinPacking(config *corev1beta1.KubeSchedulerConfig) bool {
	return config != nil && config.Profile != nil && *config.Profile == corev1beta1.SchedulingProfileBinPacking
}

// Objects renders the kube-scheduler and the request for its token.
func Objects(v Values) ([]client.Object, error) {
	config, err := configuration(v.Config)
	if err != nil {
		return nil, err
	}
	configMap := immutable.ConfigMap(v.Namespace, Name+"-config", map[string]string{configFile: config})
	p := controlplane.Process{
		Name: Name, Namespace: v.Namespace, Labels: Labels(), Image: v.Image, Command: "/usr/local/bin/" + Name, Replicas: v.Replicas,
		Spread: v.Spread, PriorityClass: constants.PriorityClassNameShootControlPlane300, Port: Port,
		GenericKubeconfig: v.Secrets.GenericKubeconfig, CPU: "5m", Memory: "30Mi", MinAllowed: v.MinAllowed,
	}
	mount := func(what, volume, secret string) string {
		return p.SecretIn(controlplane.OwnDir, Name+"-"+what, volume, secret)
	}
	server := mount("server", Name+"-server", v.Secrets.Server)
	p.Flags = map[string]string{
		"config":                    p.ConfigMapIn(controlplane.OwnDir, Name+"-config", Name+"-config", configMap.Name) + configFile,
		"client-ca-file":            mount("client-ca", "client-ca", v.Secrets.ClientCA) + secrets.DataKeyCertificateBundle,
		"authentication-kubeconfig": shootaccess.PathKubeconfig, "authorization-kubeconfig": shootaccess.PathKubeconfig,
		"tls-cert-file": server + secrets.DataKeyCertificate, "tls-private-key-file": server + secrets.DataKeyPrivateKey,
		"secure-port": strconv.Itoa(int(Port)), "v": "2",
	}
	if v.Config != nil && len(v.Config.FeatureGates) > 0 {
		p.Flags["feature-gates"] = workload.Switches(v.Config.FeatureGates)
	}
	objects, err := p.Objects()
	if err != nil {
		return nil, err
	}
	return append([]client.Object{configMap}, objects...), nil
}

// configuration writes a KubeSchedulerConfiguration.
func configuration(config *corev1beta1.KubeSchedulerConfig) (string, error) {
	out := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": shootaccess.PathKubeconfig},
		"leaderElection":   map[string]any{"leaderElect": true},
		"enableProfiling":  false,
	}
	if BinPacking(config) {
		out["profiles"] = []any{
			map[string]any{"schedulerName": constants.DefaultSchedulerName},
			map[string]any{
				"schedulerName": BinPackingSchedulerName,
				"pluginConfig": []any{map[string]any{"name": "NodeResourcesFit", "args": map[string]any{
					"scoringStrategy": map[string]any{"type": "MostAllocated"},
				}}},
				"plugins": map[string]any{"score": map[string]any{
					"disabled": []any{map[string]any{"name": "NodeResourcesBalancedAllocation"}},
				}},
			},
		}
	}
	text, err := yaml.Marshal(out)
	return string(text), err
}
