package core_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
)

var options = core.Options{CloudProfileCapabilities: true}

// shoot is a valid Shoot after defaulting.
func shoot() *v1beta1.Shoot {
	s := &v1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "crazy-botany", Namespace: "garden-dev", ResourceVersion: "1"},
		Spec: v1beta1.ShootSpec{
			CloudProfile:           &v1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			CredentialsBindingName: new("local"),
			Region:                 "local",
			Kubernetes:             v1beta1.Kubernetes{Version: "1.35.4"},
			Networking:             &v1beta1.Networking{Type: new("calico"), Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16"), Nodes: new("10.0.0.0/16")},
			Provider: v1beta1.Provider{Type: "local", Workers: []v1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 3,
				Machine: v1beta1.Machine{Type: "local", Image: &v1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}},
			}}},
		},
	}
	v1beta1.DefaultShoot(s)
	return s
}

// seed is a valid Seed after defaulting.
func seed() *v1beta1.Seed {
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	s := &v1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "local", ResourceVersion: "1"},
		Spec: v1beta1.SeedSpec{
			Provider: v1beta1.SeedProvider{Type: "local", Region: "local", Zones: []string{"a", "b"}},
			Networks: v1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: new("172.18.0.0/16")},
			Ingress:  &v1beta1.Ingress{Domain: "ingress.local.example.com", Controller: v1beta1.IngressController{Kind: "nginx"}},
			DNS: v1beta1.SeedDNS{
				Provider: &v1beta1.SeedDNSProvider{Type: "local", CredentialsRef: &credentials},
				Internal: &v1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.example.com", CredentialsRef: credentials},
			},
		},
	}
	v1beta1.DefaultSeed(s)
	return s
}

// cloudProfile is a valid CloudProfile after defaulting.
func cloudProfile() *v1beta1.CloudProfile {
	p := &v1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "local", ResourceVersion: "1"},
		Spec: v1beta1.CloudProfileSpec{
			Type:          "local",
			Kubernetes:    v1beta1.KubernetesSettings{Versions: []v1beta1.ExpirableVersion{{Version: "1.36.1"}, {Version: "1.35.4"}}},
			MachineImages: []v1beta1.MachineImage{{Name: "local", Versions: []v1beta1.MachineImageVersion{{ExpirableVersion: v1beta1.ExpirableVersion{Version: "1.0.0"}}}}},
			MachineTypes:  []v1beta1.MachineType{{Name: "local", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi")}},
			Regions:       []v1beta1.Region{{Name: "local", Zones: []v1beta1.AvailabilityZone{{Name: "a"}}}},
		},
	}
	v1beta1.DefaultCloudProfile(p)
	return p
}
