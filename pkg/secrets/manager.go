// Package secrets owns the credentials of a control plane: authorities, certificates, keys, passwords and tokens.
//
// A Manager works on the secrets of one namespace that carry its identity. It makes what is asked for and not there yet,
// hands out what is, replaces what is about to expire or was ordered to rotate, and in the end removes what nobody asked
// for. Secrets are immutable; their names end in a checksum of what they depend on, so that pods that mount them roll when
// they change. Labels hold all that a later Manager has to know. Several processes work in one namespace with different
// identities.
//
// Rotating an authority takes two passes. While it is prepared, Rotations names the time when it was ordered: the authority
// and everything it signs for clients is new, servers keep certificates of the old one, and the bundle has both. To
// complete it, the caller asks with IgnoreOldSecrets: servers get new certificates, the bundle and Cleanup forget the old.
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

// Labels of the secrets that a Manager makes.
const (
	// LabelKeyName has the name by which a secret is asked for.
	LabelKeyName = "name"
	// LabelKeyManagedBy has LabelValueSecretsManager on all secrets of all managers.
	LabelKeyManagedBy = "managed-by"
	// LabelValueSecretsManager is the value of LabelKeyManagedBy.
	LabelValueSecretsManager = "secrets-manager"
	// LabelKeyManagerIdentity has the identity of the manager that the secret belongs to.
	LabelKeyManagerIdentity = "manager-identity"
	// LabelKeyBundleFor has the name of the authority or key that a bundle is of.
	LabelKeyBundleFor = "bundle-for"
	// LabelKeyPersist is "true" on secrets that move with a control plane to another seed.
	LabelKeyPersist = "persist"
	// LabelKeyLastRotationInitiationTime has the Unix time of the order to rotate that led to the secret. Empty without one.
	LabelKeyLastRotationInitiationTime = "last-rotation-initiation-time"
	// LabelKeyIssuedAtTime has the Unix time when the secret was made.
	LabelKeyIssuedAtTime = "issued-at-time"
	// LabelKeyValidUntilTime has the Unix time when the certificate in the secret expires.
	LabelKeyValidUntilTime = "valid-until-time"
	// LabelKeyRenewAfterValidityPercentage has the share of its life after which a certificate is replaced.
	LabelKeyRenewAfterValidityPercentage = "renew-after-validity-percentage"
	// LabelKeyChecksumConfig has the checksum of the description of the secret.
	LabelKeyChecksumConfig = "checksum-of-config"
	// LabelKeyChecksumSigningCA has the checksum of the authority that signed the certificate in the secret.
	LabelKeyChecksumSigningCA = "checksum-of-signing-ca"
	// LabelKeyUseDataForName marks a secret of somebody else whose data is to be used for the named secret when that is
	// made, instead of new data: how an existing installation keeps its authorities.
	LabelKeyUseDataForName = "secrets-manager-use-data-for-name"
)

const (
	// renewAfter is the share of its life, in percent, after which a certificate is replaced.
	renewAfter = 80
	// renewBefore is how long before its end a certificate is replaced at the latest.
	renewBefore = 10 * 24 * time.Hour
)

// Values are what a Manager needs.
type Values struct {
	// Client reads and writes the secrets. Its reads must not be older than the writes of the last pass.
	Client client.Client
	// Namespace is where the secrets are.
	Namespace string
	// Identity tells the secrets of one manager from those of others, such as "gardenlet".
	Identity string
	// Rotations have, by the name of a secret, when its rotation was last ordered.
	Rotations map[string]time.Time
	// Clock is for issue times and renewal. The default is the real one.
	Clock clock.PassiveClock
}

// Manager makes and finds credentials. It is for one pass of a reconciliation; its methods may be called at once.
type Manager struct {
	Values

	mu     sync.Mutex
	stored map[string][]*corev1.Secret // by name label: what was there at the start, newest first, without bundles
	all    map[string]*corev1.Secret   // everything there is, by name of the object
	used   map[string]bool             // names of objects that were asked for
	ready  map[string]*entry
}

// entry is a credential that was asked for.
type entry struct {
	current, old, bundle *corev1.Secret
}

// New returns a Manager that knows the secrets of its namespace.
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

// Generate returns the secret with a credential, and makes it if it is not there. What signs it must have been asked for
// before. An authority, and a key that KeepOld, also get a bundle, which Bundle returns.
func (m *Manager) Generate(ctx context.Context, config Config, options ...Option) (*corev1.Secret, error) {
	secret, err := m.generateLocked(ctx, config, options)
	if err != nil {
		return nil, fmt.Errorf("secret %q: %w", config.SecretName(), err)
	}
	return secret, nil
}

