package controlplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/shoot/values"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/tokenrequestor"
)

// inputs returns the inputs for a shoot, whose credentials are not opened yet.
func inputs(t *testing.T, clusters *stagetest.Clusters, o *observed.State) Inputs {
	t.Helper()
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(values.Credentials(o, clusters.Seed, clock.RealClock{}))
	source := values.Source{State: o, Credentials: set, Images: images}
	return Inputs{
		Run: clusters.Run(), Credentials: set, Replicas: 1, ResourceManager: source.ResourceManager, System: source.System, Kubeconfigs: source.Kubeconfigs(),
	}
}

// Viewers can read custom resources of users, unless they are encrypted. The kube-apiserver is asked once in a run.
func TestViewersReadWhatTheAPIServerServes(t *testing.T) {
	clusters, o := stagetest.New(t), observedtest.State()
	o.Shoot.Spec.Provider.Workers = nil
	o.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"keys.example.com"}}}
	in := inputs(t, clusters, o)
	stagetest.Generate(t, in.Credentials)
	asked, fails := 0, true
	in.Run.Target = stage.NewConnectedTarget(clusters.Shoot, func(*rest.Config) ([]*metav1.APIResourceList, error) {
		if asked++; fails {
			return nil, errors.New("no answer")
		}
		read := metav1.Verbs{"get", "list", "watch"}
		return []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Verbs: read}, {Name: "keys", Verbs: read}}}}, nil
	})
	if err := in.grant(t.Context(), clusters.Shoot); err == nil {
		t.Error("permissions are granted although the kinds are not known")
	}
	fails = false
	for range 2 {
		if err := in.grant(t.Context(), clusters.Shoot); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 2 {
		t.Errorf("the API server was asked %d times", asked)
	}
	role := &rbacv1.ClusterRole{}
	if err := clusters.Shoot.Get(t.Context(), client.ObjectKey{Name: "gardener.cloud:system:read-only"}, role); err != nil {
		t.Fatal(err)
	}
	readable := func(group, resource string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
		})
	}
	if !readable("example.com", "things") || !readable("", "pods") {
		t.Errorf("viewers do not see everything: %v", role.Rules)
	}
	if readable("example.com", "keys") || readable("", "secrets") {
		t.Errorf("viewers see what is secret: %v", role.Rules)
	}
}

// Control plane components keep their access to the cluster while the key of tokens is rotated.
func TestTokensOfARotatedKey(t *testing.T) {
	clusters, o := stagetest.New(t), observedtest.State()
	o.Shoot.Spec.Provider.Workers, o.Seed.Spec.Backup = nil, nil
	var made atomic.Int64 // they are asked for at the same time
	signer := ""
	shoot := interceptor.NewClient(clusters.Shoot, interceptor.Funcs{
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
		o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: phase},
		}}
		if phase != "" {
			o.Shoot.Status.Credentials.Rotation.ServiceAccountKey.LastInitiationTime = new(metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)))
		}
		in := inputs(t, clusters, o)
		in.Run.Target = stage.NewConnectedTarget(shoot, stagetest.Discover)
		set := stagetest.Generate(t, in.Credentials)
		var err error
		if signer, err = serviceaccountkey.ID(set.Current(constants.SecretNameServiceAccountKey)); err != nil {
			t.Fatal(err)
		}
		tokens := func() map[string]string {
			list, tokens := &corev1.SecretList{}, map[string]string{}
			if err := clusters.Seed.List(t.Context(), list, client.MatchingLabels{"resources.gardener.cloud/purpose": "token-requestor"}); err != nil {
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
		if err := in.applyAccessSecrets(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, token := range tokens() {
			if token != before[name] {
				t.Errorf("phase %q: Secret %q lost its token when it was applied again", phase, name)
			}
		}
		if err := in.requestTokens(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := tokens()
		for name, token := range after {
			if !serviceaccountkey.Signs(signer, token) {
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
