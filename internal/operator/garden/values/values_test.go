package values

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
	validation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

const webhookKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://webhook.example.com"}}]
users: [{name: a, user: {token: t}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`

// small is the smallest Garden.
func small() *operatorv1alpha1.Garden {
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "7ab7e84b", Generation: 3}}
	garden.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "ingress.example.com"}}
	v := &garden.Spec.VirtualCluster
	v.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}}
	v.Kubernetes.Version = "1.36.3"
	v.Maintenance.TimeWindow = corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}
	v.Networking.Services = []string{"100.64.0.0/13"}
	v.Gardener.ClusterIdentity = "local"
	return garden
}

// full has high availability, and what a Garden can say about its control plane.
func full() *operatorv1alpha1.Garden {
	garden := small()
	garden.Spec.RuntimeCluster.Provider.Zones = []string{"a", "b", "c"}
	v := &garden.Spec.VirtualCluster
	v.ControlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
	v.DNS.Domains = append(v.DNS.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com"})
	v.ETCD = &operatorv1alpha1.ETCD{
		Main: &operatorv1alpha1.ETCDMain{
			Autoscaling: &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("300M")}},
			Backup:      &operatorv1alpha1.Backup{Provider: "local", BucketName: new("bucket/some/path")},
			Storage:     &operatorv1alpha1.Storage{ClassName: new("fast")},
		},
		Events: &operatorv1alpha1.ETCDEvents{Storage: &operatorv1alpha1.Storage{Capacity: new(resource.MustParse("5Gi"))}},
	}
	v.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{
		KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{
			RuntimeConfig:        map[string]bool{"apps/v1": true},
			ServiceAccountConfig: &corev1beta1.ServiceAccountConfig{Issuer: new("https://api.second.example.com")},
			EncryptionConfig:     &corev1beta1.EncryptionConfig{Resources: []string{"configmaps"}},
		},
		AuditWebhook: &operatorv1alpha1.AuditWebhook{KubeconfigSecretName: "audit", BatchMaxSize: new(int32(30)), Version: new("audit.k8s.io/v1")},
		Authentication: &operatorv1alpha1.Authentication{Webhook: &operatorv1alpha1.AuthenticationWebhook{
			KubeconfigSecretName: "authentication", CacheTTL: &metav1.Duration{Duration: time.Minute}, Version: new("v1"),
		}},
		ResourcesToStoreInETCDEvents: []operatorv1alpha1.GroupResource{{Group: "networking.k8s.io", Resource: "networkpolicies"}},
		SNI:                          &operatorv1alpha1.SNI{DomainPatterns: []string{"*.sni.example.com"}},
	}
	v.Kubernetes.KubeControllerManager = &operatorv1alpha1.KubeControllerManagerConfig{CertificateSigningDuration: &metav1.Duration{Duration: 24 * time.Hour}}
	v.Gardener.GardenerResourceManager = &operatorv1alpha1.GardenerResourceManagerConfig{AdditionalTargetNamespaces: []string{"more"}}
	return garden
}

// runtimeCluster has the objects that full refers to.
func runtimeCluster(objects ...client.Object) client.Client {
	for _, name := range []string{"audit", "authentication"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Data: map[string][]byte{"kubeconfig": []byte(webhookKubeconfig)}})
	}
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

func gardenCertificate(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{"gardener.cloud/role": "garden-cert"}},
		Data:       map[string][]byte{"tls.crt": sniCertificate.certificate, "tls.key": sniCertificate.key},
	}
}

// sniCertificate is self-signed. One is enough for all tests.
var sniCertificate = func() (pair struct{ certificate, key []byte }) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"*.sni.example.com"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err)
	}
	pair.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pair.key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	return pair
}()

// The configuration of the process is for the etcd that has backups.
func TestBackupConfiguration(t *testing.T) {
	s := source(t, full(), runtimeCluster())
	period, reelection, timeout := &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Second}, &metav1.Duration{Duration: time.Minute}
	s.ETCD = &gardenletconfigv1alpha1.ETCDConfig{
		DeltaSnapshotRetentionPeriod: period,
		BackupLeaderElection:         &gardenletconfigv1alpha1.ETCDBackupLeaderElection{ReelectionPeriod: reelection, ETCDConnectionTimeout: timeout},
	}
	v, err := s.Etcd(etcd.Main, 1)
	if err != nil {
		t.Fatal(err)
	}
	if b := v.Backup; b.DeltaSnapshotRetentionPeriod != period || b.ReelectionPeriod != reelection || b.ConnectionTimeout != timeout {
		t.Errorf("backup is %+v", b)
	}
}

// API servers before 1.34 refuse the newer name, and with it the whole Service.
func TestTrafficDistribution(t *testing.T) {
	for version, want := range map[string]string{"v1.33.5": "PreferClose", "v1.34.0": "PreferSameZone", "": ""} {
		garden := full()
		garden.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{
			TopologyAwareRouting: &operatorv1alpha1.SettingTopologyAwareRouting{Enabled: want != ""},
		}
		s := source(t, garden, runtimeCluster())
		s.RuntimeVersion = version
		main, err := s.Etcd(etcd.Main, 3)
		if err != nil {
			t.Fatal(err)
		}
		server, err := s.KubeAPIServer(3, Files{})
		if err != nil {
			t.Fatal(err)
		}
		for of, got := range map[string]*string{"etcd": main.TrafficDistribution, "kube-apiserver": server.TrafficDistribution, "Gardener": s.TrafficDistribution()} {
			if ptr.Deref(got, "") != want {
				t.Errorf("trafficDistribution of %s with version %q is %q, want %q", of, version, ptr.Deref(got, ""), want)
			}
		}
	}
}

func source(t *testing.T, garden *operatorv1alpha1.Garden, c client.Client) Source {
	t.Helper()
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(Credentials(garden, c, clock.RealClock{}))
	stagetest.Generate(t, set)
	return Source{Garden: garden, Credentials: set, Images: images, GardenerVersion: "v1"}
}

var (
	generated  = regexp.MustCompile(`-[0-9a-f]{8}(-[0-9a-f]{5})?\b`)
	references = regexp.MustCompile(`(?m)^ *reference\.resources\.gardener\.cloud/.*\n`)
	caBundles  = regexp.MustCompile(`(?m)^( *caBundle: ).*$`)
)

// text is YAML of objects without what is random: keys, and the names that depend on them.
func text(t *testing.T, objects []client.Object) string {
	t.Helper()
	var all []string
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			for key := range secret.Data {
				secret.Data[key] = nil
			}
		}
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("# %T\n%s", object, data))
	}
	out := references.ReplaceAllString(strings.Join(all, "---\n"), "")
	return caBundles.ReplaceAllString(generated.ReplaceAllString(out, "-#"), "${1}#")
}

func TestControlPlane(t *testing.T) {
	for name, garden := range map[string]*operatorv1alpha1.Garden{"small": small(), "full": full()} {
		t.Run(name, func(t *testing.T) {
			c := runtimeCluster(gardenCertificate("wildcard"))
			s := source(t, garden, c)
			files, err := ReadFiles(t.Context(), c, garden)
			if err != nil {
				t.Fatal(err)
			}
			render := map[string]func() ([]client.Object, error){
				"kube-apiserver": func() ([]client.Object, error) {
					v, err := s.KubeAPIServer(s.APIServerReplicas(), files)
					if err != nil {
						return nil, err
					}
					return kubeapiserver.Objects(v)
				},
				"kube-controller-manager": func() ([]client.Object, error) {
					v, err := s.KubeControllerManager(s.Replicas())
					if err != nil {
						return nil, err
					}
					return kubecontrollermanager.Objects(v)
				},
				"resource-manager": func() ([]client.Object, error) {
					v, err := s.ResourceManager(s.Replicas())
					if err != nil {
						return nil, err
					}
					objects, err := resourcemanager.Objects(v)
					return append(objects, resourcemanager.TargetObjects(v)...), err
				},
				"runtime-resource-manager": func() ([]client.Object, error) {
					v, err := s.RuntimeResourceManager()
					if err != nil {
						return nil, err
					}
					return resourcemanager.Objects(v)
				},
			}
			for _, role := range []etcd.Role{etcd.Main, etcd.Events} {
				render["etcd-"+string(role)] = func() ([]client.Object, error) {
					v, err := s.Etcd(role, s.Members())
					return etcd.Objects(v), err
				}
			}
			for component, objects := range render {
				rendered, err := objects()
				if err != nil {
					t.Fatal(err)
				}
				for _, object := range rendered {
					if configMap, ok := object.(*corev1.ConfigMap); ok && strings.HasSuffix(component, "resource-manager") {
						config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
						if err := yaml.UnmarshalStrict([]byte(configMap.Data["config.yaml"]), config); err != nil {
							t.Fatal(err)
						}
						if err := validation.ValidateResourceManager(config).ToAggregate(); err != nil {
							t.Errorf("%s: its configuration is invalid: %v", component, err)
						}
					}
				}
				golden.Text(t, name+"-"+component+".yaml", text(t, rendered))
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	highly := &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
	for name, tc := range map[string]struct {
		controlPlane                *operatorv1alpha1.ControlPlane
		zones                       []string
		members, apiServer, replica int32
		spread                      []string
	}{
		"one node":                {members: 1, apiServer: 1, replica: 1},
		"zones":                   {zones: []string{"a", "b"}, members: 1, apiServer: 2, replica: 2, spread: []string{corev1.LabelHostname}},
		"highly available":        {controlPlane: highly, members: 3, apiServer: 3, replica: 2, spread: []string{corev1.LabelHostname}},
		"highly available, zones": {controlPlane: highly, zones: []string{"a", "b"}, members: 3, apiServer: 3, replica: 2, spread: []string{corev1.LabelHostname, corev1.LabelTopologyZone}},
	} {
		t.Run(name, func(t *testing.T) {
			garden := small()
			garden.Spec.VirtualCluster.ControlPlane, garden.Spec.RuntimeCluster.Provider.Zones = tc.controlPlane, tc.zones
			s := Source{Garden: garden}
			if diff := cmp.Diff([]int32{tc.members, tc.apiServer, tc.replica}, []int32{s.Members(), s.APIServerReplicas(), s.Replicas()}); diff != "" {
				t.Errorf("members of etcd, pods of API servers, pods of others (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.spread, s.Spread()); diff != "" {
				t.Errorf("Spread() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	s := Source{Garden: full()}
	if diff := cmp.Diff([]string{
		"api.garden.example.com", "gardener.garden.example.com", "api.second.example.com", "gardener.second.example.com",
	}, s.Hosts()); diff != "" {
		t.Errorf("Hosts() (-want +got):\n%s", diff)
	}
	// The gateway leads clients to the certificate for more names, too.
	if diff := cmp.Diff(append(s.Hosts(), "*.sni.example.com"), s.Routes()); diff != "" {
		t.Errorf("Routes() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"gardener": "https://api.garden.example.com", "gardener-internal": "https://virtual-garden-kube-apiserver.garden.svc.cluster.local",
	}, s.Kubeconfigs()); diff != "" {
		t.Errorf("Kubeconfigs() (-want +got):\n%s", diff)
	}
	if got, want := s.WorkloadIdentityIssuer(), "https://discovery.ingress.example.com/garden/workload-identity/issuer"; got != want {
		t.Errorf("WorkloadIdentityIssuer() is %q, want %q", got, want)
	}
	s.Garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{
		Domain: &operatorv1alpha1.DNSDomain{Name: "keys.example.com"},
	}
	if got := s.DiscoveryHost(); got != "keys.example.com" {
		t.Errorf("DiscoveryHost() is %q", got)
	}
}

func TestReadFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		change  func(*operatorv1alpha1.KubeAPIServerConfig)
		want    string
	}{
		"all":              {objects: []client.Object{gardenCertificate("wildcard")}},
		"no certificate":   {want: "0 Secrets have the label gardener.cloud/role=garden-cert"},
		"two certificates": {objects: []client.Object{gardenCertificate("a"), gardenCertificate("b")}, want: "2 Secrets have the label"},
		"the named certificate is missing": {
			change: func(c *operatorv1alpha1.KubeAPIServerConfig) { c.SNI.SecretName = new("mine") }, want: `read Secret "garden/mine"`,
		},
		"a certificate that a kube-apiserver could not read": {
			objects: []client.Object{&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "mine"}, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": sniCertificate.key},
			}},
			change: func(c *operatorv1alpha1.KubeAPIServerConfig) { c.SNI.SecretName = new("mine") }, want: `read the certificate in Secret "garden/mine"`,
		},
		"a kubeconfig is missing": {
			change: func(c *operatorv1alpha1.KubeAPIServerConfig) { c.AuditWebhook.KubeconfigSecretName = "none" }, want: `read Secret "garden/none"`,
		},
		"no key": {
			objects: []client.Object{gardenCertificate("a")},
			change:  func(c *operatorv1alpha1.KubeAPIServerConfig) { c.Authentication.Webhook.KubeconfigSecretName = "a" },
			want:    `Secret "garden/a" has no key "kubeconfig"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			garden := full()
			if tc.change != nil {
				tc.change(garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer)
			}
			files, err := ReadFiles(t.Context(), runtimeCluster(tc.objects...), garden)
			if tc.want == "" && (err != nil || files.SNISecret != "wildcard") || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("ReadFiles() has the certificate %q and the error %v, want %q", files.SNISecret, err, tc.want)
			}
		})
	}
}

