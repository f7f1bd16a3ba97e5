package managedseed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/bootstrap"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/pkg/secrets"
)

func TestSpread(t *testing.T) {
	object := func(generation, observed int64, deleted bool, healthy ...corev1beta1.ConditionStatus) *seedmanagementv1alpha1.ManagedSeed {
		m := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		m.Status.ObservedGeneration = observed
		for _, status := range healthy {
			m.Status.Conditions = append(m.Status.Conditions, corev1beta1.Condition{Type: seedmanagementv1alpha1.ManagedSeedGardenletHealthy, Status: status})
		}
		if deleted {
			m.DeletionTimestamp = &metav1.Time{}
		}
		return m
	}
	for name, tc := range map[string]struct {
		object         *seedmanagementv1alpha1.ManagedSeed
		create         bool
		update, jitter bool
	}{
		"new":            {object(1, 0, false), false, false, true},
		"in deletion":    {object(3, 3, true), false, false, false},
		"changed":        {object(3, 2, false), true, false, true},
		"as it is to be": {object(3, 3, false), true, true, true},
		"healthy":        {object(3, 3, false, corev1beta1.ConditionTrue), true, true, true},
		"tried":          {object(3, 3, false, corev1beta1.ConditionProgressing), false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := []bool{spreadCreate(tc.object), spreadUpdate(tc.object, false), spreadUpdate(tc.object, true)}
			if diff := cmp.Diff([]bool{tc.create, tc.update, tc.jitter}, got); diff != "" {
				t.Errorf("spread after a start, an update, an update with jitter (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShootReconciled(t *testing.T) {
	shoot := func(observed int64, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		s.Status.ObservedGeneration = observed
		if state != "" {
			s.Status.LastOperation = &corev1beta1.LastOperation{State: state}
		}
		return s
	}
	for name, tc := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  bool
	}{
		"reconciled":      {shoot(2, corev1beta1.LastOperationStateSucceeded), true},
		"changed":         {shoot(1, corev1beta1.LastOperationStateSucceeded), false},
		"being changed":   {shoot(2, corev1beta1.LastOperationStateProcessing), false},
		"failed":          {shoot(2, corev1beta1.LastOperationStateFailed), false},
		"not created yet": {shoot(2, ""), false},
	} {
		if got := shootReconciled(tc.shoot); got != tc.want {
			t.Errorf("%s: shootReconciled() = %t", name, got)
		}
	}
}

func TestNeedsBootstrap(t *testing.T) {
	now := time.Unix(1000, 0)
	invalid := bootstrap.State{Kubeconfig: &corev1.Secret{}}
	seed := func(expiration time.Time) *corev1beta1.Seed {
		return &corev1beta1.Seed{Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: &metav1.Time{Time: expiration}}}
	}
	good, bad := seed(now.Add(time.Hour)), seed(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		state bootstrap.State
		renew bool
		seed  *corev1beta1.Seed
		want  bool
	}{
		"new":                                    {want: true},
		"it starts, not registered":              {state: bootstrap.State{Bootstrapping: true}, want: true},
		"it starts, to be renewed":               {state: bootstrap.State{Bootstrapping: true}, seed: good},
		"it starts, its certificate has expired": {state: bootstrap.State{Bootstrapping: true}, seed: bad, want: true},
		"its kubeconfig is lost":                 {seed: good, want: true},
		"its kubeconfig has no certificate":      {state: invalid, seed: good, want: true},
		"an operator renews it":                  {state: bootstrap.State{Bootstrapping: true}, renew: true, seed: good, want: true},
		"a Seed that says no expiration":         {state: bootstrap.State{Bootstrapping: true}, seed: &corev1beta1.Seed{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needsBootstrap(tc.state, tc.renew, tc.seed, now); got != tc.want {
				t.Errorf("needsBootstrap() = %t", got)
			}
		})
	}
}

// An operation is done when the gardenlet has a kubeconfig that is not the one that was there when it began.
func TestRenewalOf(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	at := func(minutes time.Duration) string { return now.Add(minutes * time.Minute).Format(time.RFC3339) }
	kubeconfig := func(uid types.UID, issued time.Time) bootstrap.State {
		data := kubeconfigOf(t, issued)
		return bootstrap.State{Kubeconfig: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: uid}, Data: map[string][]byte{"kubeconfig": data}}}
	}
	for name, tc := range map[string]struct {
		operation, annotation, bootstrapped string
		state                               bootstrap.State
		want                                renewal
	}{
		"nothing is requested":             {state: kubeconfig("old", now)},
		"what is left of another":          {annotation: at(-9) + " old", state: kubeconfig("old", now)},
		"it is requested":                  {operation: "renew-kubeconfig", state: kubeconfig("old", now), want: renewal{Requested: true, Restarts: true}},
		"it is requested, years after one": {operation: "renew-kubeconfig", bootstrapped: at(-99), state: kubeconfig("old", now), want: renewal{Requested: true, Restarts: true}},
		"a pass has ended before the deletion": {
			operation: "renew-kubeconfig", annotation: at(-9) + " old", bootstrapped: at(-99), state: kubeconfig("old", now), want: renewal{Requested: true, Begun: true, Restarts: true},
		},
		"a pass has ended after the deletion": {
			operation: "renew-kubeconfig", annotation: at(-9) + " old", bootstrapped: at(-99), want: renewal{Requested: true, Begun: true, Restarts: true},
		},
		"its pods start, and need another token soon": {
			operation: "renew-kubeconfig", annotation: at(-9) + " old", bootstrapped: at(-9), state: bootstrap.State{Bootstrapping: true}, want: renewal{Requested: true, Begun: true},
		},
		"it has a new kubeconfig":      {operation: "renew-kubeconfig", annotation: at(-9) + " old", bootstrapped: at(-9), state: kubeconfig("new", now), want: renewal{Begun: true}},
		"it had none, and has one now": {operation: "renew-kubeconfig", annotation: at(-9) + " ", bootstrapped: at(-9), state: kubeconfig("new", now), want: renewal{Begun: true}},
		"the new one has expired": {
			operation: "renew-kubeconfig", annotation: at(-9) + " old", bootstrapped: at(-9), state: kubeconfig("new", now.Add(-24*time.Hour)), want: renewal{Requested: true, Begun: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				"gardener.cloud/operation": tc.operation, "seedmanagement.gardener.cloud/renewal": tc.annotation,
			}}}
			if diff := cmp.Diff(tc.want, renewalOf(object, tc.state, tc.bootstrapped, now)); diff != "" {
				t.Errorf("renewalOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// kubeconfigOf returns a kubeconfig with a certificate that is valid for an hour.
func kubeconfigOf(t *testing.T, issued time.Time) []byte {
	t.Helper()
	ca, err := secrets.New(t.Context(), secrets.Values{Client: fake.NewClientBuilder().Build(), Namespace: "a", Identity: "gardenlet", Clock: clocktesting.NewFakePassiveClock(issued)})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ca.Generate(t.Context(), &secrets.CertificateAuthority{Name: "ca", CommonName: "ca"})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := secrets.IssueKubeconfig(&secrets.Kubeconfig{
		Name: "garden", Server: "https://garden", CA: signer.Data[secrets.DataKeyCertificateCA],
		Certificate: &secrets.Certificate{CommonName: "gardenlet", Usage: secrets.ClientCert, Validity: time.Hour},
	}, signer, issued)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func TestChanged(t *testing.T) {
	type seeds = map[string]corev1beta1.ConditionStatus
	before := seeds{"gone": "True", "same": "True", "silent": "True", "own": "True", "starting": ""}
	after := seeds{"same": "True", "silent": "Unknown", "new": "", "starting": ""}
	if diff := cmp.Diff([]string{"gone", "new", "silent"}, changed(before, after, "own")); diff != "" {
		t.Errorf("changed() (-want +got):\n%s", diff)
	}
}

// A gardenlet that cannot delete its Seed, as its certificate has expired, gets another one.
func TestRevives(t *testing.T) {
	now := time.Unix(0, 0)
	seed := func(expiration time.Duration) *corev1beta1.Seed {
		return &corev1beta1.Seed{Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: new(metav1.NewTime(now.Add(expiration)))}}
	}
	for name, tc := range map[string]struct {
		seed      *corev1beta1.Seed
		operation string
		state     corev1beta1.LastOperationState
		want      bool
	}{
		"its certificate is valid":             {seed: seed(time.Hour), state: corev1beta1.LastOperationStateSucceeded},
		"its certificate has expired":          {seed: seed(-time.Second), state: corev1beta1.LastOperationStateSucceeded, want: true},
		"an operator wants another one":        {seed: seed(time.Hour), operation: "renew-kubeconfig", state: corev1beta1.LastOperationStateSucceeded, want: true},
		"its Seed is gone":                     {operation: "renew-kubeconfig", state: corev1beta1.LastOperationStateSucceeded},
		"its certificate has expired, no pods": {seed: seed(-time.Second), state: corev1beta1.LastOperationStateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			object := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/operation": tc.operation}}}
			shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: &corev1beta1.LastOperation{State: tc.state}}}
			if got := revives(object, shoot, tc.seed, now); got != tc.want {
				t.Errorf("revives() = %t", got)
			}
		})
	}
}

// A gardenlet that was rolled back is not tried again because it needs new credentials.
func TestRetries(t *testing.T) {
	now := time.Unix(0, 0)
	seed := func(expiration time.Duration) *corev1beta1.Seed {
		return &corev1beta1.Seed{Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: new(metav1.NewTime(now.Add(expiration)))}}
	}
	for name, tc := range map[string]struct {
		generation int64
		operation  string
		seed       *corev1beta1.Seed
		want       bool
	}{
		"nothing is requested":                            {2, "", seed(time.Hour), false},
		"an operator reconciles, or changes it":           {3, "", seed(time.Hour), true},
		"an operator reconciles, its Seed does not exist": {3, "", nil, true},
		"an operator renews its certificate":              {3, "renew-kubeconfig", seed(time.Hour), false},
		"it is reconciled as its certificate has expired": {3, "", seed(-time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{
				Generation: tc.generation, Annotations: map[string]string{"gardener.cloud/operation": tc.operation},
			}}
			if got := retries(&trial.Trial{Generation: 2}, object, tc.seed, now); got != tc.want {
				t.Errorf("retries() = %t, want %t", got, tc.want)
			}
		})
	}
}
