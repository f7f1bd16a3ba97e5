// Package tokenrequestor fills Secrets with tokens of ServiceAccounts of another cluster, and renews them.
//
// It reads and writes labelled Secrets of the source cluster; in the target cluster it writes the ServiceAccounts that they name and,
// if asked to, Secrets. Source: concepts.txt, Gardener Resource Manager, "TokenRequestor Controller".
package tokenrequestor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// passTimeout limits a reconciliation, which makes a few requests.
	passTimeout = time.Minute
	// defaultLifetime is how long a token is asked to be valid if the Secret does not say.
	defaultLifetime = 12 * time.Hour
	// renewShare is the share of a token's life after which it is renewed, and maxAge the time after which it is in any case.
	renewShare, maxAge = 0.8, 24 * time.Hour
	// maxEarly is how much of that time a token may be renewed earlier, so that those that were made at once do not stay together.
	maxEarly = 0.05
)

// Reconciler fills a Secret.
type Reconciler struct {
	// Class is that of the Secrets to fill. Empty means all of them.
	Class string
	// TargetNamespace is where all accounts are. Empty means where each Secret says.
	TargetNamespace string
	sourceClient    client.Client
	sourceReader    client.Reader
	targetClient    client.Client
	// caBundle returns the CA bundle of the target cluster.
	caBundle func() ([]byte, error)
	clock    clock.PassiveClock
	// valid is whether a token is still trusted. One that is not is replaced before its renewal is due.
	valid func(token string) bool
	// early returns a share of at most maxEarly.
	early func() float64
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	if err := r.sourceReader.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if secret.DeletionTimestamp != nil || !r.responsible(secret) {
		return reconcile.Result{}, nil
	}
	d, err := desiredOf(secret, r.TargetNamespace)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only an edit helps
	}
	if err := r.authorize(secret, d); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only another Secret, or an edit, helps
	}
	renewAt, err := r.fill(ctx, secret, d)
	if err != nil {
		if errors.Is(err, errKubeconfig) {
			err = reconcile.TerminalError(err)
		}
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: max(renewAt.Sub(r.clock.Now()), time.Second)}, nil
}

// desired is the token that the annotations of a Secret request.
type desired struct {
	account  types.NamespacedName
	labels   map[string]string
	lifetime time.Duration
	// withCA says that the CA bundle is written, too.
	withCA bool
	// target is the Secret in the target cluster that gets the token, or nil.
	target *types.NamespacedName
}

// desiredOf reads the annotations of a Secret. A namespace overrides that of the annotation.
func desiredOf(secret *corev1.Secret, namespace string) (desired, error) {
	a := secret.Annotations
	d := desired{
		account:  types.NamespacedName{Namespace: a[resourcesv1alpha1.ServiceAccountNamespace], Name: a[resourcesv1alpha1.ServiceAccountName]},
		lifetime: defaultLifetime,
		withCA:   a[resourcesv1alpha1.ServiceAccountInjectCABundle] == "true",
	}
	if namespace != "" {
		d.account.Namespace = namespace
	}
	for _, wanted := range []struct{ key, value string }{
		{resourcesv1alpha1.ServiceAccountNamespace, d.account.Namespace}, {resourcesv1alpha1.ServiceAccountName, d.account.Name},
	} {
		if wanted.value == "" {
			return d, fmt.Errorf("annotation %s is missing", wanted.key)
		}
	}
	if value := a[resourcesv1alpha1.ServiceAccountLabels]; value != "" {
		if err := json.Unmarshal([]byte(value), &d.labels); err != nil {
			return d, fmt.Errorf("annotation %s: %w", resourcesv1alpha1.ServiceAccountLabels, err)
		}
	}
	if value := a[resourcesv1alpha1.ServiceAccountTokenExpirationDuration]; value != "" {
		lifetime, err := time.ParseDuration(value)
		if err != nil || lifetime <= 0 {
			return d, fmt.Errorf("annotation %s: %q is not a duration such as 6h", resourcesv1alpha1.ServiceAccountTokenExpirationDuration, value)
		}
		d.lifetime = lifetime
	}
	targetNamespace, name := a[resourcesv1alpha1.TokenRequestorTargetSecretNamespace], a[resourcesv1alpha1.TokenRequestorTargetSecretName]
	if (targetNamespace == "") != (name == "") {
		return d, fmt.Errorf("annotations %s and %s: one of them is missing",
			resourcesv1alpha1.TokenRequestorTargetSecretNamespace, resourcesv1alpha1.TokenRequestorTargetSecretName)
	}
	if name != "" {
		d.target = &types.NamespacedName{Namespace: targetNamespace, Name: name}
	}
	return d, nil
}

// authorize returns an error if a Secret may not have the token that it requests. Tokens of the garden are for extensions, and none is for a copy of what
// users wrote.
func (r *Reconciler) authorize(secret *corev1.Secret, d desired) error {
	if usercopy.Is(secret) {
		return errors.New("the Secret is a copy of what users have in the garden: it gets no token")
	}
	if r.Class == resourcesv1alpha1.ResourceManagerClassGarden && !strings.HasPrefix(d.account.Name, constants.ExtensionGardenServiceAccountPrefix) {
		return fmt.Errorf("annotation %s: %q does not begin with %q, as ServiceAccounts of extensions in the garden do",
			resourcesv1alpha1.ServiceAccountName, d.account.Name, constants.ExtensionGardenServiceAccountPrefix)
	}
	if r.TargetNamespace != "" && d.target != nil && d.target.Namespace != r.TargetNamespace {
		return fmt.Errorf("annotation %s: %q is not the namespace %q of the ServiceAccounts",
			resourcesv1alpha1.TokenRequestorTargetSecretNamespace, d.target.Namespace, r.TargetNamespace)
	}
	return nil
}

