package gardenctl

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	shootaccess "gardener.cloud/gardener/internal/shoot/access"
)

const (
	// authenticationKey is that of the AuthenticationConfiguration in the ConfigMap to which a Garden refers.
	authenticationKey = "config.yaml"
	// emailScope is requested besides openid: names of users are mail addresses mostly.
	emailScope = "email"
)

// oidcLogin describes kubeconfigs with which users of a virtual garden log in at an OpenID Connect issuer.
type oidcLogin struct {
	enabled bool
	// issuer and client are a choice between those that the Garden has.
	issuer, client string
	// scopes are requested besides those of the Garden.
	scopes []string
	// host is the name of the kube-apiserver.
	host string
}

func (o *oidcLogin) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.enabled, "oidc", false, "without credentials: users log in at the OpenID Connect issuer of the garden")
	flags.StringVar(&o.issuer, "oidc-issuer-url", "", "with --oidc: the issuer, if the garden trusts several")
	flags.StringVar(&o.client, "oidc-client-id", "", "with --oidc: the client, if the issuer has several audiences")
	flags.StringArrayVar(&o.scopes, "oidc-extra-scope", nil, "with --oidc: a scope to request, besides openid and email; can be repeated")
	flags.StringVar(&o.host, "host", "", "with --oidc: another name of the kube-apiserver than that of the first domain, such as one of sni of the Garden")
}

// issuer is a trusted issuer of the AuthenticationConfiguration. All its versions have these fields.
type issuer struct {
	URL                  string   `json:"url"`
	Audiences            []string `json:"audiences"`
	CertificateAuthority string   `json:"certificateAuthority"`
}

// kubeconfig returns a kubeconfig that asks kubelogin for tokens. Whoever has it needs no credentials before.
func (o *oidcLogin) kubeconfig(ctx context.Context, api client.Reader, garden *operatorv1alpha1.Garden, now time.Time) (*clientcmdapi.Config, error) {
	issuers, err := trustedIssuers(ctx, api, garden)
	if err != nil {
		return nil, err
	}
	dashboard := operatorv1alpha1.DashboardOIDC{}
	if c := garden.Spec.VirtualCluster.Gardener.GardenerDashboard; c != nil && c.OIDCConfig != nil {
		dashboard = *c.OIDCConfig
	}
	chosen, err := o.chooseIssuer(issuers, ptr.Deref(dashboard.IssuerURL, ""))
	if err != nil {
		return nil, fmt.Errorf("garden %q: %w", garden.Name, err)
	}
	clientID, scopes := o.client, []string{emailScope}
	if ptr.Deref(dashboard.IssuerURL, chosen.URL) == chosen.URL {
		scopes = append(scopes, dashboard.AdditionalScopes...)
		if clientID == "" {
			clientID = ptr.Deref(dashboard.ClientIDPublic, "")
		}
	}
	if clientID == "" {
		if len(chosen.Audiences) != 1 {
			return nil, fmt.Errorf("issuer %s has the audiences %s; choose the client with --oidc-client-id", chosen.URL, strings.Join(chosen.Audiences, ", "))
		}
		clientID = chosen.Audiences[0]
	}
	host, caBundle, err := o.server(ctx, api, garden, now)
	if err != nil {
		return nil, err
	}

	args := []string{"oidc-login", "get-token", "--oidc-issuer-url=" + chosen.URL, "--oidc-client-id=" + clientID}
	for _, scope := range slices.Compact(slices.Sorted(slices.Values(append(scopes, o.scopes...)))) {
		if scope != "openid" { // is always requested
			args = append(args, "--oidc-extra-scope="+scope)
		}
	}
	if chosen.CertificateAuthority != "" {
		args = append(args, "--certificate-authority-data="+base64.StdEncoding.EncodeToString([]byte(chosen.CertificateAuthority)))
	}
	config := clientcmdapi.NewConfig()
	name := garden.Name
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + host, CertificateAuthorityData: caBundle}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: "kubectl", Args: args,
		InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
		InstallHint:     "the plugin oidc-login of kubectl logs you in; install it with: kubectl krew install oidc-login",
	}}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config, nil
}

