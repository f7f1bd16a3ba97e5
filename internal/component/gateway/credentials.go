package gateway

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// LabelRouteNamespace and LabelRouteName are the labels of a Secret with Credentials: the TLSRoute that they are for.
	LabelRouteNamespace, LabelRouteName = "gateway.gardener.cloud/route-namespace", "gateway.gardener.cloud/route-name"

	// KeyCertificate and KeyPrivateKey are the keys in such a Secret of what clients see, each value as PEM.
	KeyCertificate, KeyPrivateKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	// KeyClientCA has the CAs of client certificates.
	KeyClientCA = "client-ca.crt"
	// KeyServerCA has the CAs of the certificate of the kube-apiserver itself.
	KeyServerCA = "ca.crt"
	// KeyProxyCertificate and KeyProxyPrivateKey are those by which the kube-apiserver accepts the names of users.
	KeyProxyCertificate, KeyProxyPrivateKey = "proxy.crt", "proxy.key"
)

// Credentials are those with which a gateway ends the TLS connections of a kube-apiserver. Without them, it passes them through.
type Credentials struct {
	// Namespace is that of the gateway.
	Namespace string
	// Route is the TLSRoute of the kube-apiserver. Its Namespace must exist.
	Route types.NamespacedName
	// RouteNamespaceUID is the UID of that Namespace, with which the Secret is deleted.
	RouteNamespaceUID types.UID
	// Data has the values of all keys.
	Data map[string][]byte
}

// Secret renders the Secret. It is outside of the namespace of the shoot, but belongs to it: it has no name by which it could be that of another.
func (c Credentials) Secret() *corev1.Secret {
	secret := CredentialsSecret(c.Namespace, c.Route)
	secret.Labels = map[string]string{LabelRouteNamespace: c.Route.Namespace, LabelRouteName: c.Route.Name}
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: c.Route.Namespace, UID: c.RouteNamespaceUID}}
	secret.Type, secret.Data = corev1.SecretTypeTLS, c.Data
	return secret
}

// CredentialsSecret returns the Secret with namespace and name only. Namespaces have no dots in their names.
func CredentialsSecret(namespace string, route types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: route.Namespace + "." + route.Name}}
}

// RouteOf returns the route of a Secret with Credentials. The labels count only if the name is that of the same route.
func RouteOf(secret *corev1.Secret) (types.NamespacedName, bool) {
	route := types.NamespacedName{Namespace: secret.Labels[LabelRouteNamespace], Name: secret.Labels[LabelRouteName]}
	return route, len(validation.IsDNS1123Label(route.Namespace)) == 0 && secret.Name == CredentialsSecret("", route).Name
}
