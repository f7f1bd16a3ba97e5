package kubeapiserver

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/test/golden"
)

// workerless is the smallest cluster.
func workerless() Values {
	return Values{
		Namespace: "shoot--a--b", Image: "registry.example/kube-apiserver:v1.36.3", Version: "1.36.3", Replicas: 1, Workerless: true,
		ServiceNetworks: []string{"100.64.0.0/13"}, ExternalHostname: "api.b.a.internal.example", Issuer: "https://api.b.a.internal.example",
		Secrets: Secrets{
			ClientCA: "ca-client-bundle-1", EtcdCA: "ca-etcd-bundle-1", FrontProxyCA: "ca-front-proxy-bundle-1", Server: "kube-apiserver-1",
			EtcdClient: "etcd-client-1", Aggregator: "kube-aggregator-1", ServiceAccountKey: "service-account-key-1",
			ServiceAccountKeys: "service-account-key-bundle-1",
		},
		Encryption: encryption.Values{
			Keys:      []encryption.Key{{Provider: corev1beta1.EncryptionProviderTypeAESCBC, Name: "key1", Secret: []byte("01234567890123456789012345678901")}},
			Resources: []string{"secrets"},
		},
	}
}

// full has everything that a Shoot can say.
func full() Values {
	v := workerless()
	v.Workerless, v.Replicas, v.Spread = false, 3, []string{corev1.LabelHostname, corev1.LabelTopologyZone}
	v.TrafficDistribution = new("PreferSameZone")
	v.Autoscaling = &Autoscaling{MinReplicas: 3, MaxReplicas: 6}
	v.AdvertiseAddress = "240.0.0.1"
	v.AcceptedIssuers, v.JWKSURI = []string{"https://former.example"}, "https://keys.example/jwks"
	v.Secrets.KubeletCA, v.Secrets.KubeletClient = "ca-kubelet-bundle-1", "kube-apiserver-kubelet-1"
	v.Tunnel = &Tunnel{
		URL: "https://vpn-seed-server:9443", ClientSecret: "kube-apiserver-http-proxy-1", CASecret: "ca-vpn-bundle-1",
		PodLabels: map[string]string{"networking.resources.gardener.cloud/to-vpn-seed-server-tcp-9443": "allowed"},
	}
	v.NodeAgents = &NodeAgents{Kubeconfig: []byte(someKubeconfig)}
	v.Encryption.Keys = append(v.Encryption.Keys,
		encryption.Key{Provider: corev1beta1.EncryptionProviderTypeSecretbox, Name: "key0", Secret: []byte("12345678901234567890123456789012")})
	v.Encryption.Resources = []string{"configmaps", "secrets"}
	v.Encryption.PlainResources = []string{"roles.rbac.authorization.k8s.io"}
	v.Config = &corev1beta1.KubeAPIServerConfig{
		KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"WatchList": true, "APIResponseCompression": true}},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{
			{Name: "PodNodeSelector", Config: &runtime.RawExtension{Raw: []byte(`{"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"a=b"}}`)}},
			{Name: "AlwaysPullImages"},
			{Name: "RuntimeClass", Disabled: new(true)},
			{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: new("webhooks")},
		},
		APIAudiences:  []string{"theirs"},
		AuditConfig:   &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "policy"}}},
		RuntimeConfig: map[string]bool{"internal.apiserver.k8s.io/v1alpha1": true},
		ServiceAccountConfig: &corev1beta1.ServiceAccountConfig{
			Issuer: new("https://issuer.example"), AcceptedIssuers: []string{"https://older.example"},
			ExtendTokenExpiration: new(false), MaxTokenExpiration: &metav1.Duration{Duration: 30 * 24 * time.Hour},
		},
		WatchCacheSizes: &corev1beta1.WatchCacheSizes{Resources: []corev1beta1.ResourceWatchCacheSize{
			{Resource: "secrets", CacheSize: 100}, {APIGroup: new("apps"), Resource: "deployments", CacheSize: 0},
		}},
		Requests:                            &corev1beta1.APIServerRequests{MaxNonMutatingInflight: new(int32(800)), MaxMutatingInflight: new(int32(300))},
		EventTTL:                            &metav1.Duration{Duration: 2 * time.Hour},
		Logging:                             &corev1beta1.APIServerLogging{Verbosity: new(int32(3)), HTTPAccessVerbosity: new(int32(4))},
		DefaultNotReadyTolerationSeconds:    new(int64(60)),
		DefaultUnreachableTolerationSeconds: new(int64(120)),
		StructuredAuthentication:            &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
		StructuredAuthorization:             &corev1beta1.StructuredAuthorization{ConfigMapName: "authorization"},
		Autoscaling:                         &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		TLSMinVersion:                       new("VersionTLS13"),
	}
	v.Files = Files{
		AuditPolicy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n",
		Authentication: `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /version
jwt:
- issuer: {url: "https://issuer.invalid", audiences: [cluster]}
  claimMappings: {username: {claim: sub, prefix: "x:"}}
`,
		Authorization: `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: theirs
  webhook:
    timeout: 3s
    authorizedTTL: 30s
    unauthorizedTTL: 30s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    matchConditions:
    - expression: request.user == 'somebody'
`,
		AuthorizationKubeconfigs: map[string][]byte{"theirs": []byte(someKubeconfig)},
		AdmissionKubeconfigs:     map[string][]byte{"ValidatingAdmissionWebhook": []byte(someKubeconfig)},
	}
	return v
}

