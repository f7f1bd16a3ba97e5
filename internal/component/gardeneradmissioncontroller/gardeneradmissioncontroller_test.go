package gardeneradmissioncontroller

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	for file, v := range map[string]Values{
		"default.yaml": {Replicas: 1},
		"full.yaml": {
			Replicas: 2, ClientCA: "ca-client", Autoscaled: true,
			Config: admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration{Server: admissioncontrollerconfigv1alpha1.ServerConfiguration{
				EnableDebugHandlers: new(true),
			}},
		},
	} {
		t.Run(file, func(t *testing.T) {
			v.Namespace, v.Image, v.Certificate = "garden", "registry.example/gardener:v1", "certificate"
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, file, objects)
		})
	}
}

func TestVirtual(t *testing.T) {
	v := Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Certificate: "certificate", Replicas: 2, ClientCA: "ca-client", Autoscaled: true,
		CABundle: []byte("ca"),
		Config: Configuration(&operatorv1alpha1.GardenerAdmissionControllerConfig{
			LogLevel: new("debug"),
			ResourceAdmissionConfiguration: &operatorv1alpha1.ResourceAdmissionConfiguration{
				Limits: []operatorv1alpha1.ResourceLimit{{
					APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"*"}, Resources: []string{"shoots"}, Size: new(resource.MustParse("100k")), Count: new(int64(7)),
				}},
				UnrestrictedSubjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "admin"}},
				OperationMode:        new(operatorv1alpha1.AdmissionModeLog),
			},
		}),
		Virtual: &gardenerprocess.Virtual{GenericKubeconfig: "generic-token-kubeconfig", TrafficDistribution: new("PreferSameZone")},
	}
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "virtual.yaml", objects)
	golden.Objects(t, "virtual-target.yaml", TargetObjects(v))
}

func TestWebhooks(t *testing.T) {
	golden.Objects(t, "webhooks.yaml", Webhooks(Endpoint{Namespace: "garden", CABundle: []byte("ca")}, nil))
	golden.Objects(t, "webhooks-url.yaml", Webhooks(Endpoint{URL: "https://gardener-admission-controller.garden", CABundle: []byte("ca")},
		&admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{Limits: []admissioncontrollerconfigv1alpha1.ResourceLimit{{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}, Size: new(resource.MustParse("1Mi")),
		}}},
	))
}

func TestConfiguration(t *testing.T) {
	for file, a := range map[string]Authorization{
		"authorization.yaml": {SeedsKubeconfig: "/etc/authorization/seeds.yaml", ShootsKubeconfig: "/etc/authorization/shoots.yaml"},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := a.Configuration()
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, file, string(got))
		})
	}
}
