// Package builder has objects for tests that are valid as they are and fit together: a Shoot that may be scheduled to the Seed with machines of
// the CloudProfile. A test changes only what matters to it.
package builder

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

const (
	// Namespace is that of Shoots, of a project "dev".
	Namespace = "garden-dev"
	// Local is the name of the CloudProfile that Shoots refer to and of their credentials, and the type of all extensions and the region.
	Local = "local"
	// Version is the version of Kubernetes of Shoots. The CloudProfile has NewerVersion too.
	Version, NewerVersion = "1.35.4", "1.36.1"
)

// Shoot returns a Shoot without workers and without a Seed, before defaulting. Changes are applied in their order.
func Shoot(name string, changes ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	return changed(&corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: Local},
			Region:       Local,
			Kubernetes:   corev1beta1.Kubernetes{Version: Version},
			Provider:     corev1beta1.Provider{Type: Local},
		},
	}, changes)
}

// Workers gives a Shoot n worker pools of one to three machines, named a, b and so on, and the networks and credentials that they need.
func Workers(n int) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Spec.CredentialsBindingName = new(Local)
		s.Spec.Networking = &corev1beta1.Networking{Type: new(Local), Nodes: new("10.0.0.0/16"), Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")}
		for i := range n {
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, corev1beta1.Worker{
				Name: fmt.Sprintf("%c", 'a'+i), Minimum: 1, Maximum: 3, MaxSurge: new(intstr.FromInt32(1)),
				Machine: corev1beta1.Machine{Type: Local, Image: &corev1beta1.ShootMachineImage{Name: Local, Version: new("1.0.0")}},
			})
		}
	}
}

// In puts a Shoot in the namespace of another project.
func In(namespace string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) { s.Namespace = namespace }
}

// On schedules a Shoot to a Seed.
func On(seed string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) { s.Spec.SeedName = &seed }
}

// Confirmed allows the deletion of a Shoot.
func Confirmed(s *corev1beta1.Shoot) {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, constants.ConfirmationDeletion, "true")
}

// Window gives a Shoot a maintenance time window from one to two at night, in UTC. Without it, defaulting chooses one by chance.
func Window(s *corev1beta1.Shoot) {
	s.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "010000+0000", End: "020000+0000"}}
}

// Seed returns a Seed before defaulting. Its credentials for DNS are the Secret garden/dns.
func Seed(name string, changes ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	return changed(&corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: Local, Region: Local, Zones: []string{"a", "b"}},
			Networks: corev1beta1.SeedNetworks{Nodes: new("172.18.0.0/16"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
			Ingress:  &corev1beta1.Ingress{Domain: "ingress." + name + ".example.com", Controller: corev1beta1.IngressController{Kind: "nginx"}},
			DNS: corev1beta1.SeedDNS{
				Provider: &corev1beta1.SeedDNSProvider{Type: Local, CredentialsRef: &credentials},
				Internal: &corev1beta1.SeedDNSProviderConfig{Type: Local, Domain: "internal.example.com", CredentialsRef: credentials},
			},
		},
	}, changes)
}

// CloudProfile returns a CloudProfile before defaulting, with two versions of Kubernetes, one machine type and one image.
func CloudProfile(name string, changes ...func(*corev1beta1.CloudProfile)) *corev1beta1.CloudProfile {
	return changed(&corev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1beta1.CloudProfileSpec{
			Type:    Local,
			Regions: []corev1beta1.Region{{Name: Local, Zones: []corev1beta1.AvailabilityZone{{Name: "a"}}}},
			Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: NewerVersion},
				{Version: Version},
			}},
			MachineTypes: []corev1beta1.MachineType{{
				Name: Local, CPU: resource.MustParse("2"), GPU: resource.MustParse("0"), Memory: resource.MustParse("4Gi"),
			}},
			MachineImages: []corev1beta1.MachineImage{{Name: Local, Versions: []corev1beta1.MachineImageVersion{{
				ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}, CRI: []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}},
			}}}},
		},
	}, changes)
}

// Versions gives a CloudProfile other versions of Kubernetes.
func Versions(versions ...string) func(*corev1beta1.CloudProfile) {
	return func(p *corev1beta1.CloudProfile) {
		p.Spec.Kubernetes.Versions = nil
		for _, version := range versions {
			p.Spec.Kubernetes.Versions = append(p.Spec.Kubernetes.Versions, corev1beta1.ExpirableVersion{Version: version})
		}
	}
}

// Gardenlet returns the Gardenlet of a seed, with a chart and an empty Seed.
func Gardenlet(name string, changes ...func(*seedmanagementv1alpha1.Gardenlet)) *seedmanagementv1alpha1.Gardenlet {
	return changed(&seedmanagementv1alpha1.Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name},
		Spec: seedmanagementv1alpha1.GardenletSpec{
			Config: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","seedConfig":{"spec":{}}}`)},
			Deployment: seedmanagementv1alpha1.GardenletSelfDeployment{Helm: seedmanagementv1alpha1.GardenletHelm{
				OCIRepository: gardencorev1.OCIRepository{Ref: new("registry.example/gardenlet:v1")},
			}},
		},
	}, changes)
}

func changed[T any](object *T, changes []func(*T)) *T {
	for _, change := range changes {
		change(object)
	}
	return object
}
