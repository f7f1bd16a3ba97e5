// Package gardenerapiserver deploys gardener-apiserver, which serves the garden API behind a kube-apiserver.
package gardenerapiserver

import (
	"strings"

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
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/immutable"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

// Name is the name of the Deployment and of the Service.
const Name = "gardener-apiserver"

const (
	port = 8443
	role = "apiserver"

	etcdDir         = "/etc/gardener/etcd"
	certificatesDir = "/etc/gardener/certificates"
	encryptionDir   = "/etc/gardener/encryption"
	encryptionFile  = "config.yaml"
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
	// Certificate is the Secret with the serving certificate, tls.crt and tls.key, and CA the PEM of its CA.
	Certificate string
	CA          []byte
	// EncryptionKeys are the keys that EncryptedResources are encrypted with in etcd: all are tried to read, the first one writes. Without
	// keys nothing is encrypted.
	EncryptionKeys []encryption.Key
	// Args are further flags.
	Args []string
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

// Versions are the group versions that it serves.
func Versions() []schema.GroupVersion {
	return []schema.GroupVersion{
		gardencorev1.SchemeGroupVersion, corev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
		seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion, settingsv1alpha1.SchemeGroupVersion,
	}
}

// Objects renders the API server for the cluster whose kube-apiserver aggregates it.
func Objects(v Values) ([]client.Object, error) {
	process := gardenerprocess.Values{
		Name: Name, Role: role, Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem500,
		Args: append([]string{
			"--secure-port=8443",
			"--cluster-identity=" + v.ClusterIdentity,
			"--etcd-servers=" + strings.Join(v.EtcdServers, ","),
			"--etcd-cafile=" + etcdDir + "/" + secrets.DataKeyCertificateCA,
			"--etcd-certfile=" + etcdDir + "/" + secrets.DataKeyCertificate,
			"--etcd-keyfile=" + etcdDir + "/" + secrets.DataKeyPrivateKey,
			"--tls-cert-file=" + certificatesDir + "/" + secrets.DataKeyCertificate,
			"--tls-private-key-file=" + certificatesDir + "/" + secrets.DataKeyPrivateKey,
		}, v.Args...),
		Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Ready: workload.HTTPProbe("/readyz", port, corev1.URISchemeHTTPS), Live: workload.HTTPProbe("/livez", port, corev1.URISchemeHTTPS),
		Resources: workload.Requests("50m", "150Mi"),
		Files: []gardenerprocess.File{
			{Volume: workload.SecretVolume("etcd", v.EtcdSecret), Path: etcdDir},
			{Volume: workload.SecretVolume("certificates", v.Certificate), Path: certificatesDir},
		},
	}
	config, err := encryption.Configuration(encryption.Values{Keys: v.EncryptionKeys, Resources: EncryptedResources()})
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	if config != nil {
		secret := immutable.Secret(v.Namespace, Name+"-encryption", map[string][]byte{encryptionFile: config})
		objects = append(objects, secret)
		process.Args = append(process.Args, "--encryption-provider-config="+encryptionDir+"/"+encryptionFile)
		process.Files = append(process.Files, gardenerprocess.File{Volume: workload.SecretVolume("encryption", secret.Name), Path: encryptionDir})
	}
	own, err := process.Objects()
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
	objects = append(objects, own...)
	w := process.Workload()
	const clusterRole = "gardener.cloud:system:apiserver"
	objects = append(objects, w.Service("https", 443),
		w.ClusterRoleBinding(clusterRole, clusterRole),
		w.ClusterRoleBinding(clusterRole+":auth-delegator", "system:auth-delegator"),
		w.RoleBinding(metav1.NamespaceSystem, clusterRole+":auth-reader", "extension-apiserver-authentication-reader"),
	)
	for _, version := range Versions() {
		objects = append(objects, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group, Labels: w.Labels},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: version.Group, Version: version.Version, GroupPriorityMinimum: 10000, VersionPriority: 20, CABundle: v.CA,
				Service: &apiregistrationv1.ServiceReference{Namespace: v.Namespace, Name: Name, Port: new(int32(443))},
			},
		})
	}
	return objects, nil
}
