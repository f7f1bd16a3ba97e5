package registry

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
)

func strategyOf(t *testing.T, kindName string) strategy {
	t.Helper()
	for _, k := range kinds(core.Options{}) {
		if k.gvk.Kind == kindName {
			return strategy{kind: k}
		}
	}
	t.Fatalf("there is no kind %s", kindName)
	return strategy{}
}

func operated(operation string) map[string]string {
	return map[string]string{constants.GardenerOperation: operation}
}

// A new generation makes controllers work, so it counts what is new for them, once.
func TestGenerations(t *testing.T) {
	type result struct {
		Counted   bool
		Operation string
	}
	shoot := func(state corev1beta1.LastOperationState, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{}
		if state != "" {
			s.Status.LastOperation = &corev1beta1.LastOperation{State: state}
		}
		for _, f := range change {
			f(s)
		}
		return s
	}
	annotated := func(operation string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Annotations = operated(operation) }
	}
	confined := func(s *corev1beta1.Shoot) {
		s.Spec.Maintenance = &corev1beta1.Maintenance{ConfineSpecUpdateRollout: new(true)}
	}
	hibernated := func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)} }
	purpose := func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) }
	const succeeded, failed = corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateFailed
	seed := func(operation string) *corev1beta1.Seed {
		return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Annotations: operated(operation)}}
	}
	entry := func(operation string) *corev1beta1.BackupEntry {
		return &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Annotations: operated(operation)}}
	}
	for name, tc := range map[string]struct {
		kind     string
		old, obj runtime.Object
		want     result
	}{
		"no change":                          {"Shoot", shoot(succeeded), shoot(succeeded), result{}},
		"a changed spec":                     {"Shoot", shoot(""), shoot("", purpose), result{Counted: true}},
		"a change that waits":                {"Shoot", shoot("", confined), shoot("", confined, purpose), result{}},
		"hibernation does not wait":          {"Shoot", shoot("", confined), shoot("", confined, hibernated), result{Counted: true}},
		"reconcile":                          {"Shoot", shoot(succeeded), shoot(succeeded, annotated("reconcile")), result{Counted: true}},
		"reconcile what was never created":   {"Shoot", shoot(""), shoot("", annotated("reconcile")), result{Operation: "reconcile"}},
		"reconcile what failed":              {"Shoot", shoot(failed), shoot(failed, annotated("reconcile")), result{Operation: "reconcile"}},
		"retry what failed":                  {"Shoot", shoot(failed), shoot(failed, annotated("retry")), result{Counted: true}},
		"retry what succeeded":               {"Shoot", shoot(succeeded), shoot(succeeded, annotated("retry")), result{Operation: "retry"}},
		"maintain is not for the gardenlet":  {"Shoot", shoot(succeeded), shoot(succeeded, annotated("maintain")), result{Operation: "maintain"}},
		"rotation, which the gardenlet ends": {"Shoot", shoot(succeeded), shoot(succeeded, annotated("rotate-ca-start")), result{true, "rotate-ca-start"}},
		"rotation that has begun": {
			"Shoot", shoot(succeeded, annotated("rotate-ca-start")), shoot(succeeded, annotated("rotate-ca-start")), result{false, "rotate-ca-start"},
		},
		"two operations":              {"Shoot", shoot(succeeded), shoot(succeeded, annotated("reconcile;rotate-ssh-keypair")), result{true, "rotate-ssh-keypair"}},
		"rollout of one pool":         {"Shoot", shoot(succeeded), shoot(succeeded, annotated("rollout-workers=a")), result{true, "rollout-workers=a"}},
		"reconcile a seed":            {"Seed", &corev1beta1.Seed{}, seed("reconcile"), result{Counted: true}},
		"renew a seed's kubeconfig":   {"Seed", &corev1beta1.Seed{}, seed("renew-kubeconfig"), result{true, "renew-kubeconfig"}},
		"unknown operation of a seed": {"Seed", &corev1beta1.Seed{}, seed("retry"), result{Operation: "retry"}},
		"migrate a backup entry":      {"BackupEntry", &corev1beta1.BackupEntry{}, entry("migrate"), result{Counted: true}},
		"restore a backup entry":      {"BackupEntry", &corev1beta1.BackupEntry{}, entry("restore"), result{true, "restore"}},
		"wait for a backup entry":     {"BackupEntry", &corev1beta1.BackupEntry{}, entry("wait-for-state"), result{Operation: "wait-for-state"}},
	} {
		t.Run(name, func(t *testing.T) {
			metaOf(tc.old).Generation = 5
			strategyOf(t, tc.kind).PrepareForUpdate(t.Context(), tc.obj, tc.old)
			meta := metaOf(tc.obj)
			got := result{Counted: meta.Generation == 6, Operation: meta.Annotations[constants.GardenerOperation]}
			if meta.Generation != 5 && meta.Generation != 6 {
				t.Errorf("generation is %d, was 5", meta.Generation)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("after the update (-want +got):\n%s", diff)
			}
		})
	}
}

