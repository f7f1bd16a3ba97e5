// Package kubeapiserver deploys the kube-apiserver of a hosted control plane.
//
// It starts without waiting for etcd: it connects as soon as etcd is there, which takes a fraction of a second more than if both were
// started in order, and needs no restart.
package kubeapiserver

import (
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// Name is that of the Deployment and of the Service.
	Name = "kube-apiserver"
	// Port is where it listens, in the pods and at the Service.
	Port int32 = 443
	// UserName is the user that it is for kubelets.
	UserName = "system:kube-apiserver:kubelet"
	// AggregatorUserName is the user that it is for API servers that it hands requests on to.
	AggregatorUserName = "system:kube-aggregator"

	// namespaceAlias is the alias of all control plane namespaces, for labels of pods that connect to kube-apiservers.
	namespaceAlias = workload.AllShoots
)

// Values are what a kube-apiserver is deployed with.
type Values struct {
	// Of is the kind of cluster that it is for.
	Of instance.Kind
	// Namespace is where it runs.
	Namespace string
	// Image is that of the kube-apiserver in the version of the cluster, and Version that version, such as "1.36.3".
	Image, Version string
	// Replicas is how many pods there are: 0 while the cluster is hibernated.
	Replicas int32
	// Autoscaling makes the number of pods follow the load. Replicas is not used then. Nil means that it is fixed.
	Autoscaling *Autoscaling
	// Spread says what pods must not share if they need not: corev1.LabelHostname, corev1.LabelTopologyZone.
	Spread []string
	// TrafficDistribution is that of the Service. Nil means none.
	TrafficDistribution *string
	// Workerless says that the cluster has no nodes.
	Workerless bool

	// Config is spec.kubernetes.kubeAPIServer of the Shoot. Nil means the defaults.
	Config *corev1beta1.KubeAPIServerConfig
	// Files are what Config refers to.
	Files Files

	// ServiceNetworks are the ranges of Services, one per IP family.
	ServiceNetworks []string
	// AdvertiseAddress is the IP address of the Service default/kubernetes' endpoint, which the API server proxy of each node has. Empty
	// means that of the pod, which is as good as none from outside of the seed. It is of the family of the first of ServiceNetworks.
	AdvertiseAddress string
	// ExternalHostname is the host name that clients use, such as api.<shoot>.<project>.<domain>.
	ExternalHostname string
	// Issuer is that of service account tokens, unless Config has one. AcceptedIssuers are further ones, beside those of Config.
	Issuer          string
	AcceptedIssuers []string
	// JWKSURI is where others find the public keys of the tokens, if the issuer is not the API server itself.
	JWKSURI string

	// Secrets are what it proves itself and others by.
	Secrets Secrets
	// Encryption says how resources are encrypted at rest.
	Encryption encryption.Values
	// Tunnel leads to the nodes. Nil for a workerless cluster.
	Tunnel *Tunnel
	// NodeAgents is the authorization webhook for gardener-node-agents. Nil means none.
	NodeAgents *NodeAgents
	// Garden is what only a virtual garden has. Nil for a shoot.
	Garden *Garden
}

// Autoscaling bounds the number of pods.
type Autoscaling struct {
	MinReplicas, MaxReplicas int32
	// ScaleDownDisabled keeps as many pods as there have been.
	ScaleDownDisabled bool
}

// MaxReplicas is how many pods a kube-apiserver that is scaled has at most.
const MaxReplicas = 6

// ScaledMinimum is what a container of a kube-apiserver that is scaled requests at least.
func ScaledMinimum() corev1.ResourceList { return workload.Requests("20m", "200M").Requests }

// KeepReplicas returns Autoscaling with the minimum raised to what an existing HorizontalPodAutoscaler has, or has asked for, if it is not to be lowered.
func (a Autoscaling) KeepReplicas(existing *autoscalingv2.HorizontalPodAutoscaler) *Autoscaling {
	if a.ScaleDownDisabled {
		a.MinReplicas = min(a.MaxReplicas, max(a.MinReplicas, ptr.Deref(existing.Spec.MinReplicas, 0), existing.Status.DesiredReplicas))
	}
	return &a
}

