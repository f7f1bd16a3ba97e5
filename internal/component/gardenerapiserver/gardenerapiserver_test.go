package gardenerapiserver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/test/everyfield"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, ClusterIdentity: "garden-example",
		EtcdServers: []string{"https://etcd-0:2379", "https://etcd-1:2379"}, EtcdSecret: "etcd-client", Certificate: "gardener-apiserver-0", CA: []byte("CA"),
		Encryption: encryption.Values{Keys: []encryption.Key{{Name: "key1", Secret: []byte("01234567890123456789012345678901")}}}, Args: []string{"--log-level=debug"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

func TestNoEncryptionWithoutKeys(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Image: "i", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			t.Errorf("Secret %s is deployed", secret.Name)
		}
	}
}

const someKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://audit.example.com"}}]
users: [{name: a, user: {token: t}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`

func virtual() Values {
	return Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, ClusterIdentity: "garden-example",
		EtcdServers: []string{"https://virtual-garden-etcd-main-client:2379"}, EtcdSecret: "etcd-client", EtcdCA: "ca-etcd-bundle",
		Certificate: "gardener-apiserver-0", CA: []byte("CA"), Autoscaled: true,
		Virtual: &Virtual{
			Virtual:   gardenerprocess.Virtual{GenericKubeconfig: "generic-token-kubeconfig", TrafficDistribution: new("PreferSameZone")},
			ClusterIP: netip.MustParseAddr("10.2.0.7"), KubernetesVersion: "1.36.3",
		},
	}
}

func full() Values {
	v := virtual()
	v.Encryption = encryption.Values{
		Keys:      []encryption.Key{{Name: "key1", Secret: []byte("01234567890123456789012345678901")}},
		Resources: append(EncryptedResources(), "shoots.core.gardener.cloud"), PlainResources: []string{"projects.core.gardener.cloud"},
	}
	v.WorkloadIdentity = &WorkloadIdentity{Issuer: issuer.WorkloadIdentityURL("discovery.example.com"), KeySecret: "workload-identity-0"}
	v.Files = Files{
		AuditPolicy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n", AuditWebhookKubeconfig: []byte(someKubeconfig),
		AdmissionKubeconfigs: map[string][]byte{"ValidatingAdmissionWebhook": []byte(someKubeconfig)},
	}
	v.Config = &operatorv1alpha1.GardenerAPIServerConfig{
		FeatureGates: map[string]bool{"InPlaceNodeUpdates": true, "CloudProfileCapabilities": false},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{
			{Name: "ShootDNSRewriting", Config: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"shootdnsrewriting.admission.gardener.cloud/v1alpha1","kind":"Configuration"}`)}},
			{Name: "ShootQuotaValidator", Disabled: new(true)},
			{Name: "ShootNodeLocalDNSEnabledByDefault"},
			{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: new("kubeconfig")},
		},
		AuditWebhook:                      &operatorv1alpha1.AuditWebhook{KubeconfigSecretName: "audit", BatchMaxSize: new(int32(30)), Version: new("audit.k8s.io/v1")},
		Logging:                           &corev1beta1.APIServerLogging{Verbosity: new(int32(3)), HTTPAccessVerbosity: new(int32(4))},
		Requests:                          &corev1beta1.APIServerRequests{MaxNonMutatingInflight: new(int32(40)), MaxMutatingInflight: new(int32(20))},
		GoAwayChance:                      new(0.001),
		ShootAdminKubeconfigMaxExpiration: &metav1.Duration{Duration: 2 * time.Hour},
		WatchCacheSizes: &corev1beta1.WatchCacheSizes{Resources: []corev1beta1.ResourceWatchCacheSize{
			{APIGroup: new("core.gardener.cloud"), Resource: "shoots", CacheSize: 0}, {Resource: "secrets", CacheSize: 7},
		}},
	}
	return v
}

func TestVirtual(t *testing.T) {
	for name, v := range map[string]Values{"virtual": virtual(), "virtual-full": full()} {
		objects, err := Objects(v)
		if err != nil {
			t.Fatal(err)
		}
		golden.Objects(t, name+".yaml", objects)
	}
	target, err := TargetObjects(virtual())
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "virtual-target.yaml", target)
}

// The process knows all flags that it gets, and accepts their values.
func TestFlags(t *testing.T) {
	objects, err := Objects(full())
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			args = deployment.Spec.Template.Spec.Containers[0].Args
		}
	}
	if len(args) == 0 || args[0] != apiserver.Name {
		t.Fatalf("arguments: %q", args)
	}
	if err := apiserver.NewCommand().ParseFlags(args[1:]); err != nil {
		t.Error(err)
	}
}

