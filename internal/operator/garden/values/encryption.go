package values

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/secrets"
)

// server is an API server that encrypts data at rest.
type server struct {
	// key is the credential that it encrypts with.
	key string
	// always are the resources that it always encrypts, and config is what the user has configured. It may be nil.
	always []string
	config *corev1beta1.EncryptionConfig
	// gardener is whether it serves the groups of Gardener.
	gardener bool
}

func (s Source) kubeServer() server {
	config, _ := s.Garden.EncryptionConfigs()
	return server{key: constants.SecretNameETCDEncryptionKey, always: []string{"secrets"}, config: config}
}

func (s Source) gardenServer() server {
	_, config := s.Garden.EncryptionConfigs()
	return server{key: operatorv1alpha1.SecretNameGardenerETCDEncryptionKey, always: gardenerapiserver.EncryptedResources(), config: config, gardener: true}
}

// Encryption returns what the kube-apiserver encrypts with which keys: the new one, and while a rotation is prepared, the old one for reading.
func (s Source) Encryption() (encryption.Values, error) { return s.encryption(s.kubeServer()) }

// FormerEncryption returns the encryption of the kube-apiserver that writes as before this run, and reads what is written after it.
func (s Source) FormerEncryption() (encryption.Values, error) {
	return s.formerEncryption(s.kubeServer())
}

// EncryptionMark names the encryption of the kube-apiserver after this run.
func (s Source) EncryptionMark() (string, error) { return s.encryptionMark(s.kubeServer()) }

// GardenEncryption is Encryption of gardener-apiserver.
func (s Source) GardenEncryption() (encryption.Values, error) { return s.encryption(s.gardenServer()) }

// FormerGardenEncryption is FormerEncryption of gardener-apiserver.
func (s Source) FormerGardenEncryption() (encryption.Values, error) {
	return s.formerEncryption(s.gardenServer())
}

// GardenEncryptionMark is EncryptionMark of gardener-apiserver.
func (s Source) GardenEncryptionMark() (string, error) { return s.encryptionMark(s.gardenServer()) }

// PreparesEncryptionKey reports whether this run changes by which key data at rest is encrypted.
func (s Source) PreparesEncryptionKey() bool {
	return credentialsRotation(s.Garden).EncryptionKey.Phase == corev1beta1.RotationPreparing
}

// ChangesEncryption reports whether the kube-apiserver rewrites some of the stored data: with a new key, or as it is to be encrypted or no longer.
func (s Source) ChangesEncryption() bool { return s.changes(s.kubeServer()) }

// ChangesGardenEncryption is ChangesEncryption of gardener-apiserver.
func (s Source) ChangesGardenEncryption() bool { return s.changes(s.gardenServer()) }

// EncryptsMore reports whether, after this run, some data is encrypted that a kube-apiserver of before could not read.
func (s Source) EncryptsMore() bool {
	return s.PreparesEncryptionKey() || len(s.added(s.kubeServer())) > 0
}

// EncryptsMoreOfGarden is EncryptsMore of gardener-apiserver.
func (s Source) EncryptsMoreOfGarden() bool {
	return s.PreparesEncryptionKey() || len(s.added(s.gardenServer())) > 0
}

// EncryptionAtRest returns what the status says at the end of an operation: what both API servers encrypt besides what they always do.
func (s Source) EncryptionAtRest() *operatorv1alpha1.EncryptionAtRest {
	return &operatorv1alpha1.EncryptionAtRest{
		Resources: s.Garden.EncryptedResources(),
		Provider:  operatorv1alpha1.EncryptionProviderStatus{Type: s.Garden.EncryptionProvider()},
	}
}

func (v server) desired() []string {
	if v.config == nil {
		return nil
	}
	return v.config.Resources
}

// before returns what an API server has encrypted at the end of the last operation. It is false if there was none.
func (s Source) before(v server) ([]string, bool) {
	c := s.Garden.Status.Credentials
	if c == nil || c.EncryptionAtRest == nil {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(c.EncryptionAtRest.Resources), func(resource string) bool {
		return servedByGardener(resource) != v.gardener
	}), true
}

// servedByGardener reports whether gardener-apiserver serves a resource, such as shoots.core.gardener.cloud.
func servedByGardener(resource string) bool {
	group := schema.ParseGroupResource(resource).Group
	return slices.ContainsFunc(gardenerapiserver.Versions(), func(version schema.GroupVersion) bool { return version.Group == group })
}

// added returns what is to be encrypted and was not before. For a new garden there is nothing, as nothing is stored yet.
func (s Source) added(v server) []string {
	before, ok := s.before(v)
	if !ok {
		return nil
	}
	return observed.Without(v.desired(), before)
}

// removed returns what was encrypted before and is no longer to be.
func (s Source) removed(v server) []string {
	before, _ := s.before(v)
	return observed.Without(before, v.desired())
}

func (s Source) changes(v server) bool {
	return s.PreparesEncryptionKey() || len(s.added(v)) > 0 || len(s.removed(v)) > 0
}

func (s Source) encryption(v server) (encryption.Values, error) {
	set, err := s.Credentials.All()
	if err != nil {
		return encryption.Values{}, err
	}
	e := encryption.Values{Resources: slices.Concat(v.always, v.desired()), PlainResources: s.removed(v)}
	for _, secret := range []*corev1.Secret{set.Current(v.key), set.Old(v.key)} {
		if secret == nil {
			continue
		}
		e.Keys = append(e.Keys, encryption.Key{
			// Not that of the Garden: data is read with the provider that has written it.
			Provider: corev1beta1.EncryptionProviderType(secret.Data[secrets.DataKeyEncryptionProvider]),
			Name:     string(secret.Data[secrets.DataKeyEncryptionKeyName]), Secret: secret.Data[secrets.DataKeyEncryptionSecret],
		})
	}
	return e, nil
}

func (s Source) formerEncryption(v server) (encryption.Values, error) {
	e, err := s.encryption(v)
	if err != nil {
		return e, err
	}
	if s.PreparesEncryptionKey() {
		slices.Reverse(e.Keys)
	}
	added := s.added(v)
	e.Resources, e.PlainResources = observed.Without(e.Resources, added), append(e.PlainResources, added...)
	return e, nil
}

// encryptionMark names an encryption. The same resources may be added, removed and added again: each time is another one.
func (s Source) encryptionMark(v server) (string, error) {
	e, err := s.encryption(v)
	if err != nil {
		return "", err
	}
	mark := e.Keys[0].Name
	if len(s.added(v)) > 0 {
		mark += fmt.Sprintf("/%d", s.Garden.Generation)
	}
	return mark, nil
}