// fill creates the ServiceAccount, writes a valid token into the Secret, and returns when it is to be renewed.
func (r *Reconciler) fill(ctx context.Context, secret *corev1.Secret, d desired) (time.Time, error) {
	account, created, err := r.ensureAccount(ctx, d)
	if err != nil {
		return time.Time{}, err
	}
	var bundle []byte
	if d.withCA {
		if bundle, err = r.caBundle(); err != nil {
			return time.Time{}, fmt.Errorf("read the CA bundle of the target cluster: %w", err)
		}
	}
	// The Secret that the token goes into.
	filled := secret
	if d.target != nil {
		if filled, err = r.readTarget(ctx, *d.target); err != nil {
			return time.Time{}, err
		}
		if raw, ok := secret.Data[resourcesv1alpha1.DataKeyKubeconfig]; ok && filled.Data[resourcesv1alpha1.DataKeyKubeconfig] == nil {
			filled.Data = with(filled.Data, resourcesv1alpha1.DataKeyKubeconfig, raw)
		}
	}
	token, err := TokenIn(filled)
	if err != nil {
		return time.Time{}, err
	}
	renewAt, err := time.Parse(time.RFC3339, secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp])
	tokenAccount := AccountIn(token)
	if err != nil || token == "" || created || (tokenAccount != "" && tokenAccount != account.UID) || !r.clock.Now().Before(renewAt) || !r.valid(token) {
		logf.FromContext(ctx).Info("Requesting a token", "serviceAccount", d.account)
		if token, renewAt, err = r.request(ctx, account, d.lifetime); err != nil {
			return time.Time{}, err
		}
	}
	data, err := fillData(filled.Data, token, bundle)
	if err != nil {
		return time.Time{}, err
	}
	if d.target != nil {
		if err := r.writeTarget(ctx, filled, data); err != nil {
			return time.Time{}, err
		}
		data = maps.Clone(secret.Data)
		delete(data, resourcesv1alpha1.DataKeyToken)
	}
	// The time comes with or after the token: if the process ends in between, there is one more token.
	after := secret.DeepCopy()
	after.Data = data
	after.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp] = renewAt.UTC().Format(time.RFC3339)
	if apiequality.Semantic.DeepEqual(secret, after) {
		return renewAt, nil
	}
	if err := r.sourceClient.Patch(ctx, after, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})); err != nil {
		return time.Time{}, fmt.Errorf("write the token: %w", err)
	}
	return renewAt, nil
}

// ensureAccount returns the ServiceAccount, and whether it had to be created.
func (r *Reconciler) ensureAccount(ctx context.Context, d desired) (*corev1.ServiceAccount, bool, error) {
	account := &corev1.ServiceAccount{}
	err := r.targetClient.Get(ctx, d.account, account)
	if apierrors.IsNotFound(err) {
		account = &corev1.ServiceAccount{
			ObjectMeta:                   metav1.ObjectMeta{Namespace: d.account.Namespace, Name: d.account.Name, Labels: d.labels},
			AutomountServiceAccountToken: new(false),
		}
		switch err := r.targetClient.Create(ctx, account); {
		case apierrors.IsAlreadyExists(err): // another Secret is for the same ServiceAccount
			if err := r.targetClient.Get(ctx, d.account, account); err != nil {
				return nil, false, fmt.Errorf("read ServiceAccount %s: %w", d.account, err)
			}
			return account, false, nil
		case err != nil:
			// A missing namespace is not routine: the error has to be reported.
			return nil, false, fmt.Errorf("create ServiceAccount %s: %s", d.account, err) //nolint:errorlint // see above
		}
		return account, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read ServiceAccount %s: %w", d.account, err)
	}
	before := account.DeepCopy()
	for key, value := range d.labels {
		metav1.SetMetaDataLabel(&account.ObjectMeta, key, value)
	}
	account.AutomountServiceAccountToken = new(false)
	if apiequality.Semantic.DeepEqual(before, account) {
		return account, false, nil
	}
	if err := r.targetClient.Patch(ctx, account, client.MergeFrom(before)); err != nil {
		return nil, false, fmt.Errorf("patch ServiceAccount %s: %w", d.account, err)
	}
	return account, false, nil
}

// request returns a new token and when it is to be renewed.
func (r *Reconciler) request(ctx context.Context, account *corev1.ServiceAccount, lifetime time.Duration) (string, time.Time, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime / time.Second))}}
	now := r.clock.Now()
	if err := r.targetClient.SubResource("token").Create(ctx, account, request); err != nil {
		return "", time.Time{}, fmt.Errorf("request a token of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return request.Status.Token, renewal(now, request.Status.ExpirationTimestamp.Time, r.early()), nil
}

// renewal returns when a token is to be renewed that was made now.
func renewal(now, expires time.Time, early float64) time.Time {
	age := min(time.Duration(renewShare*float64(expires.Sub(now))), maxAge)
	return now.Add(time.Duration((1 - early) * float64(age)))
}

// readTarget returns a Secret of the target cluster, which may not exist.
func (r *Reconciler) readTarget(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.targetClient.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Secret %s of the target cluster: %w", key, err)
	}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	return secret, nil
}

func (r *Reconciler) writeTarget(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	before := secret.DeepCopy()
	secret.Data = data
	var err error
	switch {
	case secret.ResourceVersion == "":
		secret.Type = corev1.SecretTypeOpaque
		err = r.targetClient.Create(ctx, secret)
	case !apiequality.Semantic.DeepEqual(before.Data, data):
		err = r.targetClient.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s of the target cluster: %s", client.ObjectKeyFromObject(secret), err) //nolint:errorlint // not routine
	}
	return nil
}
