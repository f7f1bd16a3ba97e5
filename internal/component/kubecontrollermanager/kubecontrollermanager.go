// Package kubecontrollermanager deploys the kube-controller-manager of a shoot or of a virtual garden.
package kubecontrollermanager

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/controlplane"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is the name of the Deployment, of the Service and of the account in the shoot.
	Name = "kube-controller-manager"
	// Port is the port of metrics and health.
	Port int32 = 10257
)

// Values are what a kube-controller-manager is deployed with.
type Values struct {
	// Of is the kind of cluster that it is for.
	Of instance.Kind
	// Namespace is where it runs.
	Namespace string
	// Image is that of the kube-controller-manager in the version of the cluster.
	Image string
	// Replicas is the number of pods. One of them leads. It is 0 while the cluster is hibernated.
	Replicas int32
	// Spread are the topology keys over which pods are spread if possible: corev1.LabelHostname, corev1.LabelTopologyZone.
	Spread []string
	// Workerless says that the cluster has no nodes. There are fewer controllers then.
	Workerless bool
	// Version is that of the cluster, such as "1.36.3", and APIs those that users have enabled or disabled, by group version. A virtual garden
	// needs both: each version has other controllers, and there is none for an API that is not served.
	Version string
	APIs    map[string]bool
	// Config is spec.kubernetes.kubeControllerManager of the Shoot. Nil means the defaults.
	Config *corev1beta1.KubeControllerManagerConfig

	// ClusterName is the technical ID of the shoot.
	ClusterName string
	// PodNetworks and ServiceNetworks are the ranges of the cluster, one per IP family. A workerless cluster has no pods.
	PodNetworks, ServiceNetworks []string
	// SigningDuration is the validity of certificates that it signs, for kubelets for example. Zero means 30 days.
	SigningDuration time.Duration

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
	// CA has the CA bundle of the cluster, for pods, in bundle.crt.
	CA string
	// ClientCA has the CA that signs client certificates, and KubeletCA the one that signs those of kubelets, in ca.crt and ca.key. A workerless
	// cluster needs no KubeletCA.
	ClientCA, KubeletCA string
	// ServiceAccountKey has the key that signs tokens, in id_rsa.
	ServiceAccountKey string
}

// ServerNames are the names that its certificate has to be valid for.
func ServerNames(of instance.Kind, namespace string) []string {
	return workload.DNSNames(of.Name(Name), namespace)
}

// Labels select the pods.
func Labels() map[string]string {
	return map[string]string{constants.App: "kubernetes", constants.Role: "controller-manager"}
}

// Objects renders the kube-controller-manager and the request for its token.
func Objects(v Values) ([]client.Object, error) {
	p := controlplane.Process{
		Of: v.Of, Name: Name, Namespace: v.Namespace, Labels: Labels(), Image: v.Image, Command: "/usr/local/bin/" + Name, Replicas: v.Replicas,
		Spread: v.Spread, PriorityClass: constants.PriorityClassNameShootControlPlane300, Port: Port,
		GenericKubeconfig: v.Secrets.GenericKubeconfig, CPU: "10m", Memory: "50Mi", MinAllowed: v.MinAllowed,
	}
	dir := p.Secret
	names, err := v.controllers()
	if err != nil {
		return nil, err
	}
	server := p.SecretIn(controlplane.OwnDir, Name+"-server", "server", v.Secrets.Server)
	flags := map[string]string{
		"kubeconfig":                shootaccess.PathKubeconfig,
		"authentication-kubeconfig": shootaccess.PathKubeconfig, "authorization-kubeconfig": shootaccess.PathKubeconfig,
		"tls-cert-file": server + secrets.DataKeyCertificate, "tls-private-key-file": server + secrets.DataKeyPrivateKey,
		"secure-port": strconv.Itoa(int(Port)), "profiling": "false", "v": "2",
		"leader-elect": "true", "cluster-name": v.ClusterName, "use-service-account-credentials": "true",
		"root-ca-file":                     dir("ca", v.Secrets.CA) + secrets.DataKeyCertificateBundle,
		"service-account-private-key-file": dir("service-account-key", v.Secrets.ServiceAccountKey) + secrets.DataKeyRSAPrivateKey,
		"controllers":                      strings.Join(names, ","),
		// Many objects are created at once, and all controllers have to be quick then.
		"concurrent-resource-quota-syncs": "15", "concurrent-namespace-syncs": "50", "concurrent-serviceaccount-token-syncs": "15",
	}
	v.sign(flags, dir)
	if !v.Workerless {
		v.forNodes(flags)
	}
	if v.Of == instance.VirtualGarden {
		v.forGarden(flags)
	}
	if v.Config != nil && len(v.Config.FeatureGates) > 0 {
		flags["feature-gates"] = workload.Switches(v.Config.FeatureGates)
	}
	p.Flags = flags
	return p.Objects()
}