// What an API server begins or ceases to encrypt is its own: the status has the resources of both.
func TestEncryption(t *testing.T) {
	garden := full()
	garden.Spec.VirtualCluster.Gardener.GardenerAPIServer = &operatorv1alpha1.GardenerAPIServerConfig{
		EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"projects.core.gardener.cloud"}},
	}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{
		Resources: []string{"roles.rbac.authorization.k8s.io", "projects.core.gardener.cloud", "shoots.core.gardener.cloud"},
	}}
	s := source(t, garden, runtimeCluster())
	kube, err := s.Encryption()
	if err != nil {
		t.Fatal(err)
	}
	ofGardener, err := s.GardenEncryption()
	if err != nil {
		t.Fatal(err)
	}
	former, err := s.FormerEncryption()
	if err != nil {
		t.Fatal(err)
	}
	mark, err := s.EncryptionMark()
	if err != nil {
		t.Fatal(err)
	}
	type parts struct{ Resources, Plain []string }
	for name, tc := range map[string]struct{ got, want parts }{
		"kube-apiserver": {parts{kube.Resources, kube.PlainResources}, parts{[]string{"secrets", "configmaps"}, []string{"roles.rbac.authorization.k8s.io"}}},
		"before":         {parts{former.Resources, former.PlainResources}, parts{[]string{"secrets"}, []string{"roles.rbac.authorization.k8s.io", "configmaps"}}},
		"gardener-apiserver": {parts{ofGardener.Resources, ofGardener.PlainResources}, parts{[]string{
			"controllerdeployments.core.gardener.cloud", "controllerregistrations.core.gardener.cloud", "internalsecrets.core.gardener.cloud",
			"shootstates.core.gardener.cloud", "projects.core.gardener.cloud",
		}, []string{"shoots.core.gardener.cloud"}}},
		"status": {parts{Resources: s.EncryptionAtRest().Resources}, parts{Resources: []string{"configmaps", "projects.core.gardener.cloud"}}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !s.ChangesEncryption() || !s.EncryptsMore() || !s.ChangesGardenEncryption() || s.EncryptsMoreOfGarden() {
		t.Errorf("changes: %t and %t, encrypts more: %t and %t", s.ChangesEncryption(), s.ChangesGardenEncryption(), s.EncryptsMore(), s.EncryptsMoreOfGarden())
	}
	if want := kube.Keys[0].Name + "/3"; mark != want {
		t.Errorf("EncryptionMark() is %q, want %q", mark, want)
	}
	if kube.Keys[0].Name == "" || string(kube.Keys[0].Secret) == string(ofGardener.Keys[0].Secret) {
		t.Error("both API servers have the same key")
	}
}

// A key is used with the provider that it was generated for: data that is stored could not be read with another one.
func TestEncryptionProvider(t *testing.T) {
	garden, c := full(), runtimeCluster()
	providers := func() []corev1beta1.EncryptionProviderType {
		t.Helper()
		s := source(t, garden, c)
		kube, err := s.Encryption()
		if err != nil {
			t.Fatal(err)
		}
		ofGardener, err := s.GardenEncryption()
		if err != nil {
			t.Fatal(err)
		}
		var all []corev1beta1.EncryptionProviderType
		for _, key := range slices.Concat(kube.Keys, ofGardener.Keys) {
			all = append(all, key.Provider)
		}
		return all
	}
	config := garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer.EncryptionConfig
	config.Provider.Type = new(corev1beta1.EncryptionProviderTypeSecretbox)
	generated := []corev1beta1.EncryptionProviderType{"secretbox", "secretbox"}
	if diff := cmp.Diff(generated, providers()); diff != "" {
		t.Errorf("new keys (-want +got):\n%s", diff)
	}
	config.Provider.Type = new(corev1beta1.EncryptionProviderTypeAESGCM)
	if diff := cmp.Diff(generated, providers()); diff != "" {
		t.Errorf("existing keys (-want +got):\n%s", diff)
	}
}

// The kube-apiserver of before does not trust a client of the new CA: gardener-operator has a certificate of the old one until all trust both.
func TestAccess(t *testing.T) {
	garden, c := small(), runtimeCluster()
	source(t, garden, c)
	started := metav1.NewTime(time.Now().Add(time.Hour))
	rotation := &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: &started}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{CertificateAuthorities: rotation}}
	set := credentials.New(Credentials(garden, c, clocktesting.NewFakePassiveClock(started.Time)))
	all := stagetest.Generate(t, set)
	for phase, signer := range map[corev1beta1.CredentialsRotationPhase]*corev1.Secret{
		corev1beta1.RotationPreparing: all.Old("ca-client"), corev1beta1.RotationPrepared: all.Current("ca-client"),
	} {
		rotation.Phase = phase
		data, err := Source{Garden: garden}.Access(t.Context(), c, started.Time)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		if want := "https://virtual-garden-kube-apiserver.garden.svc.cluster.local"; config.Host != want {
			t.Errorf("the host is %q, want %q", config.Host, want)
		}
		block, _ := pem.Decode(config.CertData)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(signer.Data["ca.crt"])
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: started.Time, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: the client certificate is of another CA: %v", phase, err)
		}
	}
}
