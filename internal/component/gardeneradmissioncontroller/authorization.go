package gardeneradmissioncontroller

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Names of the authorizers of a kube-apiserver.
const (
	authorizerRBAC = "rbac"
	// AuthorizerSeeds and AuthorizerShoots are for the clients of seeds and of self-hosted shoots.
	AuthorizerSeeds  = "seed-authorizer"
	AuthorizerShoots = "shoot-authorizer"
)

// Authorization is what the kube-apiserver of a garden authorizes requests with.
type Authorization struct {
	// SeedsKubeconfig and ShootsKubeconfig are the paths of the kubeconfigs for the authorizers. Without one, there is no such authorizer. A
	// kube-apiserver reads them only when the configuration changes, so that a new kubeconfig needs a new path.
	SeedsKubeconfig, ShootsKubeconfig string
}

// Configuration returns the AuthorizationConfiguration for the kube-apiserver. Requests of users never leave it: only those that roles do not
// allow, and that are of gardenlets or of extensions, go to gardener-admission-controller.
func (a Authorization) Configuration() ([]byte, error) {
	config := apiserverv1.AuthorizationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthorizationConfiguration"},
	}
	config.Authorizers = append(config.Authorizers, apiserverv1.AuthorizerConfiguration{Type: "RBAC", Name: authorizerRBAC})
	config.Authorizers = append(config.Authorizers, a.Webhooks()...)
	return yaml.Marshal(config)
}

// Webhooks returns the authorizers that gardener-admission-controller serves.
func (a Authorization) Webhooks() []apiserverv1.AuthorizerConfiguration {
	var authorizers []apiserverv1.AuthorizerConfiguration
	if a.SeedsKubeconfig != "" {
		authorizers = append(authorizers, webhookAuthorizer(AuthorizerSeeds, a.SeedsKubeconfig, seedClients("request.groups")))
	}
	if a.ShootsKubeconfig != "" {
		authorizers = append(authorizers, webhookAuthorizer(AuthorizerShoots, a.ShootsKubeconfig, shootClients("request.groups", "request.user")))
	}
	return authorizers
}

// seedClients is a CEL expression for the clients of seeds.
func seedClients(groups string) string {
	return fmt.Sprintf("'%s' in %s || %s.exists(g, g.startsWith('system:serviceaccounts:%s'))",
		constants.SeedsGroup, groups, groups, constants.SeedNamespaceNamePrefix)
}

// shootClients is a CEL expression for the clients of self-hosted shoots.
func shootClients(groups, user string) string {
	return fmt.Sprintf("'%s' in %s || %s.exists(g, g == 'system:serviceaccounts:%s' || g.startsWith('system:serviceaccounts:%s')) && %s.contains(':extension-shoot--')",
		constants.ShootsGroup, groups, groups, constants.GardenNamespace, constants.ProjectNamespacePrefix, user)
}

func webhookAuthorizer(name, kubeconfig, callFor string) apiserverv1.AuthorizerConfiguration {
	// What a client may do changes with the objects of the garden, so that decisions are cached for the shortest time. Zero would mean the
	// defaults, 5m and 30s.
	const uncached = time.Nanosecond
	return apiserverv1.AuthorizerConfiguration{Type: "Webhook", Name: name, Webhook: &apiserverv1.WebhookConfiguration{
		AuthorizedTTL: metav1.Duration{Duration: uncached}, UnauthorizedTTL: metav1.Duration{Duration: uncached},
		Timeout: metav1.Duration{Duration: 10 * time.Second}, FailurePolicy: apiserverv1.FailurePolicyDeny,
		SubjectAccessReviewVersion: "v1", MatchConditionSubjectAccessReviewVersion: "v1",
		MatchConditions: []apiserverv1.WebhookMatchCondition{{Expression: callFor}},
		ConnectionInfo: apiserverv1.WebhookConnectionInfo{
			Type: apiserverv1.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: &kubeconfig,
		},
	}}
}

// Connection is how a kube-apiserver reaches gardener-admission-controller.
type Connection struct {
	// URL is that of its webhook server, without a path.
	URL string
	// CABundle has the CA certificates of its server certificate.
	CABundle []byte
	// Certificate and Key are for the client. They may be empty if the server does not require a client certificate.
	Certificate, Key []byte
}

// SeedsKubeconfig returns the kubeconfig for the authorizer of clients of seeds.
func (c Connection) SeedsKubeconfig() ([]byte, error) { return c.kubeconfig(PathSeedAuthorizer) }

// ShootsKubeconfig returns the kubeconfig for the authorizer of clients of self-hosted shoots.
func (c Connection) ShootsKubeconfig() ([]byte, error) { return c.kubeconfig(PathShootAuthorizer) }

func (c Connection) kubeconfig(path string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[Name] = &clientcmdapi.Cluster{Server: c.URL + path, CertificateAuthorityData: c.CABundle}
	config.AuthInfos[Name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Certificate, ClientKeyData: c.Key}
	config.Contexts[Name] = &clientcmdapi.Context{Cluster: Name, AuthInfo: Name}
	config.CurrentContext = Name
	return clientcmd.Write(*config)
}
