package bootstraptoken

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func TestRender(t *testing.T) {
	const userData = "a <<BOOTSTRAP_TOKEN>> b %3C%3CBOOTSTRAP_TOKEN%3E%3E c <<MACHINE_NAME>> d <<OTHER>>"
	if !Needed([]byte(userData)) || !Needed([]byte("%3C%3CBOOTSTRAP_TOKEN%3E%3E")) || Needed([]byte("<<MACHINE_NAME>>")) {
		t.Error("Needed is wrong")
	}
	if got, want := string(Render([]byte(userData), "t.1", "m")), "a t.1 b t.1 c m d <<OTHER>>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTokens(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	tokens := &Tokens{TargetCache: c, ExtraGroups: "system:bootstrappers:pool"}
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "1"}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expires := func() string {
		secrets := &corev1.SecretList{}
		if err := c.List(t.Context(), secrets); err != nil || len(secrets.Items) != 1 {
			t.Fatalf("there are %d Secrets (%v)", len(secrets.Items), err)
		}
		return string(secrets.Items[0].Data["expiration"])
	}
	ensure := func(now time.Time) string {
		token, err := tokens.Ensure(t.Context(), machine, now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := ensure(now)
	if got := expires(); got != "2026-01-02T04:04:05Z" {
		t.Errorf("expires %s", got)
	}
	// A second pass gets the same token, with a later expiration, so that the machine has as much time to join.
	if ensure(now.Add(10*time.Minute)) != first || expires() != "2026-01-02T04:14:05Z" {
		t.Errorf("the second token differs, or expires %s", expires())
	}
	if ensure(now) != first || expires() != "2026-01-02T04:14:05Z" {
		t.Errorf("a token that is valid for longer expires %s", expires())
	}
	for range 2 {
		if err := tokens.Delete(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	// A machine of the same name has another one.
	machine.UID = "2"
	if ensure(now) == first {
		t.Error("the token is that of another machine")
	}
}
