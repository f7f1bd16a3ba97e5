// Package values maps a shoot to the values of its components: what is observed, the names of its credentials, and the images.
package values

import (
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/infrastructure"
	"gardener.cloud/gardener/pkg/secrets"
)

// Source is what the values are made from. Each method makes those of one component, and reads the credentials that it needs.
type Source struct {
	*observed.State
	// Credentials are complete when the task credentials is done, those of etcd when credentials-etcd is.
	Credentials *credentials.Set
	// Infrastructure is complete when the task infrastructure is done. It is empty for components that do not come after it: their networks
	// are known before.
	Infrastructure *infrastructure.Result
	// Images are those of all components, and GardenerVersion the tag of the image with all processes of Gardener.
	Images          imagevector.Vector
	GardenerVersion string
}

// ControlPlaneNamespace returns the values of the namespace of the control plane.
func (s Source) ControlPlaneNamespace() controlplanenamespace.Values {
	types := make([]string, 0, len(s.Extensions))
	for _, e := range s.Extensions {
		types = append(types, e.Type)
	}
	return controlplanenamespace.Values{
		Name: s.Namespace, Project: s.Project, Shoot: s.Shoot, Seed: s.Seed, Extensions: types, Zones: s.Zones,
	}
}

// image returns the image of a component of Kubernetes in the version of the cluster.
func (s Source) image(name string) (string, error) {
	image, err := s.Images.Find(name, imagevector.Query{TargetVersion: s.version()})
	return image.String(), err
}

// gardenerImage returns the image with all processes of Gardener.
func (s Source) gardenerImage() (string, error) {
	image, err := s.Images.Find("gardener", imagevector.Query{})
	return image.WithDefaultTag(s.GardenerVersion).String(), err
}

// shoot is the Shoot with the networks that the infrastructure has chosen.
func (s Source) shoot() *corev1beta1.Shoot { return s.Infrastructure.Shoot(s.Shoot) }

// networks are the ranges of the shoot.
func (s Source) networks() corev1beta1.NetworkingStatus {
	return ptr.Deref(s.shoot().Status.Networking, corev1beta1.NetworkingStatus{})
}

func (s Source) version() string { return s.Shoot.Spec.Kubernetes.Version }

func (s Source) certificate(name string) []byte {
	return s.Credentials.Current(name).Data[secrets.DataKeyCertificate]
}

func (s Source) key(name string) []byte {
	return s.Credentials.Current(name).Data[secrets.DataKeyPrivateKey]
}