// ipv6 is a cluster with both families, of which IPv6 comes first.
func ipv6() Values {
	v := workerless()
	v.ServiceNetworks, v.AdvertiseAddress = []string{"2001:db8:1::/112", "100.64.0.0/13"}, "fd8f:6d53:b97a:1::1"
	return v
}

const someKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://webhook.invalid"}}]
users: [{name: a, user: {}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{"workerless": workerless(), "full": full()} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
		})
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Values)
		want   string
		theirs bool // the owner of the Shoot can help
	}{
		"version":                   {func(v *Values) { v.Version = "new" }, "version", false},
		"old version":               {func(v *Values) { v.Version = "1.31.9" }, "1.32", true},
		"authentication of no kind": {func(v *Values) { v.Files.Authentication = "{}" }, "AuthenticationConfiguration", true},
		"authentication is no YAML": {func(v *Values) { v.Files.Authentication = "secret: [" }, "structured authentication: AuthenticationConfiguration: Forbidden: is no YAML", true},
		"authorizer of a garden": {func(v *Values) {
			v.Garden = &Garden{}
			v.Files.Authorization = strings.Replace(v.Files.Authorization, "name: theirs", "name: seed-authorizer", 1)
			v.Files.AuthorizationKubeconfigs = map[string][]byte{"seed-authorizer": []byte(someKubeconfig)}
		}, `authorizers[seed-authorizer].name: Forbidden: is the name of an authorizer that each garden has`, true},
		"audit webhook without kubeconfig": {func(v *Values) { v.Garden = &Garden{AuditWebhook: &AuditWebhook{}} }, "audit-webhook: kubeconfig", true},
		"authentication webhook without kubeconfig": {func(v *Values) {
			v.Garden = &Garden{AuthenticationWebhook: &AuthenticationWebhook{Kubeconfig: []byte("no")}}
		}, "authentication-webhook: kubeconfig", true},
		"authorizer without access": {func(v *Values) { v.Files.AuthorizationKubeconfigs = nil }, `authorizers[0].name: Invalid value: "theirs": has no kubeconfig`, true},
		"authorizer is no webhook": {func(v *Values) {
			v.Files.Authorization = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: theirs}]"
		}, "authorizers[0].type", true},
		"kubeconfig for nobody": {func(v *Values) {
			v.Files.AdmissionKubeconfigs = map[string][]byte{"AlwaysPullImages": []byte(someKubeconfig)}
		}, "AlwaysPullImages", true},
		"unknown encryption":      {func(v *Values) { v.Encryption.Keys[0].Provider = "rot13" }, "rot13", false},
		"tunnel that is no HTTPS": {func(v *Values) { v.Tunnel.URL = "vpn-seed-server" }, "tunnel", false},
		"audit policy": {func(v *Values) {
			v.Files.AuditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]"
		}, "audit policy: rules[0].level", true},
		"issuer of service accounts": {func(v *Values) {
			v.Files.Authentication = strings.ReplaceAll(v.Files.Authentication, "https://issuer.invalid", "https://older.example")
		}, "jwt[0].issuer.url", true},
		"kubeconfig of an authorizer": {func(v *Values) {
			v.Files.AuthorizationKubeconfigs["theirs"] = []byte(strings.Replace(someKubeconfig, "user: {}", "user: {tokenFile: /x}", 1))
		}, `structured authorization: kubeconfig of "theirs": users[0].user.tokenFile`, true},
		"kubeconfig of a plugin": {func(v *Values) {
			v.Files.AdmissionKubeconfigs["ValidatingAdmissionWebhook"] = []byte(strings.Replace(someKubeconfig, "user: {}", "user: {exec: {}}", 1))
		}, "admission plugin ValidatingAdmissionWebhook: kubeconfig: users[0].user.exec", true},
		"admission config no object": {func(v *Values) { v.Config.AdmissionPlugins[0].Config.Raw = []byte("[]") }, "PodNodeSelector", true},
	} {
		t.Run(name, func(t *testing.T) {
			v := full()
			tc.change(&v)
			_, err := Objects(v)
			codes := errorcode.Of(err)
			if theirs := len(codes) > 0; theirs != tc.theirs || theirs && !slices.Equal(codes, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
				t.Errorf("error has codes %v", codes)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
