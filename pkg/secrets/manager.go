// Package secrets manages the credentials of a control plane: CAs, certificates, keys, passwords and tokens.
//
// A Manager works on the secrets of one namespace that have its identity in a label. Generate returns a credential, which is created if it does
// not exist, and replaced if it is about to expire or its rotation was initiated. Cleanup deletes the secrets of credentials that were not
// generated. Secrets are immutable; their names end in a checksum of what they depend on, so that pods that mount them roll when
// they change. All state is in labels. Several processes can work in one namespace, with different identities.
//
// The rotation of a CA takes two phases. While it is prepared, Rotations has the time when it was initiated: the CA is new, and
// so are client certificates; servers keep certificates of the old CA, and the bundle has both. To complete the rotation, the
// caller passes IgnoreOldSecrets: servers get new certificates, the old CA is removed from the bundle, and Cleanup deletes it.
package secrets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of the secrets that a Manager creates.
const (
	// LabelKeyName has the name of the credential.
	LabelKeyName = "name"
	// LabelKeyManagedBy has LabelValueSecretsManager on all secrets of all managers.
	LabelKeyManagedBy = "managed-by"
	// LabelValueSecretsManager is the value of LabelKeyManagedBy.
	LabelValueSecretsManager = "secrets-manager"
	// LabelKeyManagerIdentity has the identity of the manager that the secret belongs to.
	LabelKeyManagerIdentity = "manager-identity"
	// LabelKeyBundleFor has the name of the CA or key that a bundle is of.
	LabelKeyBundleFor = "bundle-for"
	// LabelKeyPersist is "true" on secrets that are restored when the control plane moves to another seed.
	LabelKeyPersist = "persist"
	// LabelKeyLastRotationInitiationTime has the Unix time when the rotation was initiated that created the secret. Empty without one.
	LabelKeyLastRotationInitiationTime = "last-rotation-initiation-time"
	// LabelKeyIssuedAtTime has the Unix time when the secret was created.
	LabelKeyIssuedAtTime = "issued-at-time"
	// LabelKeyValidUntilTime has the Unix time when the certificate in the secret expires.
	LabelKeyValidUntilTime = "valid-until-time"
	// LabelKeyRenewAfterValidityPercentage has the percentage of its validity after which a certificate is renewed.
	LabelKeyRenewAfterValidityPercentage = "renew-after-validity-percentage"
	// LabelKeyChecksumConfig has the checksum of the credential's config.
	LabelKeyChecksumConfig = "checksum-of-config"
	// LabelKeyChecksumSigningCA has the checksum of the CA that signed the certificate in the secret.
	LabelKeyChecksumSigningCA = "checksum-of-signing-ca"
	// LabelKeyUseDataForName is a label for secrets without a Manager. It names a credential whose secret is created with the data of
	// the labelled one, so that an existing installation keeps its CAs.
	LabelKeyUseDataForName = "secrets-manager-use-data-for-name"
)

const (
	// renewAfter is the percentage of its validity after which a certificate is renewed.
	renewAfter = 80
	// renewBefore is how long before it expires a certificate is renewed at the latest.
	renewBefore = 10 * 24 * time.Hour
	// signsUntil is how long before it expires a CA that was renewed by itself stops to sign. Its successor is trusted much sooner than that.
	signsUntil = 24 * time.Hour
)

// Values are what a Manager needs.
type Values struct {
	// Client reads and writes the secrets. Its reads must not be older than the writes of the last reconciliation.
	Client client.Client
	// Namespace is the namespace of the secrets.
	Namespace string
	// Identity is the value of LabelKeyManagerIdentity, such as "gardenlet".
	Identity string
	// Rotations are the times when rotations were last initiated, by the name of the credential.
	Rotations map[string]time.Time
	// Clock is for issue times and renewal. The default is the real one.
	Clock clock.PassiveClock
}

// Manager creates and returns credentials. It is for one reconciliation; its methods may be called concurrently.
type Manager struct {
	Values

	mu     sync.Mutex
	stored map[string][]*corev1.Secret // by name of the credential: the secrets that New found, newest first, without bundles
	all    map[string]*corev1.Secret   // all existing secrets, by name of the object
	used   map[string]bool             // names of objects that Cleanup keeps
	ready  map[string]*entry           // the generated credentials, by name
}