// Files are the contents of objects that the configuration refers to.
type Files struct {
	// AuditPolicy is that of config.auditConfig. Empty means that only who did what is logged of what is not routine.
	AuditPolicy string
	// Authentication is the AuthenticationConfiguration of config.structuredAuthentication.
	Authentication string
	// Authorization is the AuthorizationConfiguration of config.structuredAuthorization.
	Authorization string
	// AuthorizationKubeconfigs are kubeconfigs by the name of the authorizer.
	AuthorizationKubeconfigs map[string][]byte
	// AdmissionKubeconfigs are kubeconfigs by the name of the admission plugin.
	AdmissionKubeconfigs map[string][]byte
}

// Garden is what only the kube-apiserver of a virtual garden has.
type Garden struct {
	// SeedsKubeconfig and ShootsKubeconfig are those of the authorizers in gardener-admission-controller, for the clients of seeds and of
	// self-hosted shoots.
	SeedsKubeconfig, ShootsKubeconfig []byte
	// EventResources are stored in the etcd for events, besides events.
	EventResources []schema.GroupResource
	// SNI are certificates for more names.
	SNI []SNI
	// AuditWebhook is where audit events are sent to. Nil means nowhere.
	AuditWebhook *AuditWebhook
	// AuthenticationWebhook authenticates tokens. Nil means none.
	AuthenticationWebhook *AuthenticationWebhook
}

// SNI is a certificate for the names that clients send.
type SNI struct {
	// Secret has tls.crt and tls.key.
	Secret string
	// Patterns are the names, such as *.example.com. Empty means those in the certificate.
	Patterns []string
}

// AuditWebhook is a server for audit events.
type AuditWebhook struct {
	// Kubeconfig says where it is.
	Kubeconfig []byte
	// BatchMaxSize is the most events that are sent at once, and Version that of their API. Both may be nil.
	BatchMaxSize *int32
	Version      *string
}

// AuthenticationWebhook is a server that authenticates tokens.
type AuthenticationWebhook struct {
	// Kubeconfig says where it is.
	Kubeconfig []byte
	// CacheTTL is how long its answers are kept, and Version the one of TokenReviews. Both may be nil.
	CacheTTL *metav1.Duration
	Version  *string
}

// Copy returns a copy to which kubeconfigs can be added.
func (f Files) Copy() Files {
	f.AuthorizationKubeconfigs, f.AdmissionKubeconfigs = maps.Clone(f.AuthorizationKubeconfigs), maps.Clone(f.AdmissionKubeconfigs)
	return f
}

// Secrets are names of Secrets in the namespace.
type Secrets struct {
	// ClientCA has the CA bundle for clients in the key bundle.crt, EtcdCA that of etcd, and FrontProxyCA that of aggregating proxies.
	// KubeletCA has those of kubelets, and is not needed for a workerless cluster.
	ClientCA, EtcdCA, FrontProxyCA, KubeletCA string
	// Server has tls.crt and tls.key, valid for ServerNames and the names that clients use.
	Server string
	// EtcdClient, KubeletClient and Aggregator have tls.crt and tls.key of clients. A workerless cluster needs none for kubelets.
	EtcdClient, KubeletClient, Aggregator string
	// ServiceAccountKey has the key that signs tokens, in id_rsa, and ServiceAccountKeys all whose signatures are good, in bundle.key.
	ServiceAccountKey, ServiceAccountKeys string
}

// Tunnel says how the kube-apiserver reaches the networks of the shoot: by an HTTP CONNECT proxy that wants a client certificate.
type Tunnel struct {
	// URL is that of the proxy, such as https://vpn-seed-server:9443.
	URL string
	// ClientSecret has tls.crt and tls.key, and CASecret the CA bundle of the proxy in bundle.crt.
	ClientSecret, CASecret string
	// PodLabels let the pods reach the proxy through network policies.
	PodLabels map[string]string
}