// A binding is a new generation even if other changes wait for the maintenance time window.
func TestBindingCounts(t *testing.T) {
	old := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Generation: 5},
		Spec:       corev1beta1.ShootSpec{Maintenance: &corev1beta1.Maintenance{ConfineSpecUpdateRollout: new(true)}},
		Status:     corev1beta1.ShootStatus{TechnicalID: "shoot--a--b"},
	}
	shoot := old.DeepCopy()
	shoot.Spec.SeedName, shoot.Status = new("seed"), corev1beta1.ShootStatus{}
	bindingStrategy{strategyOf(t, "Shoot")}.PrepareForUpdate(t.Context(), shoot, old)
	if shoot.Generation != 6 || shoot.Status.TechnicalID != "shoot--a--b" {
		t.Errorf("generation %d, technical ID %q; want 6, and the status kept", shoot.Generation, shoot.Status.TechnicalID)
	}
}

// A bastion lives for an hour from its creation, and from each heartbeat.
func TestHeartbeat(t *testing.T) {
	s := strategyOf(t, "Bastion")
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Annotations: operated("keepalive")}}
	s.PrepareForCreate(t.Context(), bastion)
	s.Canonicalize(bastion)
	first := bastion.Status.ExpirationTimestamp
	if first == nil || len(bastion.Annotations) != 0 || first.Sub(bastion.Status.LastHeartbeatTimestamp.Time) != time.Hour {
		t.Fatalf("new bastion is %+v", bastion)
	}
	old := bastion.DeepCopy()
	old.Status.LastHeartbeatTimestamp, old.Status.ExpirationTimestamp = new(metav1.NewTime(time.Unix(0, 0))), new(metav1.NewTime(time.Unix(3600, 0)))
	same := old.DeepCopy()
	s.PrepareForUpdate(t.Context(), same, old)
	if diff := cmp.Diff(old, same); diff != "" {
		t.Errorf("an update without a heartbeat changes (-old +new):\n%s", diff)
	}
	alive := old.DeepCopy()
	alive.Annotations = operated("keepalive")
	s.PrepareForUpdate(t.Context(), alive, old)
	s.Canonicalize(alive)
	if alive.Status.ExpirationTimestamp.Before(first) || len(alive.Annotations) != 0 || alive.Generation != old.Generation {
		t.Errorf("after a heartbeat: %+v", alive)
	}
}

// What clients may overwrite without saying which version they have seen is part of the API.
func TestUnconditionalUpdates(t *testing.T) {
	var got []string
	for _, k := range kinds(core.Options{}) {
		if (strategy{kind: k}).AllowUnconditionalUpdate() {
			got = append(got, k.plural)
		}
	}
	slices.Sort(got)
	want := []string{"cloudprofiles", "internalsecrets", "namespacedcloudprofiles", "projects", "quotas", "secretbindings", "seeds"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestRotationWarnings(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	settings := Settings{RotationInterval: 90 * 24 * time.Hour, Clock: testingclock.NewFakePassiveClock(now)}
	daysAgo := func(days int) *metav1.Time { return &metav1.Time{Time: now.AddDate(0, 0, -days)} }
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *daysAgo(89)}}
	if got := rotationWarnings(shoot, settings); len(got) > 0 {
		t.Errorf("a new shoot has warnings: %q", got)
	}
	shoot.CreationTimestamp = *daysAgo(100)
	shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: daysAgo(95)},
		ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{LastInitiationTime: daysAgo(1)},
		ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{LastInitiationTime: daysAgo(1)},
	}}
	want := []string{
		"the certificate authorities of this cluster should be renewed, which was not done for 95 days: annotate the Shoot with gardener.cloud/operation=rotate-ca-start",
		"the observability passwords of this cluster should be renewed, which was not done for 100 days: " +
			"annotate the Shoot with gardener.cloud/operation=rotate-observability-credentials",
	}
	if diff := cmp.Diff(want, rotationWarnings(shoot, settings)); diff != "" {
		t.Errorf("rotationWarnings() (-want +got):\n%s", diff)
	}
	shoot.DeletionTimestamp = daysAgo(0)
	if got := rotationWarnings(shoot, settings); len(got) > 0 {
		t.Errorf("a shoot that goes has warnings: %q", got)
	}
}