// entry is a generated credential.
type entry struct {
	current, old, bundle *corev1.Secret
	// renewed is whether it is renewed by itself.
	renewed bool
}

// New returns a Manager that has listed the secrets of its namespace.
func New(ctx context.Context, v Values) (*Manager, error) {
	if v.Clock == nil {
		v.Clock = clock.RealClock{}
	}
	m := &Manager{
		Values: v,
		stored: map[string][]*corev1.Secret{}, all: map[string]*corev1.Secret{}, used: map[string]bool{}, ready: map[string]*entry{},
	}
	list := &corev1.SecretList{}
	if err := v.Client.List(ctx, list, client.InNamespace(v.Namespace), m.labels()); err != nil {
		return nil, fmt.Errorf("list secrets of %q in namespace %q: %w", v.Identity, v.Namespace, err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		m.all[secret.Name] = secret
		if name := secret.Labels[LabelKeyName]; secret.Labels[LabelKeyBundleFor] == "" && secret.DeletionTimestamp == nil {
			m.stored[name] = append(m.stored[name], secret)
		}
	}
	for _, secrets := range m.stored {
		slices.SortFunc(secrets, func(a, b *corev1.Secret) int {
			if c := timeLabel(b, LabelKeyIssuedAtTime).Compare(timeLabel(a, LabelKeyIssuedAtTime)); c != 0 {
				return c
			}
			return strings.Compare(a.Name, b.Name)
		})
	}
	return m, nil
}

func (m *Manager) labels() client.MatchingLabels {
	return client.MatchingLabels{LabelKeyManagedBy: LabelValueSecretsManager, LabelKeyManagerIdentity: m.Identity}
}

// Generate returns the secret with a credential, and creates it if it does not exist. The CA that signs it must have been generated
// before. A CA, and a PrivateKey with KeepOld, also get a bundle, which Get returns for the class Bundle.
func (m *Manager) Generate(ctx context.Context, config Config, options ...Option) (*corev1.Secret, error) {
	secret, err := m.generateLocked(ctx, config, options)
	if err != nil {
		return nil, fmt.Errorf("secret %q: %w", config.SecretName(), err)
	}
	return secret, nil
}

func (m *Manager) generateLocked(ctx context.Context, config Config, opts []Option) (*corev1.Secret, error) {
	// Tasks of a flow generate the same CA concurrently; the second one must find it. None of this takes long.
	m.mu.Lock()
	defer m.mu.Unlock()
	o := options{renewAfter: renewAfter}
	for _, option := range opts {
		option(&o)
	}
	name, in := config.SecretName(), inputs{now: m.Clock.Now()}
	configSum, err := checksum(config)
	if err != nil {
		return nil, err
	}
	labels := m.labels()
	labels[LabelKeyName], labels[LabelKeyChecksumConfig] = name, configSum
	if o.persist {
		labels[LabelKeyPersist] = "true"
	}
	sum := configSum
	if o.signedBy != "" {
		if in.ca, err = m.signer(config, o); err != nil {
			return nil, err
		}
		signer := hash(in.ca.certPEM)
		labels[LabelKeyChecksumSigningCA] = signer
		sum = hash([]byte(configSum + signer))
	}
	rotated := m.rotation(config, in.now, o)
	labels[LabelKeyLastRotationInitiationTime] = unix(rotated)
	object := name + "-" + sum[:8]
	if !rotated.IsZero() {
		object += "-" + hash([]byte(unix(rotated)))[:5]
	}

	e := &entry{current: m.all[object], renewed: o.renewCA}
	if e.current == nil {
		if e.current, err = m.createCredential(ctx, object, config, in, o, labels); err != nil {
			return nil, err
		}
	}
	m.used[e.current.Name] = true
	if old := m.old(name, e.current, in.now, o); old != nil {
		e.old = old
		m.used[old.Name] = true
	}
	if err := m.bundle(ctx, config, e, o); err != nil {
		return nil, fmt.Errorf("its bundle: %w", err)
	}
	m.ready[name] = e
	return e.current.DeepCopy(), nil
}

// signer returns the CA that signs a certificate. While a CA is rotated there are two: servers stay with the old one, which all
// clients trust, and clients already get certificates of the new one, as servers trust both. What a CA has signed that has expired, nobody trusts: when its owner
// was away for so long, the new one signs everything.
func (m *Manager) signer(config Config, o options) (*signingCA, error) {
	ca := m.ready[o.signedBy]
	if ca == nil {
		return nil, fmt.Errorf("its CA %q has to be generated first", o.signedBy)
	}
	class := o.signer
	if class == "" {
		class = Current
		if c, ok := config.(*Certificate); ok && c.Usage != ClientCert {
			class = Old
		}
	}
	if class == Old && ca.old != nil && ca.oldSigns(m.Clock.Now()) {
		return signingCAFrom(ca.old)
	}
	return signingCAFrom(ca.current)
}

// oldSigns is whether certificates of the old CA are, and stay for a while, valid. The owner who rotates a CA by hand may need each hour of it, as nodes and other
// clients trust the new one only when they are replaced.
func (e *entry) oldSigns(now time.Time) bool {
	until := timeLabel(e.old, LabelKeyValidUntilTime)
	if until.IsZero() {
		return true
	}
	if e.renewed {
		until = until.Add(-signsUntil)
	}
	return now.Before(until)
}

// rotation returns when the rotation was initiated that the credential is the result of: the last one, or now if a certificate is
// about to expire.
func (m *Manager) rotation(config Config, now time.Time, o options) time.Time {
	name := config.SecretName()
	last := m.Rotations[name]
	if len(m.stored[name]) == 0 {
		return last
	}
	newest := m.stored[name][0]
	if t := timeLabel(newest, LabelKeyLastRotationInitiationTime); t.After(last) {
		last = t
	}
	if _, isCA := config.(*CertificateAuthority); isCA && !o.renewCA {
		return last // the owner of the cluster decides when: all clients have to get the new CA
	}
	if dueForRenewal(newest, now) {
		return now
	}
	return last
}

// dueForRenewal says whether a certificate is to be renewed.
func dueForRenewal(secret *corev1.Secret, now time.Time) bool {
	issued, until := timeLabel(secret, LabelKeyIssuedAtTime), timeLabel(secret, LabelKeyValidUntilTime)
	if issued.IsZero() || until.IsZero() {
		return false
	}
	percent, err := strconv.Atoi(secret.Labels[LabelKeyRenewAfterValidityPercentage])
	if err != nil {
		percent = renewAfter
	}
	validity := until.Sub(issued)
	due := issued.Add(validity / 100 * time.Duration(percent))
	// Certificates that are valid for days only would always be in their last ten days.
	if latest := until.Add(-renewBefore); latest.Before(due) && validity > 2*renewBefore {
		due = latest
	}
	return !now.Before(due)
}

// old returns the secret that the current one replaces, if both are in use during a rotation.
func (m *Manager) old(name string, current *corev1.Secret, now time.Time, o options) *corev1.Secret {
	if !o.keepOld || o.ignoreOld {
		return nil
	}
	if o.ignoreOldAfter > 0 && !now.Before(timeLabel(current, LabelKeyIssuedAtTime).Add(o.ignoreOldAfter)) {
		return nil
	}
	for _, secret := range m.stored[name] {
		if secret.Name != current.Name {
			return secret
		}
	}
	return nil
}

// createCredential creates the secret with a new credential, or with the data of a secret that is labelled for it.
func (m *Manager) createCredential(ctx context.Context, object string, config Config, in inputs, o options, labels map[string]string) (*corev1.Secret, error) {
	var data map[string][]byte
	var err error
	if len(m.stored[config.SecretName()]) == 0 {
		if data, err = m.labelledData(ctx, config.SecretName()); err != nil {
			return nil, err
		}
	}
	if data == nil {
		if data, err = config.generate(in); err != nil {
			return nil, err
		}
	}
	labels[LabelKeyIssuedAtTime] = unix(in.now)
	if until, ok := validUntil(data); ok {
		labels[LabelKeyValidUntilTime] = unix(until)
		if o.renewAfter != renewAfter {
			labels[LabelKeyRenewAfterValidityPercentage] = strconv.Itoa(o.renewAfter)
		}
	}
	return m.create(ctx, object, data, labels)
}

// labelledData returns the data of the secret with LabelKeyUseDataForName for a credential, or nil if there is none.
func (m *Manager) labelledData(ctx context.Context, name string) (map[string][]byte, error) {
	list := &corev1.SecretList{}
	if err := m.Client.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{LabelKeyUseDataForName: name}); err != nil {
		return nil, err
	}
	switch len(list.Items) {
	case 0:
		return nil, nil
	case 1:
		return maps.Clone(list.Items[0].Data), nil
	}
	return nil, fmt.Errorf("%d secrets have the label %s=%s, but only one may have it", len(list.Items), LabelKeyUseDataForName, name)
}

