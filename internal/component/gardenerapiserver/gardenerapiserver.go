// Package gardenerapiserver deploys gardener-apiserver, which serves the garden API behind a kube-apiserver.
package gardenerapiserver

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
)

// Name is the name of the Deployment and of the Service.
const Name = "gardener-apiserver"

const (
	port        = 8443
	servicePort = 443
	role        = "apiserver"
)

// Values are what the API server is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods.
	Replicas int32
	// ClusterIdentity distinguishes the garden from all others. It cannot be changed later.
	ClusterIdentity string
	// EtcdServers are the URLs of the members of the etcd that it stores objects in. EtcdSecret is the Secret with the
	// credentials for it: ca.crt, tls.crt and tls.key.
	EtcdServers []string
	EtcdSecret  string
	// EtcdCA is the Secret with the CA bundle of etcd, in bundle.crt, instead of ca.crt of EtcdSecret. It may be empty.
	EtcdCA string
	// Certificate is the Secret with the serving certificate, tls.crt and tls.key, and CA the PEM of its CA.
	Certificate string
	CA          []byte
	// Encryption says how resources are encrypted in etcd. Without resources it is about EncryptedResources, without keys nothing is encrypted.
	Encryption encryption.Values
	// Config is spec.virtualCluster.gardener.gardenerAPIServer of a Garden. Nil means the defaults.
	Config *operatorv1alpha1.GardenerAPIServerConfig
	// Files are what Config refers to.
	Files Files
	// WorkloadIdentity says who issues tokens of WorkloadIdentities. Nil means that there are none.
	WorkloadIdentity *WorkloadIdentity
	// Autoscaled renders a VerticalPodAutoscaler.
	Autoscaled bool
	// Virtual says that a virtual garden aggregates it. Then Objects renders what belongs into the cluster that it runs in, and TargetObjects what
	// belongs into the virtual garden. Nil means that both are the same cluster.
	Virtual *Virtual
	// Args are further flags.
	Args []string
}

// Files are the contents of objects that the configuration refers to.
type Files struct {
	// AuditPolicy is that of config.auditConfig. Empty means that nothing is logged.
	AuditPolicy string
	// AuditWebhookKubeconfig is that of config.auditWebhook.
	AuditWebhookKubeconfig []byte
	// AdmissionKubeconfigs are kubeconfigs by the name of the admission plugin.
	AdmissionKubeconfigs map[string][]byte
}

// WorkloadIdentity says who issues tokens of WorkloadIdentities.
type WorkloadIdentity struct {
	// Issuer is the URL of the issuer, see issuer.WorkloadIdentityURL.
	Issuer string
	// KeySecret is the Secret with the key that signs them, in id_rsa.
	KeySecret string
}

// EncryptedResources are the resources that are encrypted in etcd, as they have credentials. Source: concepts.txt, "ETCD Encryption Config".
func EncryptedResources() []string {
	var names []string
	for _, resource := range []string{"controllerdeployments", "controllerregistrations", "internalsecrets", "shootstates"} {
		names = append(names, corev1beta1.Resource(resource).String())
	}
	return names
}

// Labels are the labels of its pods.
func Labels() map[string]string {
	return gardenerprocess.Values{Name: Name, Role: role}.Workload().Labels
}

// DNSNames are the names that the serving certificate has to be for.
func DNSNames(namespace string) []string {
	return workload.DNSNames(Name, namespace)
}

// VirtualDNSNames are the names that the serving certificate has to be for if a virtual garden aggregates it: its kube-apiserver knows it by a
// Service in kube-system.
func VirtualDNSNames(namespace string) []string {
	names := DNSNames(namespace)
	for _, name := range DNSNames(metav1.NamespaceSystem) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Versions are the group versions that it serves.
func Versions() []schema.GroupVersion {
	return []schema.GroupVersion{
		gardencorev1.SchemeGroupVersion, corev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
		seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion, settingsv1alpha1.SchemeGroupVersion,
	}
}

// Objects renders the API server for the cluster that it runs in.
func Objects(v Values) ([]client.Object, error) {
	r, err := newRenderer(v)
	if err != nil {
		return nil, err
	}
	own, err := r.process.Objects()
	if err != nil {
		return nil, err
	}
	for _, object := range own {
		if deployment, ok := object.(*appsv1.Deployment); ok { // or the garbage collector would delete the Secret
			if err := references.Inject(deployment, nil); err != nil {
				return nil, err
			}
		}
	}
	objects := slices.Concat(r.objects, own, []client.Object{Service(v)})
	if v.Virtual != nil {
		return objects, nil
	}
	return append(objects, registration(v)...), nil
}

// Service renders the Service, which can be there long before the rest: a virtual garden knows its address.
func Service(v Values) *corev1.Service {
	process := v.process()
	return process.Reachable(process.Workload().Service("https", servicePort), []int32{port}, []int32{port})
}

// registration renders what the API server needs in the cluster whose kube-apiserver aggregates it: permissions, and the versions that it serves.
func registration(v Values) []client.Object {
	w := v.process().Target()
	const clusterRole, delegator = "gardener.cloud:system:apiserver", "gardener.cloud:apiserver:auth-delegator"
	objects := []client.Object{w.ClusterRoleBinding(clusterRole, clusterRole)}
	const reader = "extension-apiserver-authentication-reader"
	if v.Virtual != nil {
		objects = append(objects, w.ClusterRoleBinding(delegator, delegator), w.RoleBinding(metav1.NamespaceSystem, "gardener.cloud:apiserver:auth-reader", reader))
	} else {
		objects = append(objects,
			w.ClusterRoleBinding(clusterRole+":auth-delegator", "system:auth-delegator"), w.RoleBinding(metav1.NamespaceSystem, clusterRole+":auth-reader", reader))
	}
	for _, version := range Versions() {
		objects = append(objects, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group, Labels: w.Labels},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: version.Group, Version: version.Version, GroupPriorityMinimum: 10000, VersionPriority: 20, CABundle: v.CA,
				Service: &apiregistrationv1.ServiceReference{Namespace: w.Namespace, Name: Name, Port: new(int32(servicePort))},
			},
		})
	}
	return objects
}

// process is the process without what is configured. Its workload has the names and labels.
func (v Values) process() gardenerprocess.Values {
	process := gardenerprocess.Values{
		Name: Name, Role: role, Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem500,
		Ports:         []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Ready:         workload.HTTPProbe("/readyz", port, corev1.URISchemeHTTPS), Live: workload.HTTPProbe("/livez", port, corev1.URISchemeHTTPS),
		Resources: workload.Requests("50m", "150Mi"), Autoscaled: v.Autoscaled,
	}
	if v.Virtual != nil {
		process.Virtual = &v.Virtual.Virtual
		process.HighAvailability = process.Virtual.HighAvailability(resourcesv1alpha1.HighAvailabilityConfigTypeServer)
		process.PodLabels = map[string]string{}
		for _, label := range []string{
			etcd.PolicyLabel(instance.VirtualGarden, etcd.Main),
			// Webhooks of extensions and of gardener-admission-controller, which may also run elsewhere, as that for audit logs does.
			gardenerprocess.WebhookTargetsPolicyLabel(), constants.NetworkPolicyToPrivateNetworks, constants.NetworkPolicyToPublicNetworks,
		} {
			process.PodLabels[label] = constants.NetworkPolicyAllowed
		}
	}
	return process
}
