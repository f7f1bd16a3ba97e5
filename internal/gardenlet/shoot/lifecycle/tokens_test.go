package lifecycle

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/tokenrequestor"
)

// What runs in a control plane keeps its access to the cluster while the key of tokens is rotated.
func TestTokensOfARotatedKey(t *testing.T) {
	s, w := newStage(t), example()
	w.shoot.Spec.Provider.Workers, w.seed.Spec.Backup = nil, nil
	var made atomic.Int64 // they are asked for at the same time
	signer := ""
	shoot := interceptor.NewClient(s.shoot, interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, request client.Object, _ ...client.SubResourceCreateOption) error {
			n := made.Add(1)
			status := &request.(*authenticationv1.TokenRequest).Status //nolint:forcetypeassert // nothing else is asked for
			status.Token = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":%q}`, signer)) + fmt.Sprintf(".%d.x", n)
			status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(12 * time.Hour))
			return nil
		},
	})
	// run does what each reconciliation does, and returns the tokens.
	run := func(phase corev1beta1.CredentialsRotationPhase) map[string]string {
		t.Helper()
		w.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: phase},
		}}
		if phase != "" {
			w.shoot.Status.Credentials.Rotation.ServiceAccountKey.LastInitiationTime = new(metav1.NewTime(noon))
		}
		h := &hosted{reconciler: s.reconciler, world: w, shootClient: shoot}
		for _, step := range []func(context.Context) error{h.makeEtcdCredentials, h.makeCredentials} {
			if err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		public, err := publicKey(h.set.Current(constants.SecretNameServiceAccountKey))
		if err != nil {
			t.Fatal(err)
		}
		current, err := keyOf(public)
		if err != nil {
			t.Fatal(err)
		}
		signer = current.ID
		tokens := func() map[string]string {
			list, tokens := &corev1.SecretList{}, map[string]string{}
			if err := s.seed.List(t.Context(), list, client.MatchingLabels{"resources.gardener.cloud/purpose": "token-requestor"}); err != nil {
				t.Fatal(err)
			}
			for _, secret := range list.Items {
				if tokens[secret.Name], err = tokenrequestor.TokenIn(&secret); err != nil {
					t.Fatal(err)
				}
			}
			return tokens
		}
		before := tokens()
		orders, err := h.accessSecrets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.apply(t.Context(), orders...); err != nil {
			t.Fatal(err)
		}
		for name, token := range tokens() {
			if token != before[name] {
				t.Errorf("phase %q: Secret %q lost its token when it was ordered again", phase, name)
			}
		}
		if err := h.makeTokens(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := tokens()
		for name, token := range after {
			if !signedBy(token, signer) {
				t.Errorf("phase %q: the token in Secret %q is not signed by the key that is trusted from now on", phase, name)
			}
		}
		return after
	}
	first := run("")
	if len(first) != 4 || made.Load() != 4 {
		t.Fatalf("%d tokens in %d Secrets", made.Load(), len(first))
	}
	if run(""); made.Load() != 4 {
		t.Errorf("%d tokens, though nothing has changed", made.Load())
	}
	for i, phase := range []corev1beta1.CredentialsRotationPhase{
		corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleting, corev1beta1.RotationCompleted,
	} {
		if run(phase); made.Load() != 8 {
			t.Errorf("%d: %d tokens, want new ones once", i, made.Load())
		}
	}
}