func (m *Manager) create(ctx context.Context, object string, data map[string][]byte, labels map[string]string) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: object, Labels: labels},
		Type:       corev1.SecretTypeOpaque, Immutable: new(true), Data: data,
	}
	err := m.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		// Created by an earlier reconciliation that was interrupted. It may be in use.
		err = m.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && secret.Labels[LabelKeyManagerIdentity] != m.Identity {
			err = fmt.Errorf("secret %q exists and does not belong to %q", object, m.Identity)
		}
	}
	if err != nil {
		return nil, err
	}
	m.all[object] = secret
	return secret, nil
}

// bundle creates the secret with the current and the old certificates or keys of a credential.
func (m *Manager) bundle(ctx context.Context, config Config, e *entry, o options) error {
	from, to := DataKeyCertificateCA, DataKeyCertificateBundle
	switch config.(type) {
	case *CertificateAuthority:
	case *PrivateKey:
		if !o.keepOld {
			return nil
		}
		from, to = DataKeyRSAPrivateKey, DataKeyPrivateKeyBundle
	default:
		return nil
	}
	bundle := slices.Clone(e.current.Data[from])
	if e.old != nil {
		bundle = append(bundle, e.old.Data[from]...)
	}
	name := config.SecretName()
	object := name + "-bundle-" + hash(bundle)[:8]
	if e.bundle = m.all[object]; e.bundle == nil {
		labels := m.labels()
		labels[LabelKeyName], labels[LabelKeyBundleFor] = name+"-bundle", name
		var err error
		if e.bundle, err = m.create(ctx, object, map[string][]byte{to: bundle}, labels); err != nil {
			return err
		}
	}
	m.used[object] = true
	return nil
}

