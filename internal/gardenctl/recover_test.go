package gardenctl

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

func TestIsLost(t *testing.T) {
	unknown := []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionUnknown}}
	ago := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-d))) }
	for name, tc := range map[string]struct {
		conditions []corev1beta1.Condition
		renewed    *metav1.MicroTime
		want       bool
	}{
		"silent":                            {unknown, ago(time.Hour), true},
		"reported just now":                 {unknown, ago(time.Minute), false},
		"its clock is ahead":                {unknown, ago(-time.Minute), false},
		"silent, but its condition is True": {[]corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}, ago(time.Hour), false},
		"without a Lease":                   {unknown, nil, true},
		"without a condition":               {nil, ago(time.Hour), true},
		"without both":                      {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Status: corev1beta1.SeedStatus{Conditions: tc.conditions}}
			if err := isLost(seed, tc.renewed, now); (err == nil) != tc.want {
				t.Errorf("isLost() = %v", err)
			}
		})
	}
}

func TestTakesShoots(t *testing.T) {
	for name, tc := range map[string]struct {
		ready  corev1beta1.ConditionStatus
		backup *corev1beta1.Backup
		want   bool
	}{
		"ready":          {corev1beta1.ConditionTrue, &corev1beta1.Backup{}, true},
		"without backup": {corev1beta1.ConditionTrue, nil, false},
		"not ready":      {corev1beta1.ConditionUnknown, &corev1beta1.Backup{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Backup: tc.backup}}
			seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: tc.ready}}
			if err := takesShoots(seed); (err == nil) != tc.want {
				t.Errorf("takesShoots() = %v", err)
			}
		})
	}
}

func TestUnrecoverable(t *testing.T) {
	last := &corev1beta1.LastOperation{}
	copied := func(seed string) *corev1beta1.BackupEntry {
		return &corev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{constants.BackupEntryCopiedFrom: "former"}},
			Spec:       corev1beta1.BackupEntrySpec{BucketName: "bucket", SeedName: &seed},
		}
	}
	for name, tc := range map[string]struct {
		last    *corev1beta1.LastOperation
		unborn  bool // it has no technical ID
		on      string
		deleted bool
		state   *corev1beta1.ShootState
		entry   *corev1beta1.BackupEntry
		want    string
	}{
		"all is left":                   {last: last, state: &corev1beta1.ShootState{}, entry: &corev1beta1.BackupEntry{}},
		"not created yet":               {unborn: true},
		"its creation has waited":       {last: last, unborn: true},
		"on another seed":               {last: last, on: "other", state: &corev1beta1.ShootState{}, entry: &corev1beta1.BackupEntry{}, want: `on seed "other"`},
		"is deleted":                    {last: last, deleted: true, state: &corev1beta1.ShootState{}, entry: &corev1beta1.BackupEntry{}, want: "being deleted"},
		"no ShootState":                 {last: last, entry: &corev1beta1.BackupEntry{}, want: "no ShootState"},
		"no BackupEntry":                {last: last, state: &corev1beta1.ShootState{}, want: "no BackupEntry"},
		"its restoration had not ended": {last: last, state: &corev1beta1.ShootState{}, entry: copied("lost"), want: `bucket "former"`},
		"handed over already":           {last: last, state: &corev1beta1.ShootState{}, entry: copied("to")},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: tc.last, TechnicalID: "shoot--dev--a"}}
			if tc.unborn {
				shoot.Status.TechnicalID = ""
			}
			if tc.on != "" {
				shoot.Status.SeedName = &tc.on
			}
			if tc.deleted {
				shoot.DeletionTimestamp = new(metav1.NewTime(now))
			}
			err := unrecoverable(recoverable{shoot, tc.state, tc.entry}, "lost")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("unrecoverable() = %v, want %q", err, tc.want)
			}
		})
	}
}

// Nothing is changed before an operator has confirmed it, nor without what a shoot is restored from. All requests for changes would be not found.
func TestRecoverRefuses(t *testing.T) {
	seed := func(name string, status corev1beta1.ConditionStatus) http.HandlerFunc {
		s := &corev1beta1.Seed{
			TypeMeta: metav1.TypeMeta{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Seed"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1beta1.SeedSpec{Backup: &corev1beta1.Backup{}},
		}
		s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: status}}
		return object(s)
	}
	const seeds = "GET /apis/core.gardener.cloud/v1beta1/seeds/"
	shoot := typed(running())
	shoot.Status.SeedName = new("lost")
	run := online(t, answers{
		seeds + "lost": seed("lost", corev1beta1.ConditionUnknown), seeds + "here": seed("here", corev1beta1.ConditionTrue),
		"GET /apis/core.gardener.cloud/v1beta1/shoots": listed(*shoot),
		"GET /apis/operations.gardener.cloud/v1alpha1/bastions": object(&operationsv1alpha1.BastionList{
			TypeMeta: metav1.TypeMeta{APIVersion: operationsv1alpha1.SchemeGroupVersion.String(), Kind: "BastionList"},
		}),
	})
	for name, tc := range map[string]struct {
		args, out, errOut string
	}{
		"without a confirmation": {"--to=here", "", "add --yes"},
		"a seed that reports":    {"--to=lost --seed=here --yes", "", "is not lost"},
		"the same seed":          {"--to=lost --yes", "", "must differ"},
		"a seed that is missing": {"--to=gone --yes", "", `seed "gone" not found`},
		"no ShootState":          {"--to=here --yes", "it has no ShootState, so its credentials are lost", "1 of 1 shoots are not recovered"},
		"not a shoot":            {"--to=here --yes --shoot=x", "", "NAMESPACE/NAME"},
		"no seed and no reason":  {"--yes", "", "at least one of the flags in the group [to abandon] is required"},
		"both":                   {"--to=here --abandon --shoot=garden-dev/crazy-botany --yes", "", "[abandon to]"},
		"all are abandoned":      {"--abandon --yes", "", "--shoot=NAMESPACE/NAME"},
		"abandoned, not deleted": {"--abandon --yes --shoot=garden-dev/crazy-botany", "it is not being deleted", "1 of 1 shoots are not recovered"},
		"abandoned, not asked":   {"--abandon --shoot=garden-dev/crazy-botany", "", "add --yes"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := run(append([]string{"recover", "--seed=lost"}, strings.Fields(tc.args)...)...)
			if code != 1 || !strings.Contains(out, tc.out) || tc.out == "" && out != "" || !strings.Contains(errOut, tc.errOut) {
				t.Errorf("exit code %d, output %q, %q", code, out, errOut)
			}
		})
	}
}

func TestNotAbandonable(t *testing.T) {
	for name, tc := range map[string]struct {
		on      string
		deleted bool
		want    string
	}{
		"is deleted":              {on: "lost", deleted: true},
		"is deleted, never there": {deleted: true},
		"is not deleted":          {on: "lost", want: "not being deleted"},
		"is on another seed":      {on: "other", deleted: true, want: `seed "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			if tc.on != "" {
				shoot.Status.SeedName = &tc.on
			}
			if tc.deleted {
				shoot.DeletionTimestamp = new(metav1.NewTime(now))
			}
			err := notAbandonable(shoot, "lost")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("notAbandonable() = %v, want %q", err, tc.want)
			}
		})
	}
}
