package registry

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

func strategyOf(t *testing.T, kindName string) kind.Strategies {
	t.Helper()
	for gvk, strategies := range Strategies(runtime.NewScheme(), Settings{}) {
		if gvk.Kind == kindName {
			return strategies
		}
	}
	t.Fatalf("there is no kind %s", kindName)
	return kind.Strategies{}
}

func operated(operation string) map[string]string {
	return map[string]string{constants.GardenerOperation: operation}
}

// Controllers reconcile a new generation, so each change that is relevant for them counts, once.
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
		old, obj client.Object
		want     result
	}{
		"no change":                            {"Shoot", shoot(succeeded), shoot(succeeded), result{}},
		"a changed spec":                       {"Shoot", shoot(""), shoot("", purpose), result{Counted: true}},
		"a change that waits":                  {"Shoot", shoot("", confined), shoot("", confined, purpose), result{}},
		"hibernation does not wait":            {"Shoot", shoot("", confined), shoot("", confined, hibernated), result{Counted: true}},
		"reconcile":                            {"Shoot", shoot(succeeded), shoot(succeeded, annotated("reconcile")), result{Counted: true}},
		"reconcile before the first operation": {"Shoot", shoot(""), shoot("", annotated("reconcile")), result{Operation: "reconcile"}},
		"reconcile after a failure":            {"Shoot", shoot(failed), shoot(failed, annotated("reconcile")), result{Operation: "reconcile"}},
		"retry after a failure":                {"Shoot", shoot(failed), shoot(failed, annotated("retry")), result{Counted: true}},
		"retry after a success":                {"Shoot", shoot(succeeded), shoot(succeeded, annotated("retry")), result{Operation: "retry"}},
		"maintain is not for the gardenlet":    {"Shoot", shoot(succeeded), shoot(succeeded, annotated("maintain")), result{Operation: "maintain"}},
		"rotation, which the gardenlet ends":   {"Shoot", shoot(succeeded), shoot(succeeded, annotated("rotate-ca-start")), result{true, "rotate-ca-start"}},
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
			tc.old.SetGeneration(5)
			strategyOf(t, tc.kind).Update.PrepareForUpdate(t.Context(), tc.obj, tc.old)
			got := result{Counted: tc.obj.GetGeneration() == 6, Operation: tc.obj.GetAnnotations()[constants.GardenerOperation]}
			if generation := tc.obj.GetGeneration(); generation != 5 && generation != 6 {
				t.Errorf("generation is %d, was 5", generation)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("after the update (-want +got):\n%s", diff)
			}
		})
	}
}

// The kinds that clients may update without a resource version are part of the API.
func TestUnconditionalUpdates(t *testing.T) {
	var got []string
	for gvk, strategies := range Strategies(runtime.NewScheme(), Settings{}) {
		if strategies.Update.AllowUnconditionalUpdate() {
			got = append(got, gvk.Kind)
		}
	}
	slices.Sort(got)
	want := []string{"CloudProfile", "InternalSecret", "NamespacedCloudProfile", "Project", "Quota", "SecretBinding", "Seed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