// NodeAgents says who authorizes requests of gardener-node-agents.
type NodeAgents struct {
	// Kubeconfig is the kubeconfig for the webhook in the resource manager, which resourcemanager.AuthorizerKubeconfig returns.
	Kubeconfig []byte
}

// ServerNames are the names by which it is reached in the seed and from pods of the shoot. Its certificate has to be valid for them.
func ServerNames(of instance.Kind, namespace string) []string {
	var names []string
	for _, service := range []struct{ name, namespace string }{{of.Name(Name), namespace}, {"kubernetes", metav1.NamespaceDefault}} {
		names = append(names, service.name, service.name+"."+service.namespace, service.name+"."+service.namespace+".svc",
			service.name+"."+service.namespace+".svc."+constants.DefaultDomain)
	}
	return names
}

// Labels select the pods.
func Labels() map[string]string {
	return map[string]string{constants.App: "kubernetes", constants.Role: "apiserver"}
}

// PolicyLabel is on pods of the namespace that talk to the kube-apiserver.
func PolicyLabel(of instance.Kind) string { return workload.PolicyLabel(of.Name(Name), Port) }

// Objects renders the kube-apiserver.
func Objects(v Values) ([]client.Object, error) {
	r, err := newRenderer(v)
	if err != nil {
		return nil, err
	}
	service := Service(v.Of, v.Namespace)
	service.Spec.TrafficDistribution = v.TrafficDistribution
	objects := append([]client.Object{service}, r.objects...)
	deployment, err := r.deployment()
	if err != nil {
		return nil, err
	}
	objects = append(objects, deployment, disruptionBudget(v))
	if v.Autoscaling != nil {
		objects = append(objects, autoscaler(v))
	}
	return objects, nil
}

// ServiceHost is the name of the Service of a shoot's kube-apiserver for pods of the seed.
func ServiceHost(namespace string) string { return Name + "." + namespace + ".svc" }

// Service renders the Service, which can be there long before the rest: its address is part of kubeconfigs and routes.
func Service(of instance.Kind, namespace string) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: of.Name(Name), Labels: exposed(labels())},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: Labels(),
			Ports: []corev1.ServicePort{{Name: Name, Port: Port, TargetPort: intstr.FromInt32(Port), Protocol: corev1.ProtocolTCP}},
		},
	}
	service.Annotations = workload.Merge(workload.Scraped(Port), map[string]string{
		// Gateways, extensions, and other clients in namespaces that match: they have one label for all control planes.
		resourcesv1alpha1.NetworkingNamespaceSelectors: `[{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleIstioIngress + `"}},` +
			`{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleExposureClassHandler + `"}},` +
			`{"matchLabels":{"` + constants.NetworkPolicyAccessTargetAPIServer + `":"` + constants.NetworkPolicyAllowed + `"}},` +
			`{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleExtension + `"}},` +
			`{"matchLabels":{"` + corev1.LabelMetadataName + `":"` + constants.GardenNamespace + `"}}]`,
		resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias: namespaceAlias,
	})
	return service
}

func labels() map[string]string {
	return workload.Merge(Labels(), map[string]string{constants.GardenRole: constants.GardenRoleControlPlane})
}

// exposed adds the label by which webhooks of older extensions know that a gateway exposes the kube-apiserver. They refuse the Deployment otherwise until the Service has
// the address of a load balancer, which it never gets.
func exposed(labels map[string]string) map[string]string {
	return workload.Merge(labels, map[string]string{"core.gardener.cloud/apiserver-exposure": "gardener-managed"})
}

func disruptionBudget(v Values) client.Object {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Of.Name(Name), Labels: labels()},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: Labels()},
			// A pod that does not serve is not missed.
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}
