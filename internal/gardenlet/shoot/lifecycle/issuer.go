package lifecycle

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// publicKeysLabel says of which kind of tokens a Secret has the public keys. Who serves them finds them by it.
	publicKeysLabel, publicKeysOfAccounts = "authentication.gardener.cloud/public-keys", "serviceaccount"
	// openIDConfigKey and keySetKey have the two documents of an issuer, hostnameKey is where all issuers are.
	openIDConfigKey, keySetKey, hostnameKey = "openid-config", "jwks", "hostname"
)

// managedIssuer returns the URL of the issuer that Gardener serves for a shoot. It is empty if the API server is its own.
func (r *reconciler) managedIssuer(ctx context.Context, w *world) (string, error) {
	if w.shoot.Annotations[constants.AuthenticationIssuer] != constants.AuthenticationIssuerManaged {
		return "", nil
	}
	list := &corev1.SecretList{}
	// The controller manager copies it to where the gardenlet may read it.
	if err := r.live.List(ctx, list, client.InNamespace(constants.SeedNamespaceNamePrefix+w.seed.Name),
		client.MatchingLabels{constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer}); err != nil {
		return "", fmt.Errorf("read host of managed issuers: %w", err)
	}
	for _, secret := range list.Items {
		if host := string(secret.Data[hostnameKey]); host != "" {
			return fmt.Sprintf("https://%s/projects/%s/shoots/%s/issuer", host, w.project, w.shoot.UID), nil
		}
	}
	return "", errorcode.With(errors.New("the landscape has no host for managed issuers of service account tokens"), corev1beta1.ErrorConfigurationProblem)
}

// issuerTasks publish what others need to know of tokens of service accounts.
func (h *hosted) issuerTasks() []flow.Task {
	if h.issuer == "" {
		return nil
	}
	return []flow.Task{task("publish-issuer", "Publishing the keys of service account tokens", h.publishIssuer, "credentials")}
}

// keySetURL is where the keys of an issuer are served.
func keySetURL(issuer string) string {
	if issuer == "" {
		return ""
	}
	return issuer + "/jwks"
}

func (h *hosted) issuerSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenerShootIssuerNamespace, Name: h.project + "--" + string(h.shoot.UID),
		Labels: map[string]string{
			publicKeysLabel: publicKeysOfAccounts, constants.ProjectName: h.project, constants.ShootName: h.shoot.Name, constants.ShootNamespace: h.shoot.Namespace,
		},
	}}
}

// publishIssuer writes the documents of the issuer into the garden, where a server of their own has them.
func (h *hosted) publishIssuer(ctx context.Context) error {
	var keys []crypto.PublicKey
	for _, secret := range []*corev1.Secret{h.set.Current(constants.SecretNameServiceAccountKey), h.set.Old(constants.SecretNameServiceAccountKey)} {
		if secret == nil {
			continue
		}
		public, err := publicKey(secret)
		if err != nil {
			return err
		}
		keys = append(keys, public)
	}
	config, keySet, err := issuerDocuments(h.issuer, keys)
	if err != nil {
		return err
	}
	return apply(ctx, h.gardenClient, h.issuerSecret(), func(o *corev1.Secret) {
		o.Data = map[string][]byte{openIDConfigKey: config, keySetKey: keySet}
	})
}

// publicKey reads that of the key in a Secret.
func publicKey(secret *corev1.Secret) (crypto.PublicKey, error) {
	private, err := keyutil.ParsePrivateKeyPEM(secret.Data[secrets.DataKeyRSAPrivateKey])
	if err != nil {
		return nil, fmt.Errorf("the key in Secret %q is not usable", secret.Name) // the error may quote it
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in Secret %q cannot sign", secret.Name)
	}
	return signer.Public(), nil
}

// signedBy is whether a token says that it is signed by the key with an ID.
func signedBy(token, id string) bool {
	encoded, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	header := key{}
	return err == nil && json.Unmarshal(raw, &header) == nil && header.ID == id
}

// unpublishIssuer removes the documents of an issuer.
func (h *hosted) unpublishIssuer(ctx context.Context) error {
	if h.shoot.Annotations[constants.AuthenticationIssuer] != constants.AuthenticationIssuerManaged {
		return nil
	}
	return unpublish(ctx, h.gardenClient, h.issuerSecret())
}

// discovery is the document by which clients find the keys of an issuer. Source: OpenID Connect Discovery 1.0.
type discovery struct {
	Issuer        string   `json:"issuer"`
	KeySetURL     string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// key is a public key as RFC 7517 writes it.
type key struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	Modulus   string `json:"n,omitempty"`
	Exponent  string `json:"e,omitempty"`
}

// issuerDocuments writes what an issuer serves: that which says where its keys are, and the keys.
func issuerDocuments(issuer string, public []crypto.PublicKey) (config, keySet []byte, err error) {
	keys := make([]key, 0, len(public))
	var algorithms []string
	for _, p := range public {
		k, err := keyOf(p)
		if err != nil {
			return nil, nil, err
		}
		keys, algorithms = append(keys, k), append(algorithms, k.Algorithm)
	}
	slices.Sort(algorithms)
	if config, err = json.Marshal(discovery{issuer, keySetURL(issuer), []string{"id_token"}, []string{"public"}, slices.Compact(algorithms)}); err != nil {
		return nil, nil, err
	}
	keySet, err = json.Marshal(map[string][]key{"keys": keys})
	return config, keySet, err
}

// keyOf writes a public key. Its ID is that which the API server puts into tokens: the checksum of the key in its usual form.
func keyOf(public crypto.PublicKey) (key, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return key{}, fmt.Errorf("write public key: %w", err)
	}
	sum, encode := sha256.Sum256(der), base64.RawURLEncoding.EncodeToString
	k := key{Use: "sig", ID: encode(sum[:])}
	switch p := public.(type) {
	case *rsa.PublicKey:
		k.Type, k.Algorithm, k.Modulus, k.Exponent = "RSA", "RS256", encode(p.N.Bytes()), encode(big.NewInt(int64(p.E)).Bytes())
	case *ecdsa.PublicKey:
		if p.Curve != elliptic.P256() {
			return k, errors.New("write public key: its curve is not P-256")
		}
		point, err := p.Bytes()
		if err != nil {
			return k, fmt.Errorf("write public key: %w", err)
		}
		half := (len(point) - 1) / 2 // the first byte says that both coordinates follow
		k.Type, k.Algorithm, k.Curve, k.X, k.Y = "EC", "ES256", "P-256", encode(point[1:1+half]), encode(point[1+half:])
	default:
		return k, fmt.Errorf("write public key: %T is not supported", public)
	}
	return k, nil
}