// Class selects a secret of a credential.
type Class string

const (
	// Current is the newest one.
	Current Class = "current"
	// Old is the one it replaces, while both are in use.
	Old Class = "old"
	// Bundle is the one with the certificates or keys of both.
	Bundle Class = "bundle"
)

// Get returns a secret of a credential that was generated before, or false if there is none of that class.
func (m *Manager) Get(name string, class Class) (*corev1.Secret, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.ready[name]
	if e == nil {
		return nil, false
	}
	secret := map[Class]*corev1.Secret{Current: e.current, Old: e.old, Bundle: e.bundle}[class]
	if secret == nil {
		return nil, false
	}
	return secret.DeepCopy(), true
}

// Cleanup deletes the secrets of this identity that were not generated. Call it after all credentials that are needed were.
func (m *Manager) Cleanup(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, object := range slices.Sorted(maps.Keys(m.all)) {
		if m.used[object] {
			continue
		}
		secret := m.all[object]
		if err := m.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete secret %q: %w", object, err))
			continue
		}
		delete(m.all, object)
	}
	return errors.Join(errs...)
}

// hash returns 32 hexadecimal digits, which fit into a label.
func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:32]
}

func unix(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// IssuedAt returns when a secret of a Manager was created, or the zero time if its label does not have it.
func IssuedAt(secret *corev1.Secret) time.Time { return timeLabel(secret, LabelKeyIssuedAtTime) }

// timeLabel returns the time in a label, or the zero time without one.
func timeLabel(secret metav1.Object, label string) time.Time {
	seconds, err := strconv.ParseInt(secret.GetLabels()[label], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
