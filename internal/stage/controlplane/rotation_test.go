package controlplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// rotated returns inputs with credentials of a rotation in a phase.
func rotated(t *testing.T, clusters *stagetest.Clusters, phase corev1beta1.CredentialsRotationPhase) Inputs {
	t.Helper()
	o := observedtest.State()
	o.Shoot.Spec.Provider.Workers, o.Seed.Spec.Backup = nil, nil
	var begin *metav1.Time
	if phase != "" {
		begin = new(metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)))
	}
	o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{Phase: phase, LastInitiationTime: begin},
		ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{Phase: phase, LastInitiationTime: begin},
	}}
	in := inputs(t, clusters, o)
	stagetest.Generate(t, in.Credentials)
	return in
}

func TestRootCAIsPublished(t *testing.T) {
	clusters := stagetest.New(t)
	rotated(t, clusters, "")
	in := rotated(t, clusters, corev1beta1.RotationPreparing)
	in.Rotation.CA = true
	set, err := in.Credentials.All()
	if err != nil {
		t.Fatal(err)
	}
	bundle := string(set.Bundle("ca"))
	if strings.Count(bundle, "BEGIN CERTIFICATE") != 2 {
		t.Fatalf("the bundle of a rotation is not of two CAs: %s", bundle)
	}
	terminating := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "terminating", Finalizers: []string{"example.com/x"}, DeletionTimestamp: new(metav1.Now())}}
	configMap := func(namespace, ca string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": ca}}
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "static"}, Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"ca.crt": []byte("old")},
	}
	old := configMap("b", "old")
	for _, object := range []client.Object{
		terminating, configMap("terminating", "old"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, configMap("a", bundle),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, old, token, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
	} {
		if object == client.Object(terminating) {
			created := terminating.DeepCopy()
			created.DeletionTimestamp = nil
			if err := clusters.Shoot.Create(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			if err := clusters.Shoot.Delete(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := clusters.Shoot.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	published := func() error { return stagetest.RunTaskUntilIdle(t, Tasks(in), "root-ca-published") }
	err = published()
	for _, want := range []string{
		"ConfigMap kube-root-ca.crt does not have the new CA bundle in 2 namespaces: b, c", "1 Secrets with static tokens do not have the new CA bundle: a/static",
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	old.Data["ca.crt"], token.Data["ca.crt"] = bundle, []byte(bundle)
	for _, err := range []error{
		clusters.Shoot.Update(t.Context(), old), clusters.Shoot.Update(t.Context(), token), clusters.Shoot.Create(t.Context(), configMap("c", bundle)), published(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// Users get static tokens of the new key before the old one is not trusted any more, and keep no others after that.
func TestStaticTokens(t *testing.T) {
	clusters := stagetest.New(t)
	var set *credentials.Set
	sign := func(ctx context.Context, c client.WithWatch, secret *corev1.Secret) error { // as kube-controller-manager does
		if secret.Type != corev1.SecretTypeServiceAccountToken || len(secret.Data["token"]) > 0 {
			return nil
		}
		all, err := set.All()
		if err != nil {
			return err
		}
		id, err := serviceaccountkey.ID(all.Current("service-account-key"))
		if err != nil {
			return err
		}
		signed := secret.DeepCopy()
		signed.Data = map[string][]byte{"token": []byte(base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":%q}`, id)) + ".x.x")}
		return c.Update(ctx, signed)
	}
	shoot := interceptor.NewClient(clusters.Shoot, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if strings.HasPrefix(object.GetName(), "limited-token-") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, object.GetName(), errors.New("exceeded quota"))
			}
			err := c.Create(ctx, object, options...)
			if secret, ok := object.(*corev1.Secret); ok && err == nil {
				err = sign(ctx, c, secret)
			}
			return err
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			err := c.Update(ctx, object, options...)
			if secret, ok := object.(*corev1.Secret); ok && err == nil {
				err = sign(ctx, c, secret)
			}
			return err
		},
	})
	in := rotated(t, clusters, "")
	set = in.Credentials
	account := func(name string, secrets ...string) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		for _, secret := range secrets {
			a.Secrets = append(a.Secrets, corev1.ObjectReference{Name: secret})
		}
		return a
	}
	secret := func(name string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: kind}
	}
	for _, object := range []client.Object{
		account("plain"), account("pulling", "registry"), account("robot", "registry", "robot-token"),
		account("limited", "limited"), secret("limited", corev1.SecretTypeServiceAccountToken),
		secret("registry", corev1.SecretTypeDockerConfigJson), secret("robot-token", corev1.SecretTypeServiceAccountToken), secret("manual", corev1.SecretTypeServiceAccountToken),
	} {
		if err := shoot.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	// state returns the Secrets of ServiceAccounts, and which static tokens there are, and whether they are of the current key.
	state := func() map[string]string {
		t.Helper()
		got := map[string]string{}
		accounts, secrets := &corev1.ServiceAccountList{}, &corev1.SecretList{}
		if err := errors.Join(shoot.List(t.Context(), accounts), shoot.List(t.Context(), secrets)); err != nil {
			t.Fatal(err)
		}
		key, err := Inputs{Credentials: set}.currentKey()
		if err != nil {
			t.Fatal(err)
		}
		short := func(name string) string { return strings.Replace(name, key.suffix, "new", 1) }
		for _, a := range accounts.Items {
			var names []string
			for _, ref := range a.Secrets {
				names = append(names, short(ref.Name))
			}
			if a.Labels[keyNameLabel] == key.name {
				names = append(names, "labelled")
			}
			got["account "+a.Name] = strings.Join(names, " ")
		}
		for _, s := range secrets.Items {
			if s.Type == corev1.SecretTypeServiceAccountToken {
				got["secret "+short(s.Name)] = map[bool]string{true: "new key", false: "old key"}[key.signs(&s)]
			}
		}
		return got
	}
	run := func(phase corev1beta1.CredentialsRotationPhase, task string) {
		t.Helper()
		in := rotated(t, clusters, phase)
		set, in.Run.Target = in.Credentials, stage.NewConnectedTarget(shoot, stagetest.Discover)
		in.Rotation.PreparesKey, in.Rotation.CompletesKey = phase == corev1beta1.RotationPreparing, phase == corev1beta1.RotationCompleting
		for range 2 { // the task of a run that is repeated
			if err := stagetest.RunTaskUntilIdle(t, Tasks(in), task); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(corev1beta1.RotationPreparing, "new-static-tokens")
	if diff := cmp.Diff(map[string]string{
		"account plain": "", "account pulling": "registry", "account limited": "limited", "account robot": "robot-token-new registry robot-token labelled",
		"secret robot-token": "old key", "secret robot-token-new": "new key", "secret manual": "old key",
		"secret limited": "old key",
	}, state()); diff != "" {
		t.Errorf("while the rotation is prepared (-want +got):\n%s", diff)
	}
	run(corev1beta1.RotationCompleting, "old-static-tokens")
	if diff := cmp.Diff(map[string]string{
		"account plain": "", "account pulling": "registry", "account limited": "limited", "account robot": "robot-token-new registry", "secret robot-token-new": "new key", "secret manual": "new key",
		"secret limited": "new key",
	}, state()); diff != "" {
		t.Errorf("after the rotation (-want +got):\n%s", diff)
	}
}

func TestSecretName(t *testing.T) {
	long := strings.Repeat("a.", 126)
	key := signingKey{suffix: "abcdef"}
	for account, want := range map[string]string{"robot": "robot-token-abcdef", long: long[:239] + "-token-abcdef"} {
		got := key.secretName(account)
		if got != want || len(validation.IsDNS1123Subdomain(got)) > 0 {
			t.Errorf("secretName(%q) = %q, want %q", account, got, want)
		}
	}
}