// trustedIssuers returns the issuers in the structured authentication of a Garden.
func trustedIssuers(ctx context.Context, api client.Reader, garden *operatorv1alpha1.Garden) ([]issuer, error) {
	c := garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer
	if c == nil || c.StructuredAuthentication == nil {
		return nil, fmt.Errorf("garden %q has no spec.virtualCluster.kubernetes.kubeAPIServer.structuredAuthentication: users cannot log in with OpenID Connect", garden.Name)
	}
	name := c.StructuredAuthentication.ConfigMapName
	configMap := &corev1.ConfigMap{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, configMap); err != nil {
		return nil, fmt.Errorf("read ConfigMap \"%s/%s\" with the authentication of Garden %q: %w", constants.GardenNamespace, name, garden.Name, err)
	}
	var config struct {
		JWT []struct {
			Issuer issuer `json:"issuer"`
		} `json:"jwt"`
	}
	if err := yaml.Unmarshal([]byte(configMap.Data[authenticationKey]), &config); err != nil {
		return nil, fmt.Errorf("key %q of ConfigMap \"%s/%s\": %w", authenticationKey, constants.GardenNamespace, name, err)
	}
	issuers := make([]issuer, 0, len(config.JWT))
	for _, jwt := range config.JWT {
		issuers = append(issuers, jwt.Issuer)
	}
	if len(issuers) == 0 {
		return nil, fmt.Errorf("key %q of ConfigMap \"%s/%s\" has no issuer in jwt", authenticationKey, constants.GardenNamespace, name)
	}
	return issuers, nil
}

// chooseIssuer returns the issuer that a flag names, else that of the dashboard, else the only one.
func (o *oidcLogin) chooseIssuer(issuers []issuer, ofDashboard string) (issuer, error) {
	urls := make([]string, 0, len(issuers))
	for _, i := range issuers {
		urls = append(urls, i.URL)
	}
	switch i := slices.Index(urls, o.issuer); {
	case o.issuer != "" && i < 0:
		return issuer{}, fmt.Errorf("issuer %s is not trusted, only %s", o.issuer, strings.Join(urls, ", "))
	case o.issuer != "":
		return issuers[i], nil
	}
	if i := slices.Index(urls, ofDashboard); i >= 0 {
		return issuers[i], nil
	}
	if len(issuers) > 1 {
		return issuer{}, fmt.Errorf("it trusts the issuers %s; choose one with --oidc-issuer-url", strings.Join(urls, ", "))
	}
	return issuers[0], nil
}

// server returns the name of the kube-apiserver, and the CAs of its certificate for this name. Nil are those of the user's computer.
func (o *oidcLogin) server(ctx context.Context, api client.Reader, garden *operatorv1alpha1.Garden, now time.Time) (host string, caBundle []byte, err error) {
	if host = o.host; host == "" {
		host = "api." + garden.Spec.VirtualCluster.DNS.Domains[0].Name
	}
	if c := garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer; c.SNI != nil && slices.ContainsFunc(c.SNI.DomainPatterns, func(pattern string) bool {
		return operatorv1alpha1.MatchesDomainPattern(pattern, host)
	}) {
		caBundle, err = sniCA(ctx, api, c.SNI)
		return host, caBundle, err
	}
	var known []string
	for _, domain := range garden.Spec.VirtualCluster.DNS.Domains {
		known = append(known, "api."+domain.Name, "gardener."+domain.Name)
	}
	if !slices.Contains(known, host) {
		return "", nil, fmt.Errorf("--host %s is none of %s, and matches no pattern of sni of Garden %q", host, strings.Join(known, ", "), garden.Name)
	}
	caBundle, err = shootaccess.CABundle(ctx, shootaccess.Values{SeedAPI: api, Namespace: constants.GardenNamespace, Now: now})
	if err != nil {
		return "", nil, fmt.Errorf("read the CA of Garden %q: %w; see its progress with: kubectl get gardens", garden.Name, err)
	}
	return host, caBundle, nil
}

// sniCA returns the CA in the Secret with the certificate for more names. The Secret may have none: the certificate is one that computers trust then.
func sniCA(ctx context.Context, api client.Reader, sni *operatorv1alpha1.SNI) ([]byte, error) {
	secret := &corev1.Secret{}
	if sni.SecretName != nil {
		if err := api.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: *sni.SecretName}, secret); err != nil {
			return nil, fmt.Errorf("read Secret \"%s/%s\" with the certificate of sni: %w", constants.GardenNamespace, *sni.SecretName, err)
		}
		return secret.Data[corev1.ServiceAccountRootCAKey], nil
	}
	list := &corev1.SecretList{}
	if err := api.List(ctx, list, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleGardenWildcardCert,
	}); err != nil {
		return nil, fmt.Errorf("list Secrets with the certificate of sni: %w", err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d Secrets have the label %s=%s: exactly one must have it", len(list.Items), constants.GardenRole, constants.GardenRoleGardenWildcardCert)
	}
	return list.Items[0].Data[corev1.ServiceAccountRootCAKey], nil
}
