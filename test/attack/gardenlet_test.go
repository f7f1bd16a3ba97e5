package attack

import (
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

// Whoever takes over one seed has the identity of its gardenlet in the garden. It must not read the credentials of other seeds and of the
// shoots there, nor get the tokens of components of the garden; and still everything that its own shoots need.
func TestGardenletDoesNotReachOtherSeeds(t *testing.T) {
	g := startWith(t, env.Lenient(), env.WithAdmissionController())
	ctx := t.Context()
	if err := kube.Apply(ctx, g.c, "test", gardenrbac.Objects()...); err != nil {
		t.Fatal(err)
	}
	g.CallWebhooks(t)
	other := &corev1beta1.Seed{}
	if err := g.c.Get(ctx, client.ObjectKey{Name: seedName}, other); err != nil {
		t.Fatal(err)
	}
	other = &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: other.Spec}
	other.Spec.DNS.Provider.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns-other"}
	other.Spec.DNS.Internal.CredentialsRef = *other.Spec.DNS.Provider.CredentialsRef
	const shared = "garden-shared"
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"key": "private"}}
	}
	internal := func(namespace, name string) *corev1beta1.InternalSecret {
		return &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"key": "private"}}
	}
	account := func(namespace, name string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	g.create(t,
		namespace(shared), namespace("seed-other"), namespace("garden-victim"),
		secret(attackers, "evil"), secret("garden", "dns-other"), secret("seed-"+seedName, "own"), secret("seed-other", "own"),
		secret(shared, "infrastructure"), secret("garden-victim", "unused"), secret(attackers, "kubeconfig"),
		internal(attackers, "mine.ca-client"), internal(attackers, "theirs.ca-client"),
		account("seed-"+seedName, "extension"), account("seed-other", "extension"), account("garden", "gardener-controller-manager"),
		other,
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: attackers, Name: "shared"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: shared, Name: "infrastructure"},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		},
	)
	mine, theirs := newShoot("mine"), newShoot("theirs")
	theirs.Spec.SeedName, theirs.Spec.CredentialsBindingName = new("other"), new("shared")
	theirs.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{AdmissionPlugins: []corev1beta1.AdmissionPlugin{{
		Name: "ImagePolicyWebhook", KubeconfigSecretName: new("kubeconfig"),
	}}}
	g.create(t, mine, theirs)

	as := func(seed string) client.Client {
		c, err := client.New(g.Gardenlet(t, seed), client.Options{Scheme: g.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	attacker, neighbour := as(seedName), as("other")
	get := func(c client.Client, object client.Object) error {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy has its original's type
	}
	token := func(c client.Client, account *corev1.ServiceAccount) error {
		return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	}

	// What their own seeds need is allowed, in time.
	for name, try := range map[string]func() error{
		"credentials of its seed":                    func() error { return get(attacker, secret("garden", "dns")) },
		"credentials of its shoot":                   func() error { return get(attacker, secret(attackers, "evil")) },
		"Secrets of its namespace":                   func() error { return attacker.List(ctx, &corev1.SecretList{}, client.InNamespace("seed-"+seedName)) },
		"the token of its extension":                 func() error { return token(attacker, account("seed-"+seedName, "extension")) },
		"the CA of its shoot":                        func() error { return get(attacker, internal(attackers, "mine.ca-client")) },
		"the creation of what is published":          func() error { return attacker.Create(ctx, secret(attackers, "mine.ssh-keypair")) },
		"the deletion of what is published":          func() error { return attacker.Delete(ctx, secret(attackers, "mine.ssh-keypair")) },
		"credentials of its shoot elsewhere":         func() error { return get(neighbour, secret(shared, "infrastructure")) },
		"the kubeconfig of a plugin of its shoot":    func() error { return get(neighbour, secret(attackers, "kubeconfig")) },
		"the CA of its shoot in the same project":    func() error { return get(neighbour, internal(attackers, "theirs.ca-client")) },
		"credentials of the other seed, for itself":  func() error { return get(neighbour, secret("garden", "dns-other")) },
		"the token of an extension of the other one": func() error { return token(neighbour, account("seed-other", "extension")) },
	} {
		g.eventually(t, name, func() error { return client.IgnoreAlreadyExists(client.IgnoreNotFound(try())) })
	}

	for name, err := range map[string]error{
		"Secrets of all namespaces":               attacker.List(ctx, &corev1.SecretList{}),
		"all Secrets of a project":                attacker.List(ctx, &corev1.SecretList{}, client.InNamespace(attackers)),
		"InternalSecrets of all namespaces":       attacker.List(ctx, &corev1beta1.InternalSecretList{}),
		"credentials of another seed":             get(attacker, secret("garden", "dns-other")),
		"Secrets in the namespace of another one": get(attacker, secret("seed-other", "own")),
		"credentials of a shoot of another seed":  get(attacker, secret(shared, "infrastructure")),
		"a kubeconfig of a shoot of another seed": get(attacker, secret(attackers, "kubeconfig")),
		"the CA of a shoot of another seed":       get(attacker, internal(attackers, "theirs.ca-client")),
		"a Secret that no shoot refers to":        get(attacker, secret("garden-victim", "unused")),
		"the token of a component of the garden":  token(attacker, account("garden", "gardener-controller-manager")),
		"the token of another seed's extension":   token(attacker, account("seed-other", "extension")),
		"a ServiceAccount elsewhere":              attacker.Create(ctx, account("garden", "new")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the gardenlet of one seed has access to %s: %v", name, err)
		}
	}
	// Secrets of this type are filled with the token of a ServiceAccount.
	filled := secret(attackers, "mine.ssh-keypair")
	filled.Type, filled.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
	g.eventually(t, "a policy against Secrets with tokens", func() error {
		if err := attacker.Create(ctx, filled.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the gardenlet can create a Secret that is filled with a token: %w", err)
		}
		return nil
	})

	// What is not needed any more is not allowed any more.
	if err := g.c.Delete(ctx, mine); err != nil {
		t.Fatal(err)
	}
	g.eventually(t, "the end of access to the credentials of a deleted shoot", func() error {
		if err := get(attacker, secret(attackers, "evil")); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the gardenlet still has access: %w", err)
		}
		return nil
	})
}

// eventually repeats an attempt until it succeeds: the authorizer notices changes a moment later.
func (g *garden) eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%s: %v", what, err)
			return
		}
	}
}
