package operator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/operator"
)

type (
	garden  = operatorv1alpha1.Garden
	virtual = operatorv1alpha1.VirtualCluster
)

func results(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, map[field.ErrorType]string{
			field.ErrorTypeRequired: "required", field.ErrorTypeInvalid: "invalid", field.ErrorTypeNotSupported: "unsupported",
			field.ErrorTypeDuplicate: "duplicate", field.ErrorTypeForbidden: "forbidden", field.ErrorTypeTooMany: "toomany",
			field.ErrorTypeTooLong: "toolong",
		}[err.Type]+" "+err.Field)
	}
	sort.Strings(out)
	return out
}

// validGarden returns the Garden in testdata, after changes.
func validGarden(t *testing.T, changes ...func(*garden)) *garden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "garden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := &garden{}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		t.Fatal(err)
	}
	out.ResourceVersion = "1"
	for _, change := range changes {
		change(out)
	}
	return out
}

func TestGarden(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*garden)
		want   []string
	}{
		"valid": {change: func(*garden) {}},
		"without anything": {change: func(g *garden) { g.Spec = operatorv1alpha1.GardenSpec{} }, want: []string{
			"invalid spec.virtualCluster.kubernetes.version", "invalid spec.virtualCluster.maintenance.timeWindow.begin",
			"required spec.runtimeCluster.ingress.domains", "required spec.runtimeCluster.networking.pods", "required spec.runtimeCluster.networking.services",
			"required spec.virtualCluster.dns.domains", "required spec.virtualCluster.gardener.clusterIdentity", "required spec.virtualCluster.networking.services",
			"unsupported spec.runtimeCluster.ingress.controller.kind",
		}},
		"DNS providers, extensions, resources": {change: func(g *garden) {
			g.Spec.DNS.Providers = append(g.Spec.DNS.Providers, g.Spec.DNS.Providers[0], operatorv1alpha1.DNSProvider{})
			g.Spec.Extensions = []operatorv1alpha1.GardenExtension{{Type: "a"}, {Type: "a"}}
			g.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "a", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Pod"}}}
		}, want: []string{
			"duplicate spec.dns.providers[1].name", "duplicate spec.extensions[1].type", "required spec.dns.providers[2].name", "required spec.dns.providers[2].secretRef.name",
			"required spec.dns.providers[2].type", "required spec.resources[0].resourceRef.name", "unsupported spec.resources[0].resourceRef",
		}},
		"domains": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "a.example.com"}, {Name: "a.example.com", Provider: new("nobody")}, {Name: "A!"}}
		}, want: []string{"duplicate spec.runtimeCluster.ingress.domains[1].name", "invalid spec.runtimeCluster.ingress.domains[1].provider", "invalid spec.runtimeCluster.ingress.domains[2].name"}},
		"domains that differ in a dot and a hyphen": {change: func(g *garden) {
			g.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "a.b-c.example.com"}, {Name: "a-b.c.example.com"}}
			g.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "a.b-c.example.com"}, {Name: "a-b.c.example.com"}}
		}, want: []string{"invalid spec.runtimeCluster.ingress.domains[1].name", "invalid spec.virtualCluster.dns.domains[1].name"}},
		"domains that differ in a dot and a hyphen, with DNS providers of other types": {change: func(g *garden) {
			g.Spec.DNS.Providers = append(g.Spec.DNS.Providers, operatorv1alpha1.DNSProvider{Name: "other", Type: "other", SecretRef: g.Spec.DNS.Providers[0].SecretRef})
			g.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "a.b-c.example.com"}, {Name: "a-b.c.example.com", Provider: new("other")}}
		}},
		"domains that differ in a dot and a hyphen, without DNS providers": {change: func(g *garden) {
			g.Spec.DNS = nil
			g.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "a.b-c.example.com"}, {Name: "a-b.c.example.com"}}
			g.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "ingress.example.com"}}
		}},
		"the name of gardener-discovery-server is one of the kube-apiserver": {change: func(g *garden) {
			g.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{
				Domain: &operatorv1alpha1.DNSDomain{Name: "api." + g.Spec.VirtualCluster.DNS.Domains[0].Name},
			}
		}, want: []string{"invalid spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name"}},
		"runtime networks": {change: func(g *garden) {
			n := &g.Spec.RuntimeCluster.Networking
			n.Pods, n.Services, n.BlockCIDRs, n.IPFamilies = []string{"10.1.0.0/16", "x"}, []string{"10.1.2.0/24"}, []string{"y"}, []corev1beta1.IPFamily{"IPv4", "IPv4", "IPv5"}
		}, want: []string{
			"duplicate spec.runtimeCluster.networking.ipFamilies[1]", "invalid spec.runtimeCluster.networking.blockCIDRs[0]", "invalid spec.runtimeCluster.networking.pods[1]",
			"invalid spec.runtimeCluster.networking.services[0]", "unsupported spec.runtimeCluster.networking.ipFamilies[2]",
		}},
		"runtime settings": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Provider.Zones = []string{"a", "a", ""}
			g.Spec.RuntimeCluster.Volume = &operatorv1alpha1.Volume{MinimumSize: new(resource.MustParse("0"))}
			g.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{
				TopologyAwareRouting:  &operatorv1alpha1.SettingTopologyAwareRouting{Enabled: true},
				LoadBalancerServices:  &operatorv1alpha1.SettingLoadBalancerServices{ExternalTrafficPolicy: new(corev1.ServiceExternalTrafficPolicy("Far"))},
				VerticalPodAutoscaler: &operatorv1alpha1.SettingVerticalPodAutoscaler{MaxAllowed: corev1.ResourceList{"cpu": resource.MustParse("-1")}},
			}
		}, want: []string{
			"duplicate spec.runtimeCluster.provider.zones[1]", "forbidden spec.runtimeCluster.settings.topologyAwareRouting.enabled",
			"invalid spec.runtimeCluster.settings.verticalPodAutoscaler.maxAllowed[cpu]", "invalid spec.runtimeCluster.volume.minimumSize",
			"required spec.runtimeCluster.provider.zones[2]", "unsupported spec.runtimeCluster.settings.loadBalancerServices.externalTrafficPolicy",
		}},
		"etcd": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Provider.Region = nil
			e := g.Spec.VirtualCluster.ETCD
			e.Main.Backup = &operatorv1alpha1.Backup{}
			e.Main.Storage.ClassName, e.Events.Storage.Capacity = new(""), new(resource.MustParse("-1"))
			e.Main.Autoscaling = &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{"gpu": resource.MustParse("1")}}
		}, want: []string{
			"invalid spec.virtualCluster.etcd.events.storage.capacity", "required spec.virtualCluster.etcd.main.backup.provider", "required spec.virtualCluster.etcd.main.backup.region",
			"required spec.virtualCluster.etcd.main.backup.secretRef.name", "required spec.virtualCluster.etcd.main.storage.className",
			"unsupported spec.virtualCluster.etcd.main.autoscaling.minAllowed[gpu]",
		}},
		"an existing bucket": {change: func(g *garden) {
			g.Spec.VirtualCluster.ETCD.Main.Backup.BucketName = new("b")
			g.Spec.VirtualCluster.ETCD.Main.Backup.ProviderConfig = &runtime.RawExtension{}
		}, want: []string{"forbidden spec.virtualCluster.etcd.main.backup.providerConfig"}},
		"kube-apiserver": {change: func(g *garden) {
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{
				KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"configmaps", "secrets", "shoots.core.gardener.cloud", "*.apps", "configmaps", "events"}}},
				AuditWebhook:        &operatorv1alpha1.AuditWebhook{BatchMaxSize: new(int32(0))},
				Authentication:      &operatorv1alpha1.Authentication{Webhook: &operatorv1alpha1.AuthenticationWebhook{CacheTTL: &metav1.Duration{Duration: -1}}},
				ResourcesToStoreInETCDEvents: []operatorv1alpha1.GroupResource{
					{Resource: "events"}, {Resource: "secrets"}, {Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "deployments"}, {},
				},
				SNI: &operatorv1alpha1.SNI{SecretName: new(""), DomainPatterns: []string{"*.example.com", "a b"}},
			}
			g.Spec.VirtualCluster.Kubernetes.KubeControllerManager = &operatorv1alpha1.KubeControllerManagerConfig{CertificateSigningDuration: &metav1.Duration{}}
		}, want: []string{
			"duplicate spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.resources[4]", "duplicate spec.virtualCluster.kubernetes.kubeAPIServer.resourcesToStoreInETCDEvents[3]",
			"forbidden spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.resources[1]", "forbidden spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.resources[5]",
			"forbidden spec.virtualCluster.kubernetes.kubeAPIServer.resourcesToStoreInETCDEvents[0]", "forbidden spec.virtualCluster.kubernetes.kubeAPIServer.resourcesToStoreInETCDEvents[1]",
			"invalid spec.virtualCluster.kubernetes.kubeAPIServer.auditWebhook.batchMaxSize", "invalid spec.virtualCluster.kubernetes.kubeAPIServer.authentication.webhook.cacheTTL",
			"invalid spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.resources[2]", "invalid spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.resources[3]",
			"invalid spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[1]", "invalid spec.virtualCluster.kubernetes.kubeControllerManager.certificateSigningDuration",
			"required spec.virtualCluster.kubernetes.kubeAPIServer.auditWebhook.kubeconfigSecretName", "required spec.virtualCluster.kubernetes.kubeAPIServer.authentication.webhook.kubeconfigSecretName",
			"required spec.virtualCluster.kubernetes.kubeAPIServer.resourcesToStoreInETCDEvents[4].resource", "required spec.virtualCluster.kubernetes.kubeAPIServer.sni.secretName",
		}},
		"gardener": {change: func(g *garden) {
			g.Spec.VirtualCluster.Gardener = operatorv1alpha1.Gardener{
				ClusterIdentity: "x",
				GardenerAPIServer: &operatorv1alpha1.GardenerAPIServerConfig{
					EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud", "internalsecrets.core.gardener.cloud", "configmaps"}},
					AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "a"}, {Name: "a"}},
					GoAwayChance:     new(0.5), ShootAdminKubeconfigMaxExpiration: &metav1.Duration{Duration: time.Minute},
					Requests: &corev1beta1.APIServerRequests{MaxMutatingInflight: new(int32(-1))},
				},
				GardenerAdmissionController: &operatorv1alpha1.GardenerAdmissionControllerConfig{ResourceAdmissionConfiguration: &operatorv1alpha1.ResourceAdmissionConfiguration{
					Limits: []operatorv1alpha1.ResourceLimit{{}, {APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Count: new(int64(-1))}},
				}},
				GardenerControllerManager: &operatorv1alpha1.GardenerControllerManagerConfig{
					DefaultProjectQuotas: []operatorv1alpha1.ProjectQuotaConfiguration{{}}, PlantAllowCIDRs: []string{"10.0.0.0/8", "10.0.0.1"},
				},
				GardenerDashboard: &operatorv1alpha1.GardenerDashboardConfig{
					EnableTokenLogin: new(false), Domain: &operatorv1alpha1.DNSDomain{Name: "d.example.com", Provider: new("nobody")},
					GitHub: &operatorv1alpha1.DashboardGitHub{}, Terminal: &operatorv1alpha1.DashboardTerminal{},
				},
				GardenerDiscoveryServer: &operatorv1alpha1.GardenerDiscoveryServerConfig{Domain: &operatorv1alpha1.DNSDomain{Name: ""}},
				GardenerResourceManager: &operatorv1alpha1.GardenerResourceManagerConfig{AdditionalTargetNamespaces: []string{"a", "a", "B"}},
			}
		}, want: []string{
			"duplicate spec.virtualCluster.gardener.gardenerAPIServer.admissionPlugins[1].name", "duplicate spec.virtualCluster.gardener.gardenerResourceManager.additionalTargetNamespaces[1]",
			"forbidden spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig.resources[1]", "invalid spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig.resources[2]",
			"invalid spec.virtualCluster.gardener.gardenerAPIServer.goAwayChance", "invalid spec.virtualCluster.gardener.gardenerAPIServer.requests.maxMutatingInflight",
			"invalid spec.virtualCluster.gardener.gardenerAPIServer.shootAdminKubeconfigMaxExpiration",
			"invalid spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration.limits[1].count",
			"invalid spec.virtualCluster.gardener.gardenerControllerManager.plantAllowCIDRs[1]", "invalid spec.virtualCluster.gardener.gardenerDashboard.domain.provider",
			"invalid spec.virtualCluster.gardener.gardenerDashboard.enableTokenLogin", "invalid spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name",
			"invalid spec.virtualCluster.gardener.gardenerResourceManager.additionalTargetNamespaces[2]",
			"required spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration.limits[0]",
			"required spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration.limits[0].apiGroups",
			"required spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration.limits[0].apiVersions",
			"required spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration.limits[0].resources",
			"required spec.virtualCluster.gardener.gardenerControllerManager.defaultProjectQuotas[0].config.spec.hard",
			"required spec.virtualCluster.gardener.gardenerDashboard.gitHub.secretRef.name", "required spec.virtualCluster.gardener.gardenerDashboard.terminal.container.image",
		}},
		"sni without a pattern": {change: func(g *garden) {
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{SNI: &operatorv1alpha1.SNI{SecretName: new("tls")}}
		}, want: []string{"required spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns"}},
		"sni with names that gardenlets use, or that no client sends": {change: func(g *garden) {
			g.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}, {Name: "second.example.com"}}
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{SNI: &operatorv1alpha1.SNI{DomainPatterns: []string{
				"api.garden.example.com", "*.garden.example.com", "*", "*.*.example.com", "Api.example.com", "192.0.2.1", "a.example.com", "a.example.com",
			}}}
		}, want: []string{
			"duplicate spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[7]", "forbidden spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[0]",
			"forbidden spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[1]", "invalid spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[2]",
			"invalid spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[3]", "invalid spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[4]",
			"invalid spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns[5]",
		}},
		"sni with names of other domains": {change: func(g *garden) {
			g.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}, {Name: "second.example.com"}}
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{SNI: &operatorv1alpha1.SNI{DomainPatterns: []string{
				"*.second.example.com", "gardener.garden.example.com", "*.api.garden.example.com", "*.example.com",
			}}}
		}},
		"more names than a route can have": {change: func(g *garden) {
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{SNI: &operatorv1alpha1.SNI{}}
			for i := range 15 {
				sni := g.Spec.VirtualCluster.Kubernetes.KubeAPIServer.SNI
				sni.DomainPatterns = append(sni.DomainPatterns, fmt.Sprintf("a%d.example.com", i))
			}
		}, want: []string{"toomany spec.virtualCluster.kubernetes.kubeAPIServer.sni.domainPatterns"}},
		"more domains than a route can have": {change: func(g *garden) {
			for i := range 8 {
				g.Spec.VirtualCluster.DNS.Domains = append(g.Spec.VirtualCluster.DNS.Domains, operatorv1alpha1.DNSDomain{Name: fmt.Sprintf("a%d.example.com", i)})
			}
		}, want: []string{"toomany spec.virtualCluster.dns.domains"}},
		"OIDC of the dashboard without structured authentication": {change: oidc, want: []string{"invalid spec.virtualCluster.gardener.gardenerDashboard.oidcConfig"}},
		"OIDC of the dashboard": {change: func(g *garden) {
			oidc(g)
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{
				StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
			}}
		}},
		"a time window of one minute":  {change: window("220000+0100", "220100+0100"), want: []string{"invalid spec.virtualCluster.maintenance.timeWindow"}},
		"a time window of seven hours": {change: window("220000+0100", "050000+0100"), want: []string{"invalid spec.virtualCluster.maintenance.timeWindow"}},
		"a time window over midnight":  {change: window("233000+0000", "003000+0000")},
		"a time window in two zones":   {change: window("220000+0100", "220000+0000")},
		"services of three families": {change: func(g *garden) {
			g.Spec.VirtualCluster.Networking.Services = []string{"100.64.0.0/16", "100.65.0.0/16"}
		}, want: []string{"invalid spec.virtualCluster.networking.services"}},
		"a service network that the runtime cluster has, too": {change: func(g *garden) { g.Spec.VirtualCluster.Networking.Services = g.Spec.RuntimeCluster.Networking.Services }, want: []string{"invalid spec.virtualCluster.networking.services[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, results(operator.ValidateGarden(validGarden(t, tc.change)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func oidc(g *garden) {
	g.Spec.VirtualCluster.Gardener.GardenerDashboard.OIDCConfig = &operatorv1alpha1.DashboardOIDC{SecretRef: corev1.LocalObjectReference{Name: "oidc"}}
}

func window(begin, end string) func(*garden) {
	return func(g *garden) {
		g.Spec.VirtualCluster.Maintenance.TimeWindow = corev1beta1.MaintenanceTimeWindow{Begin: begin, End: end}
	}
}

// update validates a change of a Garden whose version of Kubernetes has run.
func update(g, old *garden) field.ErrorList {
	return operator.ValidateGardenUpdate(g, old, old.Spec.VirtualCluster.Kubernetes.Version)
}

func TestGardenUpdate(t *testing.T) {
	onVirtual := func(change func(*virtual)) func(*garden) {
		return func(g *garden) { change(&g.Spec.VirtualCluster) }
	}
	for name, tc := range map[string]struct {
		before, change func(*garden)
		want           []string
	}{
		"no change": {change: func(*garden) {}},
		"immutable fields": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Networking.IPFamilies = nil
			g.Spec.VirtualCluster.DNS.Domains[0].Name = "other.example.com"
			g.Spec.VirtualCluster.Gardener.ClusterIdentity = "other"
			g.Spec.VirtualCluster.ETCD.Main.Backup.Region = new("there")
		}, want: []string{
			"invalid spec.runtimeCluster.networking.ipFamilies", "invalid spec.virtualCluster.dns.domains[0].name", "invalid spec.virtualCluster.etcd.main.backup.region",
			"invalid spec.virtualCluster.gardener.clusterIdentity",
		}},
		"a second network of each kind in the runtime cluster": {change: func(g *garden) {
			n := &g.Spec.RuntimeCluster.Networking
			n.Nodes, n.Pods, n.Services = append(n.Nodes, "172.19.0.0/24"), append(n.Pods, "10.3.0.0/16"), append(n.Services, "10.4.0.0/16")
		}},
		"other networks in the runtime cluster": {change: func(g *garden) {
			n := &g.Spec.RuntimeCluster.Networking
			n.Nodes, n.Pods, n.Services = nil, []string{"10.3.0.0/16", "10.1.0.0/16"}, []string{"10.4.0.0/16"}
		}, want: []string{
			"forbidden spec.runtimeCluster.networking.nodes", "forbidden spec.runtimeCluster.networking.pods", "forbidden spec.runtimeCluster.networking.services",
		}},
		"a second ingress domain": {change: func(g *garden) {
			g.Spec.RuntimeCluster.Ingress.Domains = append(g.Spec.RuntimeCluster.Ingress.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com"})
		}},
		"a second domain, and another provider of the first": {change: onVirtual(func(v *virtual) {
			v.DNS.Domains[0].Provider = nil
			v.DNS.Domains = append(v.DNS.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com"})
		})},
		"a second domain is removed": {before: onVirtual(func(v *virtual) {
			v.DNS.Domains = append(v.DNS.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com"})
		}), change: onVirtual(func(v *virtual) { v.DNS.Domains = v.DNS.Domains[:1] })},
		"the second domain becomes the first": {before: onVirtual(func(v *virtual) {
			v.DNS.Domains = append(v.DNS.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com"})
		}), change: onVirtual(func(v *virtual) { v.DNS.Domains = v.DNS.Domains[1:] }), want: []string{"invalid spec.virtualCluster.dns.domains[0].name"}},
		"another provider of the first ingress domain": {change: func(g *garden) { g.Spec.RuntimeCluster.Ingress.Domains[0].Provider = nil }},
		"another first ingress domain": {
			change: func(g *garden) { g.Spec.RuntimeCluster.Ingress.Domains[0].Name = "other.example.com" },
			want:   []string{"invalid spec.runtimeCluster.ingress.domains[0].name"},
		},
		"gardener-discovery-server is added": {change: discovery(new("d.example.com"))},
		"gardener-discovery-server is removed": {
			before: discovery(nil), change: onVirtual(func(v *virtual) { v.Gardener.GardenerDiscoveryServer = nil }),
			want: []string{"forbidden spec.virtualCluster.gardener.gardenerDiscoveryServer"},
		},
		"another domain of gardener-discovery-server": {
			before: discovery(new("d.example.com")), change: discovery(new("e.example.com")),
			want: []string{"invalid spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name"},
		},
		"the default domain of gardener-discovery-server is replaced": {
			before: discovery(nil), change: discovery(new("d.example.com")), want: []string{"invalid spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name"},
		},
		"the default domain of gardener-discovery-server is spelt out": {before: discovery(nil), change: discovery(new("discovery.ingress.example.com"))},
		"backups are removed": {
			change: onVirtual(func(v *virtual) { v.ETCD.Main.Backup = nil }), want: []string{"forbidden spec.virtualCluster.etcd.main.backup"},
		},
		"backups are added": {before: onVirtual(func(v *virtual) { v.ETCD.Main.Backup = nil }), change: onVirtual(func(v *virtual) {
			v.ETCD.Main.Backup = &operatorv1alpha1.Backup{Provider: "local", SecretRef: corev1.LocalObjectReference{Name: "backup"}}
		})},
		"high availability is disabled": {
			before: onVirtual(func(v *virtual) {
				v.ControlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
			}),
			change: onVirtual(func(v *virtual) { v.ControlPlane = nil }), want: []string{"forbidden spec.virtualCluster.controlPlane.highAvailability"},
		},
		"a patch version":          {change: onVirtual(func(v *virtual) { v.Kubernetes.Version = "1.33.1" })},
		"the next minor":           {change: onVirtual(func(v *virtual) { v.Kubernetes.Version = "1.34.0" })},
		"the minor after that":     {change: onVirtual(func(v *virtual) { v.Kubernetes.Version = "1.35.0" }), want: []string{"forbidden spec.virtualCluster.kubernetes.version"}},
		"an older version":         {change: onVirtual(func(v *virtual) { v.Kubernetes.Version = "1.32.9" }), want: []string{"forbidden spec.virtualCluster.kubernetes.version"}},
		"a second service network": {change: onVirtual(func(v *virtual) { v.Networking.Services = append(v.Networking.Services, "2001:db8::/108") })},
		"another service network":  {change: onVirtual(func(v *virtual) { v.Networking.Services = []string{"100.72.0.0/13"} }), want: []string{"forbidden spec.virtualCluster.networking.services"}},
		"encryption during a rotation": {
			before: phase(corev1beta1.RotationPrepared), change: onVirtual(func(v *virtual) {
				v.Gardener.GardenerAPIServer.EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
			}), want: []string{"forbidden spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig"},
		},
		"encryption after a rotation": {
			before: phase(corev1beta1.RotationCompleted), change: onVirtual(func(v *virtual) {
				v.Gardener.GardenerAPIServer.EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
			}),
		},
		"the provider of gardener-apiserver, which is that of kube-apiserver, is spelt out": {
			before: onVirtual(func(v *virtual) {
				v.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{EncryptionConfig: provider("secretbox")}}
				v.Gardener.GardenerAPIServer.EncryptionConfig = nil
			}),
			change: onVirtual(func(v *virtual) { v.Gardener.GardenerAPIServer.EncryptionConfig = provider("secretbox") }),
		},
		"encryption after the last change": {before: encryptedAtRest("shoots.core.gardener.cloud"), change: onVirtual(func(v *virtual) {
			v.Gardener.GardenerAPIServer.EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"projects.core.gardener.cloud", "shoots.core.gardener.cloud"}}
		})},
		"encryption before the last change is finished": {before: encryptedAtRest(), change: onVirtual(func(v *virtual) {
			v.Gardener.GardenerAPIServer.EncryptionConfig = nil
		}), want: []string{"forbidden spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig.resources"}},
		"encryption of kube-apiserver before the last change of gardener-apiserver is finished": {before: encryptedAtRest(), change: onVirtual(func(v *virtual) {
			v.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{
				EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"configmaps"}},
			}}
		}), want: []string{"forbidden spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.resources"}},
		"encryption during the first reconciliation": {
			before: func(g *garden) { g.Status.LastOperation = &corev1beta1.LastOperation{} }, change: onVirtual(func(v *virtual) {
				v.Gardener.GardenerAPIServer.EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
			}), want: []string{"forbidden spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig.resources"},
		},
		"encryption before a rotation that was requested": {before: withOperation("reconcile;rotate-etcd-encryption-key"), change: onVirtual(func(v *virtual) {
			v.Gardener.GardenerAPIServer.EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
		}), want: []string{"forbidden spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig"}},
		"rotation of the encryption key before a change of encryption is finished": {
			before: encryptedAtRest(), change: withOperation("rotate-etcd-encryption-key"), want: []string{"forbidden metadata.annotations[gardener.cloud/operation]"},
		},
		"rotation of credentials before a change of encryption is finished": {
			before: encryptedAtRest(), change: withOperation("rotate-credentials-start"), want: []string{"forbidden metadata.annotations[gardener.cloud/operation]"},
		},
		"rotation of the CAs before a change of encryption is finished": {before: encryptedAtRest(), change: withOperation("rotate-ca-start")},
		"rotation of the encryption key after a change of encryption":   {before: encryptedAtRest("shoots.core.gardener.cloud"), change: withOperation("rotate-etcd-encryption-key")},
		"start while in progress":                                       {before: phase(corev1beta1.RotationPreparing), change: withOperation("rotate-etcd-encryption-key-start"), want: []string{"forbidden metadata.annotations[gardener.cloud/operation]"}},
		"start after completion":                                        {before: phase(corev1beta1.RotationCompleted), change: withOperation("rotate-etcd-encryption-key-start;reconcile")},
		"complete after preparation":                                    {before: phase(corev1beta1.RotationPrepared), change: withOperation("rotate-etcd-encryption-key-complete")},
		"complete without start":                                        {change: withOperation("rotate-ca-complete"), want: []string{"forbidden metadata.annotations[gardener.cloud/operation]"}},
		"an unknown operation":                                          {change: withOperation("dance"), want: []string{"unsupported metadata.annotations[gardener.cloud/operation]"}},
		"the same credentials twice":                                    {change: withOperation("rotate-ca-start;rotate-credentials-start"), want: []string{"invalid metadata.annotations[gardener.cloud/operation]"}},
		"a finalizer of one that is not valid any more": {
			before: func(g *garden) { g.Spec.RuntimeCluster.Ingress.Controller.Kind = "former" },
			change: func(g *garden) { g.Finalizers = append(g.Finalizers, "example.com/a") },
		},
		"another service network that the runtime cluster has, too": {
			change: func(g *garden) {
				g.Spec.VirtualCluster.Networking.Services = append(g.Spec.VirtualCluster.Networking.Services, g.Spec.RuntimeCluster.Networking.Services...)
			},
			want: []string{"invalid spec.virtualCluster.networking.services", "invalid spec.virtualCluster.networking.services[1]"},
		},
		"a change of one with such a network": {
			before: func(g *garden) { g.Spec.VirtualCluster.Networking.Services = g.Spec.RuntimeCluster.Networking.Services },
			change: func(g *garden) { g.Spec.RuntimeCluster.Networking.BlockCIDRs = []string{"192.0.2.0/24"} },
		},
		"an operation in progress that the old object has": {
			before: func(g *garden) {
				withOperation("rotate-etcd-encryption-key-start")(g)
				phase(corev1beta1.RotationPreparing)(g)
			}, change: func(*garden) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.before
			if before == nil {
				before = func(*garden) {}
			}
			if diff := cmp.Diff(tc.want, results(update(validGarden(t, before, tc.change), validGarden(t, before)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func phase(phase corev1beta1.CredentialsRotationPhase) func(*garden) {
	return func(g *garden) {
		g.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{
			ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
		}}
	}
}

func provider(name corev1beta1.EncryptionProviderType) *corev1beta1.EncryptionConfig {
	return &corev1beta1.EncryptionConfig{Provider: corev1beta1.EncryptionProvider{Type: &name}}
}

// encryptedAtRest is a Garden that is to encrypt Shoots and has encrypted some resources at the end of the last reconciliation.
func encryptedAtRest(resources ...string) func(*garden) {
	return func(g *garden) {
		g.Spec.VirtualCluster.Gardener.GardenerAPIServer.EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
		g.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{Resources: resources}}
	}
}

// discovery adds gardener-discovery-server, with a domain of its own or the default.
func discovery(domain *string) func(*garden) {
	return func(g *garden) {
		config := &operatorv1alpha1.GardenerDiscoveryServerConfig{}
		if domain != nil {
			config.Domain = &operatorv1alpha1.DNSDomain{Name: *domain}
		}
		g.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = config
	}
}

func withOperation(operation string) func(*garden) {
	return func(g *garden) { g.Annotations = map[string]string{"gardener.cloud/operation": operation} }
}

func TestExtension(t *testing.T) {
	extension := func(changes ...func(*operatorv1alpha1.ExtensionSpec)) *operatorv1alpha1.Extension {
		out := &operatorv1alpha1.Extension{
			ObjectMeta: metav1.ObjectMeta{Name: "provider-local", ResourceVersion: "1"},
			Spec: operatorv1alpha1.ExtensionSpec{
				Resources: []corev1beta1.ControllerResource{{Kind: "Worker", Type: "local"}},
				Deployment: &operatorv1alpha1.Deployment{Extension: &operatorv1alpha1.ExtensionDeploymentSpec{
					DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{Ref: new("registry/chart:1")}}},
					Values:         &apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)},
				}},
			},
		}
		for _, change := range changes {
			change(&out.Spec)
		}
		return out
	}
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.ExtensionSpec)
		want   []string
	}{
		"no change":            {change: func(*operatorv1alpha1.ExtensionSpec) {}},
		"primary is spelt out": {change: func(s *operatorv1alpha1.ExtensionSpec) { s.Resources[0].Primary = new(true) }},
		"no longer primary":    {change: func(s *operatorv1alpha1.ExtensionSpec) { s.Resources[0].Primary = new(false) }, want: []string{"invalid spec.resources[0].primary"}},
		"resources": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Resources = append(s.Resources, s.Resources[0], corev1beta1.ControllerResource{})
		}, want: []string{"duplicate spec.resources[1]", "required spec.resources[2].kind", "required spec.resources[2].type", "unsupported spec.resources[2].kind"}},
		"no chart":                 {change: func(s *operatorv1alpha1.ExtensionSpec) { s.Deployment.Extension.Helm.OCIRepository = nil }, want: []string{"required spec.deployment.extension.helm.ociRepository"}},
		"a reference and parts":    {change: func(s *operatorv1alpha1.ExtensionSpec) { s.Deployment.Extension.Helm.OCIRepository.Tag = new("1") }, want: []string{"forbidden spec.deployment.extension.helm.ociRepository.tag"}},
		"a chart without anything": {change: func(s *operatorv1alpha1.ExtensionSpec) { s.Deployment.Extension.Helm.OCIRepository.Ref = nil }, want: []string{"required spec.deployment.extension.helm.ociRepository"}},
		"values and policy": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.Values.Raw = []byte(`[1]`)
			s.Deployment.Extension.Policy = new(corev1beta1.ControllerDeploymentPolicy("Never"))
		}, want: []string{"invalid spec.deployment.extension.values", "unsupported spec.deployment.extension.policy"}},
		"admission": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Admission = &operatorv1alpha1.AdmissionDeploymentSpec{
				RuntimeCluster: &operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{}}, Values: &apiextensionsv1.JSON{Raw: []byte(`"x"`)},
			}
			s.Deployment.Resources = []gardencorev1.NamedResourceReference{{}}
		}, want: []string{
			"invalid spec.deployment.admission.values", "invalid spec.deployment.resources[0].name", "required spec.deployment.admission.runtimeCluster.helm.ociRepository",
			"required spec.deployment.resources[0].name", "required spec.deployment.resources[0].resourceRef.apiVersion", "required spec.deployment.resources[0].resourceRef.kind",
			"required spec.deployment.resources[0].resourceRef.name", "unsupported spec.deployment.resources[0].resourceRef",
		}},
		"placeholders for what is no resource": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.Values.Raw = []byte(`{"a":["{{ .resources.b.data.c }}"]}`)
			s.Deployment.Extension.RuntimeClusterValues = &apiextensionsv1.JSON{Raw: []byte(`{"a":"{{ .Values }}"}`)}
			s.Deployment.Admission = &operatorv1alpha1.AdmissionDeploymentSpec{Values: &apiextensionsv1.JSON{Raw: []byte(`{"a":"}}"}`)}}
		}, want: []string{
			"invalid spec.deployment.admission.values", "invalid spec.deployment.extension.runtimeClusterValues", "invalid spec.deployment.extension.values",
		}},
		"a resource that no placeholder can name": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Resources = []gardencorev1.NamedResourceReference{{
				Name: "a-b", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"},
			}}
		}, want: []string{"invalid spec.deployment.resources[0].name"}},
		"seeds are selected": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.SeedSelector = &metav1.LabelSelector{}
		}, want: []string{"forbidden spec.deployment.extension.seedSelector"}},
		"seeds are selected, and only the garden has a primary resource": {change: func(s *operatorv1alpha1.ExtensionSpec) {
			s.Resources = []corev1beta1.ControllerResource{{Kind: "Extension", Type: "local", ClusterCompatibility: []corev1beta1.ClusterType{corev1beta1.ClusterTypeGarden}}}
			s.Deployment.Extension.SeedSelector = &metav1.LabelSelector{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, results(operator.ValidateExtensionUpdate(extension(tc.change), extension()))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, want := range map[string][]string{
		strings.Repeat("a", 45): nil, strings.Repeat("a", 46): {"toolong metadata.name"}, "a.b": {"invalid metadata.name"},
	} {
		e := extension()
		e.Name = name
		if diff := cmp.Diff(want, results(operator.ValidateExtension(e))); diff != "" {
			t.Errorf("name %q (-want +got):\n%s", name, diff)
		}
	}
}