// controllers is the value of --controllers. The star stands for all that are enabled by default.
func (v Values) controllers() ([]string, error) {
	out := []string{"*"}
	// No other controller deletes expired bootstrap tokens.
	out = append(out, "bootstrapsigner", "tokencleaner")
	if v.Of == instance.VirtualGarden {
		without, err := v.withoutInGarden()
		for _, name := range without {
			out = append(out, "-"+name)
		}
		return out, err
	}
	if v.Workerless {
		for _, name := range []string{
			"node-lifecycle-controller", "node-ipam-controller", "cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller",
			"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
			"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller", "ephemeral-volume-controller",
			"deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller", "daemonset-controller",
			"job-controller", "cronjob-controller", "ttl-after-finished-controller", "horizontal-pod-autoscaler-controller", "disruption-controller",
			"pod-garbage-collector-controller", "ttl-controller", "taint-eviction-controller", "endpoints-controller", "endpointslice-controller",
			"endpointslice-mirroring-controller",
		} {
			out = append(out, "-"+name)
		}
	}
	return out, nil
}

// sign sets the flags to sign certificates for clients and kubelets.
func (v Values) sign(flags map[string]string, dir func(string, string) string) {
	duration := v.SigningDuration
	if duration == 0 {
		duration = 30 * 24 * time.Hour
	}
	flags["cluster-signing-duration"] = duration.String()
	signer := func(flag, directory string) {
		flags["cluster-signing-"+flag+"-cert-file"] = directory + secrets.DataKeyCertificateCA
		flags["cluster-signing-"+flag+"-key-file"] = directory + secrets.DataKeyPrivateKeyCA
	}
	clients := dir("ca-client", v.Secrets.ClientCA)
	signer("kube-apiserver-client", clients)
	if v.Workerless {
		return
	}
	signer("kubelet-client", clients)
	signer("kubelet-serving", dir("ca-kubelet", v.Secrets.KubeletCA))
}

func (v Values) forNodes(flags map[string]string) {
	flags["allocate-node-cidrs"] = "true"
	flags["cluster-cidr"] = strings.Join(v.PodNetworks, ",")
	flags["service-cluster-ip-range"] = strings.Join(v.ServiceNetworks, ",")
	flags["attach-detach-reconcile-sync-period"] = "1m0s"
	flags["horizontal-pod-autoscaler-sync-period"] = "30s"
	flags["node-monitor-grace-period"] = "40s"
	for _, what := range []string{"deployment", "replicaset", "statefulset", "endpoint", "service-endpoint"} {
		flags["concurrent-"+what+"-syncs"] = "15"
	}
	flags["concurrent-gc-syncs"] = "30"
	c := v.Config
	if c == nil {
		return
	}
	if len(v.PodNetworks) > 1 {
		flags["node-cidr-mask-size-ipv4"] = "24"
		flags["node-cidr-mask-size-ipv6"] = "64"
		if size := c.NodeCIDRMaskSize; size != nil {
			flags["node-cidr-mask-size-ipv4"] = strconv.Itoa(int(*size))
		}
		if size := c.NodeCIDRMaskSizeIPv6; size != nil {
			flags["node-cidr-mask-size-ipv6"] = strconv.Itoa(int(*size))
		}
	} else {
		// The flags for each family are for clusters with both. The Shoot's field for IPv6 is for all that have it.
		size := c.NodeCIDRMaskSize
		if len(v.PodNetworks) == 1 && strings.Contains(v.PodNetworks[0], ":") && c.NodeCIDRMaskSizeIPv6 != nil {
			size = c.NodeCIDRMaskSizeIPv6
		}
		if size != nil {
			flags["node-cidr-mask-size"] = strconv.Itoa(int(*size))
		}
	}
	duration := func(flag string, d *metav1.Duration) {
		if d != nil {
			flags[flag] = d.Duration.String()
		}
	}
	duration("node-monitor-grace-period", c.NodeMonitorGracePeriod)
	if hpa := c.HorizontalPodAutoscaler; hpa != nil {
		duration("horizontal-pod-autoscaler-cpu-initialization-period", hpa.CPUInitializationPeriod)
		duration("horizontal-pod-autoscaler-downscale-stabilization", hpa.DownscaleStabilization)
		duration("horizontal-pod-autoscaler-initial-readiness-delay", hpa.InitialReadinessDelay)
		duration("horizontal-pod-autoscaler-sync-period", hpa.SyncPeriod)
		if hpa.Tolerance != nil {
			flags["horizontal-pod-autoscaler-tolerance"] = strconv.FormatFloat(*hpa.Tolerance, 'g', -1, 64)
		}
	}
}
