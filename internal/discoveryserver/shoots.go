package discoveryserver

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/secrets"
)

// uidIndex is the index of Shoots by their UID.
const uidIndex = "metadata.uid"

// errNotFound says that there is nothing to serve. Whether the Shoot, its Project or its documents are missing is of no interest to strangers.
var errNotFound = errors.New("not found")

// refusedError says that something is published, but must not be served. Nothing of it is for clients.
type refusedError struct {
	object client.Object
	reason string
}

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("%T %s: %s", e.object, client.ObjectKeyFromObject(e.object), e.reason)
}

func refuse(object client.Object, format string, args ...any) error {
	return &refusedError{object, fmt.Sprintf(format, args...)}
}

// shoots finds what is served of shoots in the garden.
type shoots struct {
	gardenCache client.Reader
	// host is the host of all managed issuers.
	host string
}

// issuerDocuments are the two documents of an issuer.
type issuerDocuments struct{ config, keySet []byte }

// metadata returns an object for the metadata of Shoots, which is all that is read of them.
func metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	return m
}

// shoot returns the metadata of a Shoot by its UID, if it is in the project.
func (s shoots) shoot(ctx context.Context, project, uid string) (*metav1.PartialObjectMetadata, error) {
	p := &corev1beta1.Project{}
	if err := s.gardenCache.Get(ctx, client.ObjectKey{Name: project}, p); apierrors.IsNotFound(err) {
		return nil, errNotFound
	} else if err != nil {
		return nil, fmt.Errorf("read Project %q: %w", project, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	if err := s.gardenCache.List(ctx, list, client.MatchingFields{uidIndex: uid}); err != nil {
		return nil, fmt.Errorf("list Shoots with UID %q: %w", uid, err)
	}
	for i, found := range list.Items {
		if namespace := ptr.Deref(p.Spec.Namespace, ""); namespace != "" && found.Namespace == namespace {
			return &list.Items[i], nil
		}
	}
	return nil, errNotFound
}

// issuer returns the documents of the managed issuer of a shoot.
func (s shoots) issuer(ctx context.Context, project, uid string) (issuerDocuments, error) {
	none := issuerDocuments{}
	shoot, err := s.shoot(ctx, project, uid)
	if err != nil {
		return none, err
	}
	key := client.ObjectKey{Namespace: constants.GardenerShootIssuerNamespace, Name: issuer.SecretName(project, shoot.UID)}
	secret := &corev1.Secret{}
	if err := s.gardenCache.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return none, errNotFound
	} else if err != nil {
		return none, fmt.Errorf("read Secret %s: %w", key, err)
	}
	// Admission lets a gardenlet write a Secret whose labels name one of its own shoots. The name of the Secret may be that of another one.
	for _, label := range []struct{ key, want string }{
		{constants.ProjectName, project},
		{constants.ShootNamespace, shoot.Namespace},
		{constants.ShootName, shoot.Name},
		{constants.DiscoveryPublic, constants.DiscoveryServiceAccount},
	} {
		if got := secret.Labels[label.key]; got != label.want {
			return none, refuse(secret, "its label %s is %q instead of %q", label.key, got, label.want)
		}
	}
	if shoot.Annotations[constants.AuthenticationIssuer] != constants.AuthenticationIssuerManaged {
		return none, refuse(secret, "Shoot %s has no managed issuer", client.ObjectKeyFromObject(shoot))
	}
	config, keySet, err := serviceaccountkey.CheckIssuerDocuments(
		issuer.URL(s.host, project, shoot.UID), secret.Data[issuer.OpenIDConfigKey], secret.Data[issuer.KeySetKey])
	if err != nil {
		return none, refuse(secret, "%s", err)
	}
	return issuerDocuments{config, keySet}, nil
}

// clusterCA returns the CA of the kube-apiserver of a shoot as a JSON document.
func (s shoots) clusterCA(ctx context.Context, project, uid string) ([]byte, error) {
	shoot, err := s.shoot(ctx, project, uid)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: shoot.Name + "." + constants.ShootProjectSecretSuffixCACluster}
	configMap := &corev1.ConfigMap{}
	if err := s.gardenCache.Get(ctx, key, configMap); apierrors.IsNotFound(err) {
		return nil, errNotFound
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	for _, label := range []struct{ key, want string }{
		{constants.DiscoveryPublic, constants.DiscoveryShootCA},
		{constants.GardenRole, constants.GardenRoleCACluster},
		{constants.ShootUID, uid},
		// With it, only gardenlets can write the ConfigMap, which is in the namespace of a project.
		{constants.UpdateRestriction, "true"},
	} {
		if got := configMap.Labels[label.key]; got != label.want {
			return nil, refuse(configMap, "its label %s is %q instead of %q", label.key, got, label.want)
		}
	}
	certs, err := checkCAs([]byte(configMap.Data[secrets.DataKeyCertificateCA]))
	if err != nil {
		return nil, refuse(configMap, "%s", err)
	}
	return json.Marshal(map[string]string{"certs": string(certs)})
}

// checkCAs returns the CA certificates of a bundle, and nothing else that may be between them.
func checkCAs(bundle []byte) ([]byte, error) {
	var out []byte
	for {
		block, rest := pem.Decode(bundle)
		if block == nil {
			break
		}
		bundle = rest
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil || !certificate.IsCA {
			return nil, errors.New("its CA bundle has more than CA certificates")
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if len(out) == 0 {
		return nil, errors.New("its CA bundle has no certificates")
	}
	return out, nil
}

// indexUID is the function of uidIndex.
func indexUID(object client.Object) []string { return []string{string(object.GetUID())} }
