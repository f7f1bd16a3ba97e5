package lifecycle

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestSeedsDone(t *testing.T) {
	const started, former, latter = "2026-01-02T03:04:05Z", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"
	seed := func(operation, until string, annotations ...string) *corev1beta1.Seed {
		s := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{}}}
		if operation != "" {
			s.Annotations["gardener.cloud/operation"] = operation
		}
		for i := 0; i < len(annotations); i += 2 {
			s.Annotations["operator.gardener.cloud/"+annotations[i]] = annotations[i+1]
		}
		if until != "" {
			at, err := time.Parse(time.RFC3339, until)
			if err != nil {
				t.Fatal(err)
			}
			s.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: at}
		}
		return s
	}
	const kubeconfig, tokens = "renew-kubeconfig", "renew-garden-access-secrets"
	for name, tc := range map[string]struct {
		operation string
		seed      *corev1beta1.Seed
		ignored   []string
		done      bool
	}{
		"not requested":                       {operation: tokens, seed: seed("", ""), done: true},
		"not begun":                           {operation: tokens, seed: seed(tokens, "", "requested-"+tokens, started)},
		"not begun, ignored":                  {operation: tokens, seed: seed(tokens, "", "requested-"+tokens, started), ignored: []string{"a"}, done: true},
		"begun":                               {operation: tokens, seed: seed("", former, "requested-"+tokens, started, "former-certificate-until", former), done: true},
		"of another rotation":                 {operation: tokens, seed: seed(tokens, "", "requested-"+tokens, former), done: true},
		"kubeconfig, not begun":               {operation: kubeconfig, seed: seed(kubeconfig, former, "requested-"+kubeconfig, started, "former-certificate-until", former)},
		"kubeconfig, requested":               {operation: kubeconfig, seed: seed("", former, "requested-"+kubeconfig, started, "former-certificate-until", former)},
		"kubeconfig, requested, ignored":      {operation: kubeconfig, seed: seed("", former, "requested-"+kubeconfig, started, "former-certificate-until", former), ignored: []string{"a"}, done: true},
		"kubeconfig, in use":                  {operation: kubeconfig, seed: seed("", latter, "requested-"+kubeconfig, started, "former-certificate-until", former), done: true},
		"kubeconfig, without an end":          {operation: kubeconfig, seed: seed("", "", "requested-"+kubeconfig, started, "former-certificate-until", ""), done: true},
		"kubeconfig, requested by an old one": {operation: kubeconfig, seed: seed("", former, "requested-"+kubeconfig, started), done: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := seedsDone([]*corev1beta1.Seed{tc.seed}, tc.ignored, tc.operation, started)
			if done := err == nil; done != tc.done {
				t.Errorf("done is %t, want %t: %v", done, tc.done, err)
			}
			if err != nil && !strings.Contains(err.Error(), "1 Seeds have not done operation "+tc.operation+": a;") {
				t.Errorf("the error does not name the Seed: %v", err)
			}
		})
	}
}

// A renewal of kubeconfigs is done when all gardenlets use their new one, and a run that was interrupted does not request it again.
func TestRenewKubeconfigs(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	garden := &operatorv1alpha1.Garden{}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: &at},
	}}
	virtual := stagetest.New(t).Shoot
	if err := seedmanagementv1alpha1.AddToScheme(virtual.Scheme()); err != nil {
		t.Fatal(err)
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: &at}}
	if err := virtual.Create(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	s := &state{reconciler: &reconciler{}, garden: garden, run: &stage.Run{Target: stage.NewConnectedTarget(virtual, stagetest.Discover)}}
	// run returns the Seed after a run.
	run := func(done bool) *corev1beta1.Seed {
		t.Helper()
		err := stagetest.UntilIdle(t, func(ctx context.Context) error { return s.operateSeeds(ctx, "renew-kubeconfig") })
		if (err == nil) != done {
			t.Fatalf("done is %t, want %t: %v", err == nil, done, err)
		}
		after := &corev1beta1.Seed{}
		if err := virtual.Get(t.Context(), client.ObjectKeyFromObject(seed), after); err != nil {
			t.Fatal(err)
		}
		return after
	}
	change := func(seed *corev1beta1.Seed, change func(*corev1beta1.Seed)) {
		t.Helper()
		change(seed)
		if err := virtual.Update(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}
	requested := run(false)
	if operation := requested.Annotations["gardener.cloud/operation"]; operation != "renew-kubeconfig" {
		t.Fatalf("operation %q is requested", operation)
	}
	change(requested, func(s *corev1beta1.Seed) { delete(s.Annotations, "gardener.cloud/operation") }) // as the gardenlet does
	begun := run(false)
	change(begun, func(s *corev1beta1.Seed) {
		s.Status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(at.Add(time.Hour)))
	})
	if operation := run(true).Annotations["gardener.cloud/operation"]; operation != "" {
		t.Errorf("operation %q is requested again", operation)
	}
}

// A Seed gets the operation as soon as its gardenlet has begun the other one.
func TestRequestOfSeedAfterAnotherOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		virtual := stagetest.New(t).Shoot
		seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}}}
		if err := virtual.Create(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), seedTimeout)
			defer cancel()
			done <- requestOfSeeds(ctx, virtual, nil, "renew-garden-access-secrets", "2026-01-02T03:04:05Z")
		}()
		synctest.Wait()
		delete(seed.Annotations, "gardener.cloud/operation")
		if err := virtual.Update(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := virtual.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
			t.Fatal(err)
		}
		if got := seed.Annotations["gardener.cloud/operation"]; got != "renew-garden-access-secrets" {
			t.Errorf("its operation is %q", got)
		}
	})
}

func TestShareOfProgress(t *testing.T) {
	for _, tc := range []struct {
		of         share
		flow, want int32
	}{{share{0, 100}, 0, 0}, {share{0, 100}, 50, 50}, {share{0, 30}, 0, 0}, {share{0, 30}, 99, 29}, {share{30, 100}, 0, 30}, {share{30, 100}, 50, 65}, {share{30, 100}, 99, 99}} {
		if got := tc.of.percent(tc.flow); got != tc.want {
			t.Errorf("%d%% of a flow from %d%% to %d%% are %d%%, want %d%%", tc.flow, tc.of.from, tc.of.to, got, tc.want)
		}
	}
}