func (m *Manager) generateLocked(ctx context.Context, config Config, opts []Option) (*corev1.Secret, error) {
	// One at a time: tasks of a flow ask for the same authority at once, and none of this takes long.
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

	e := &entry{current: m.all[object]}
	if e.current == nil {
		if e.current, err = m.make(ctx, object, config, in, o, labels); err != nil {
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

// signer returns the authority that signs a certificate. While an authority is rotated there are two: servers stay with the
// old one, which all clients trust, and clients already have the new one, as servers trust both.
func (m *Manager) signer(config Config, o options) (*authority, error) {
	ca := m.ready[o.signedBy]
	if ca == nil {
		return nil, fmt.Errorf("its authority %q has to be asked for first", o.signedBy)
	}
	class := o.signer
	if class == "" {
		class = Current
		if c, ok := config.(*Certificate); ok && c.Usage != ClientCert {
			class = Old
		}
	}
	if class == Old && ca.old != nil {
		return authorityFrom(ca.old)
	}
	return authorityFrom(ca.current)
}

// rotation returns when the rotation was ordered that the credential is to be the result of: the last order known, or now
// if a certificate is about to expire.
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
		return last // everything that trusts it would have to change; its owner decides when
	}
	if dueForRenewal(newest, now) {
		return now
	}
	return last
}

// dueForRenewal tells whether a certificate has used up most of its life.
func dueForRenewal(secret *corev1.Secret, now time.Time) bool {
	issued, until := timeLabel(secret, LabelKeyIssuedAtTime), timeLabel(secret, LabelKeyValidUntilTime)
	if issued.IsZero() || until.IsZero() {
		return false
	}
	percent, err := strconv.Atoi(secret.Labels[LabelKeyRenewAfterValidityPercentage])
	if err != nil {
		percent = renewAfter
	}
	life := until.Sub(issued)
	due := issued.Add(life / 100 * time.Duration(percent))
	// Certificates that live for days only would always be in their last ten days.
	if latest := until.Add(-renewBefore); latest.Before(due) && life > 2*renewBefore {
		due = latest
	}
	return !now.Before(due)
}

// old returns the secret that the current one replaces, if both are to be in use for a while.
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

// make creates the secret with a new credential, or with data that was set aside for it.
func (m *Manager) make(ctx context.Context, object string, config Config, in inputs, o options, labels map[string]string) (*corev1.Secret, error) {
	var data map[string][]byte
	var err error
	if len(m.stored[config.SecretName()]) == 0 {
		if data, err = m.setAside(ctx, config.SecretName()); err != nil {
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

// setAside returns the data of a secret that is marked to be used under a name.
func (m *Manager) setAside(ctx context.Context, name string) (map[string][]byte, error) {
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
	return nil, fmt.Errorf("%d secrets have the label %s=%s; leave it on one", len(list.Items), LabelKeyUseDataForName, name)
}

func (m *Manager) create(ctx context.Context, object string, data map[string][]byte, labels map[string]string) (*corev1.Secret, error) {
	immutable := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: object, Labels: labels},
		Type:       corev1.SecretTypeOpaque, Immutable: &immutable, Data: data,
	}
	err := m.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		// Made by a pass that ended before it heard so. What it made is in use by then.
		err = m.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && secret.Labels[LabelKeyManagerIdentity] != m.Identity {
			err = fmt.Errorf("secret %q is there and does not belong to %q", object, m.Identity)
		}
	}
	if err != nil {
		return nil, err
	}
	m.all[object] = secret
	return secret, nil
}

// bundle makes the secret with the certificates or keys of a credential that are to be trusted.
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

// Class says which secret of a credential is meant.
type Class string

const (
	// Current is the newest one.
	Current Class = "current"
	// Old is the one it replaces, while both are in use.
	Old Class = "old"
	// Bundle is the one with the certificates or keys of both.
	Bundle Class = "bundle"
)

// Get returns a secret of a credential that was asked for before with Generate, or false if there is none of that class.
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

// Cleanup deletes the secrets of this identity that nobody asked for. Call it when everything that is still needed was.
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

// timeLabel returns the time in a label, or the zero time without one.
func timeLabel(secret *corev1.Secret, label string) time.Time {
	seconds, err := strconv.ParseInt(secret.Labels[label], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