// Which objects have the address depends on the version of Kubernetes, its form on the family.
func TestAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		version, address string
		want             []string
	}{
		"1.36":         {"1.36.3", "10.2.0.7", []string{"IPv4 10.2.0.7"}},
		"1.34, IPv6":   {"1.34.0", "2001:db8::7", []string{"IPv6 2001:db8::7"}},
		"1.33":         {"1.33.9", "10.2.0.7", []string{"IPv4 10.2.0.7", "Endpoints 10.2.0.7"}},
		"1.32":         {"1.32.1", "10.2.0.7", []string{"Endpoints 10.2.0.7"}},
		"no address":   {version: "1.36.3"},
		"no version":   {address: "10.2.0.7"},
		"a bad number": {version: "one", address: "10.2.0.7"},
	} {
		t.Run(name, func(t *testing.T) {
			v := virtual()
			v.Virtual.KubernetesVersion, v.Virtual.ClusterIP = tc.version, netip.Addr{}
			if tc.address != "" {
				v.Virtual.ClusterIP = netip.MustParseAddr(tc.address)
			}
			objects, err := TargetObjects(v)
			if (err != nil) != (tc.want == nil) {
				t.Fatalf("error: %v", err)
			}
			var got []string
			for _, object := range objects {
				switch object := object.(type) {
				case *discoveryv1.EndpointSlice:
					got = append(got, string(object.AddressType)+" "+object.Endpoints[0].Addresses[0])
				case *corev1.Endpoints:
					got = append(got, "Endpoints "+object.Subsets[0].Addresses[0].IP)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := TargetObjects(Values{}); err == nil {
		t.Error("no error without a virtual garden")
	}
}

// A file that the process would refuse is refused before it runs with it.
func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"audit policy":            func(v *Values) { v.Files.AuditPolicy = "kind: Policy" },
		"kubeconfig of the audit": func(v *Values) { v.Files.AuditWebhookKubeconfig = []byte("{}") },
		"kubeconfig of a plugin":  func(v *Values) { v.Files.AdmissionKubeconfigs["ValidatingAdmissionWebhook"] = []byte("users: 1") },
		"configuration of a plugin": func(v *Values) {
			v.Config.AdmissionPlugins = []corev1beta1.AdmissionPlugin{{Name: "ResourceQuota", Config: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}}
		},
		"encryption": func(v *Values) { v.Encryption.Keys[0].Provider = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			v := full()
			change(&v)
			objects, err := Objects(v)
			if err == nil {
				t.Errorf("%d objects are rendered", len(objects))
			}
		})
	}
}

func TestVirtualDNSNames(t *testing.T) {
	want := []string{
		"gardener-apiserver", "gardener-apiserver.garden", "gardener-apiserver.garden.svc", "gardener-apiserver.garden.svc.cluster.local",
		"gardener-apiserver.kube-system", "gardener-apiserver.kube-system.svc", "gardener-apiserver.kube-system.svc.cluster.local",
	}
	if diff := cmp.Diff(want, VirtualDNSNames("garden")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every field of the Garden has an effect.
func TestFields(t *testing.T) {
	const byOperator = "gardener-operator reads the object that it names"
	everyfield.Run(t, everyfield.Suite[operatorv1alpha1.GardenerAPIServerConfig]{
		Base: func() *operatorv1alpha1.GardenerAPIServerConfig {
			return &operatorv1alpha1.GardenerAPIServerConfig{AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "ShootDNSRewriting"}}}
		},
		Render: func(t *testing.T, config *operatorv1alpha1.GardenerAPIServerConfig) string {
			v := virtual()
			v.Config, v.Files.AuditWebhookKubeconfig = config, []byte(someKubeconfig)
			objects, err := Objects(v)
			return everyfield.YAML(t, objects, err)
		},
		Values: map[string][2]any{
			"watchCacheSizes.resources[].apiGroup": {"some", "other"},
		},
		Exceptions: map[string]string{
			"admissionPlugins[].kubeconfigSecretName": byOperator,
			"auditConfig":                       byOperator,
			"auditWebhook.kubeconfigSecretName": byOperator,
			"encryptionConfig":                  "comes in Encryption, as it needs keys",
			"watchCacheSizes.default":           "deprecated: the size adapts itself",
		},
	})
}
