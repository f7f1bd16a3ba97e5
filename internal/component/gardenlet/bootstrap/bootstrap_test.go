package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/component/gardenlet/release"
)

const someKubeconfig = `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
"clusters":[{"name":"a","cluster":{"server":"https://a.example"}}],"users":[{"name":"a","user":{"token":"t"}}]}`

func secretWith(namespace, name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"}, Data: map[string][]byte{key: []byte(value)}}
}

func TestToken(t *testing.T) {
	now, c := time.Unix(0, 0), fake.NewClientBuilder().Build()
	of := Token{Namespace: "garden", Name: "a", Description: "for a"}
	ensure := func(of Token, at time.Time) string {
		t.Helper()
		token, err := of.Ensure(t.Context(), c, c, at)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := ensure(of, now)
	if again := ensure(of, now.Add(22*time.Hour)); again != first {
		t.Error("a valid token is not used again")
	}
	if later := ensure(of, now.Add(23*time.Hour+time.Minute)); later == first || later[:6] != first[:6] {
		t.Error("a token that ends soon is not replaced, or has another ID")
	}
	if other := ensure(Token{Namespace: "garden", Name: "b"}, now); other[:6] == first[:6] {
		t.Error("two gardenlets have the same token")
	}
	foreign := Token{Namespace: "garden", Name: "a", Description: "for b"}
	if _, err := foreign.Ensure(t.Context(), c, c, now); err == nil || !strings.Contains(err.Error(), "is not for the gardenlet") {
		t.Errorf("the token of something else: %v", err)
	}
	for _, tc := range []struct {
		of     Token
		exists bool
	}{{foreign, true}, {Token{Name: "none"}, true}, {of, false}} {
		if err := tc.of.Delete(t.Context(), c, c); err != nil {
			t.Fatal(err)
		}
		err := c.Get(t.Context(), of.key(), &corev1.Secret{})
		if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.exists {
			t.Errorf("after Delete of %+v: %v", tc.of, err)
		}
	}
}

// A gardenlet that cannot register for days has a valid token at any time, although one renewal of several fails.
func TestTokenIsRenewed(t *testing.T) {
	begin, c := time.Unix(0, 0), fake.NewClientBuilder().Build()
	of := Token{Namespace: "garden", Name: "a", Description: "for a"}
	for pass := range int(3 * tokenLife / RenewalPeriod) {
		now := begin.Add(time.Duration(pass) * RenewalPeriod)
		if pass > 0 {
			token := &corev1.Secret{}
			if err := c.Get(t.Context(), of.key(), token); err != nil {
				t.Fatal(err)
			}
			if expiration, err := time.Parse(time.RFC3339, string(token.Data["expiration"])); err != nil || !expiration.After(now) {
				t.Fatalf("the token has expired at %s, before pass %d at %s (%v)", expiration, pass, now, err)
			}
		}
		if pass%5 == 3 { // this one fails
			continue
		}
		if _, err := of.Ensure(t.Context(), c, c, now); err != nil {
			t.Fatal(err)
		}
	}
}

// Only Secrets that have kubeconfigs are deleted and overwritten.
func TestRead(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(
		secretWith("garden", "gardenlet-a", "kubeconfig", someKubeconfig), secretWith("garden", "gardenlet-b", "kubeconfig", "{}"), secretWith("garden", "gardenlet-c", "x", "y"),
	).Build()
	for name, want := range map[string]string{
		"gardenlet-a": "", "gardenlet-none": "",
		"gardenlet-b": "spec.config.gardenClientConnection.kubeconfigSecret", "gardenlet-c": `Secret "garden/gardenlet-c" exists and has no kubeconfig`,
	} {
		ref := func(name string) corev1.SecretReference {
			return corev1.SecretReference{Namespace: "garden", Name: name}
		}
		state, err := Read(t.Context(), c, release.Connection{Kubeconfig: ref(name), Bootstrap: ref("gardenlet-a")})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || !state.Bootstrapping {
			t.Errorf("Read(%s) = %+v, %v, want %q", name, state, err, want)
		}
		if state.Valid(time.Now()) {
			t.Errorf("%s has a certificate", name)
		}
	}
}

// A kubeconfig of a garden that was deleted is not used for one with the same address.
func TestOtherGarden(t *testing.T) {
	ca := func(name string) []byte {
		pem, _, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return pem
	}
	first, second, third := ca("first"), ca("second"), ca("third")
	for name, tc := range map[string]struct {
		trusted, bundle []byte
		want            bool
	}{
		"same":                   {trusted: first, bundle: first},
		"rotation has begun":     {trusted: first, bundle: slices.Concat(second, first)},
		"rotation has ended":     {trusted: slices.Concat(second, first), bundle: second},
		"other":                  {trusted: slices.Concat(first, second), bundle: third, want: true},
		"none in the kubeconfig": {bundle: first},
		"none in the garden":     {trusted: first},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig, err := Kubeconfig("https://garden.example.com", tc.trusted, "t")
			if err != nil {
				t.Fatal(err)
			}
			state := State{Kubeconfig: secretWith("garden", "gardenlet-kubeconfig", "kubeconfig", string(kubeconfig))}
			if got := state.OtherGarden(tc.bundle); got != tc.want {
				t.Errorf("OtherGarden() = %t", got)
			}
		})
	}
}
