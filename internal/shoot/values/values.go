// Package values maps a shoot to the values of its components: what is observed, the names of its credentials, and the images.
package values

import (
	"k8s.io/utils/ptr"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
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
	// Infrastructure is complete when the task infrastructure is done. It is nil for components that do not come after it: their networks
	// are known before.
	Infrastructure *infrastructure.Result
	// Images are those of all components, and GardenerVersion the tag of the image with all processes of Gardener.
	Images          imagevector.Vector
	GardenerVersion string
	// ETCD is the gardenlet's configuration of backups. It may be nil.
	ETCD *gardenletconfigv1alpha1.ETCDConfig
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
func (s Source) shoot() (*corev1beta1.Shoot, error) {
	if s.Infrastructure == nil {
		return s.Shoot, nil
	}
	return s.Infrastructure.Shoot(s.Shoot)
}

// networks are the ranges of the shoot.
func (s Source) networks() (corev1beta1.NetworkingStatus, error) {
	shoot, err := s.shoot()
	if err != nil {
		return corev1beta1.NetworkingStatus{}, err
	}
	return ptr.Deref(shoot.Status.Networking, corev1beta1.NetworkingStatus{}), nil
}

func (s Source) version() string { return s.Shoot.Spec.Kubernetes.Version }

// imageAndCredentials returns the image of a component of Kubernetes, and the credentials.
func (s Source) imageAndCredentials(name string) (string, credentials.Generated, error) {
	image, err := s.image(name)
	if err != nil {
		return "", credentials.Generated{}, err
	}
	set, err := s.Credentials.All()
	return image, set, err
}

// gardenerImageAndCredentials returns the image with all processes of Gardener, and the credentials.
func (s Source) gardenerImageAndCredentials() (string, credentials.Generated, error) {
	image, err := s.gardenerImage()
	if err != nil {
		return "", credentials.Generated{}, err
	}
	set, err := s.Credentials.All()
	return image, set, err
}

// keyPair returns the certificate and the private key of a credential, as PEM.
func keyPair(set credentials.Generated, name string) (certificate, key []byte) {
	data := set.Current(name).Data
	return data[secrets.DataKeyCertificate], data[secrets.DataKeyPrivateKey]
}
