package bastion

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

// withNodes returns the provider of a Shoot with nodes.
func withNodes() corev1beta1.Provider {
	return corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a"}}}
}

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(d))) }
	onSeed := func(seed string) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{SeedName: &seed, Provider: withNodes()}}
	}
	beingDeleted := onSeed("a")
	beingDeleted.DeletionTimestamp = in(0)
	noAccess := onSeed("a")
	noAccess.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{Enabled: false}}
	workerless := onSeed("a")
	workerless.Spec.Provider.Workers = nil
	for name, tc := range map[string]struct {
		shoot      *corev1beta1.Shoot
		created    time.Duration
		expiration *metav1.Time
		noSeed     bool
		want       string
		recheck    time.Duration
	}{
		"needed, without a heartbeat yet":     {shoot: onSeed("a"), created: time.Hour, recheck: 23 * time.Hour},
		"needed, until it expires":            {shoot: onSeed("a"), created: time.Hour, expiration: in(time.Hour), recheck: time.Hour},
		"needed, expires after its lifetime":  {shoot: onSeed("a"), created: 23 * time.Hour, expiration: in(2 * time.Hour), recheck: time.Hour},
		"expired now":                         {shoot: onSeed("a"), created: time.Hour, expiration: in(0), want: "it has expired"},
		"too old, although it has heartbeats": {shoot: onSeed("a"), created: 24 * time.Hour, expiration: in(time.Hour), want: "it has reached its maximum lifetime"},
		"shoot not found":                     {want: "its shoot does not exist any more"},
		"shoot being deleted":                 {shoot: beingDeleted, want: "its shoot is being deleted"},
		"shoot on another seed":               {shoot: onSeed("b"), want: "its shoot was migrated to another seed"},
		"shoot on no seed":                    {shoot: &corev1beta1.Shoot{}, want: "its shoot was migrated to another seed"},
		"shoot without SSH access":            {shoot: noAccess, want: "nodes of its shoot allow no SSH access"},
		"shoot without nodes":                 {shoot: workerless, want: "nodes of its shoot allow no SSH access"},
		"the Bastion has no seed":             {shoot: onSeed("b"), noSeed: true, recheck: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bastion := &operationsv1alpha1.Bastion{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *in(-tc.created)},
				Spec:       operationsv1alpha1.BastionSpec{SeedName: new("a")},
				Status:     operationsv1alpha1.BastionStatus{ExpirationTimestamp: tc.expiration},
			}
			if tc.noSeed {
				bastion.Spec.SeedName = nil
			}
			if got, recheck := decide(bastion, tc.shoot, now, 24*time.Hour); got != tc.want || recheck != tc.recheck {
				t.Errorf("decide() = %q, %s, want %q, %s", got, recheck, tc.want, tc.recheck)
			}
		})
	}
}

// A Bastion may be in the cache before its Shoot.
func TestShootThatIsNotCachedYet(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), operationsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "a"}, Spec: corev1beta1.ShootSpec{SeedName: new("east"), Provider: withNodes()}}
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "b", CreationTimestamp: metav1.Now()},
		Spec:       operationsv1alpha1.BastionSpec{SeedName: new("east")},
	}
	bastion.Spec.ShootRef.Name = shoot.Name
	for name, live := range map[string][]client.Object{"it exists": {shoot}, "it does not exist": nil} {
		t.Run(name, func(t *testing.T) {
			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bastion.DeepCopy()).Build()
			r := &reconciler{
				gardenCache: cached, gardenAPI: fake.NewClientBuilder().WithScheme(scheme).WithObjects(live...).Build(),
				Values: Values{Clock: clock.RealClock{}, MaxLifetime: time.Hour},
			}
			if _, err := r.Reconcile(t.Context(), bastion.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			err := cached.Get(t.Context(), client.ObjectKeyFromObject(bastion), &operationsv1alpha1.Bastion{})
			if kept := err == nil; kept != (live != nil) {
				t.Errorf("the Bastion exists: %t (%v)", kept, err)
			}
		})
	}
}
