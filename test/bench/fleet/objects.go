package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/test/builder"
)

// shootsPerProject is how many shoots are in a project.
const shootsPerProject = 25

// size is the size of a garden.
type size struct {
	Seeds  int `json:"seeds"`
	Shoots int `json:"shoots"`
}

func (s size) projects() int { return (s.Shoots + shootsPerProject - 1) / shootsPerProject }

// base returns what seeds and shoots refer to: the roles of a garden, its webhooks, domains, extensions and a CloudProfile.
func base(webhooks gardeneradmissioncontroller.Endpoint) []client.Object {
	domain := func(name, role string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: constants.GardenNamespace, Name: name, Labels: map[string]string{constants.GardenRole: role},
			Annotations: map[string]string{"dns.gardener.cloud/provider": builder.Local, "dns.gardener.cloud/domain": name + ".example.com"},
		}}
	}
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "dns"}},
		domain("shoots", "default-domain"), domain("internal", "internal-domain"),
		builder.CloudProfile(builder.Local),
	}
	for _, kinds := range [][]string{
		{"ControlPlane", "Infrastructure", "Worker"}, {"OperatingSystemConfig"}, {"Network"}, {"DNSRecord"},
	} {
		registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "extension-" + fmt.Sprint(len(objects))}}
		for _, kind := range kinds {
			registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: builder.Local})
		}
		objects = append(objects, registration)
	}
	objects = append(objects, gardenrbac.Objects()...)
	return append(objects, gardeneradmissioncontroller.Webhooks(webhooks, nil)...)
}

func projectName(i int) string { return fmt.Sprintf("p%04d", i) }

func namespaceOf(project int) string { return constants.ProjectNamespacePrefix + projectName(project) }

// project returns a Project whose namespace is created by the gardener-controller-manager.
func project(i int) client.Object {
	namespace := namespaceOf(i)
	return &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: projectName(i)}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}}
}

// credentials returns the credentials for the shoots of a project.
func credentials(i int) []client.Object {
	namespace := namespaceOf(i)
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: builder.Local}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: builder.Local}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: builder.Local},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: builder.Local},
		},
	}
}

// shoot returns a Shoot with one pool.
func shoot(i int, s size) *corev1beta1.Shoot {
	return builder.Shoot(fmt.Sprintf("s%d", i/s.projects()), builder.In(namespaceOf(i%s.projects())), builder.Workers(1))
}
