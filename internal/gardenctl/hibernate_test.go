package gardenctl

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestHibernate(t *testing.T) {
	with := func(enabled bool, constraint corev1beta1.ConditionStatus) *corev1beta1.Shoot {
		s := typed(running())
		s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: &enabled}
		s.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootHibernationPossible, Status: constraint, Message: "a webhook is in the way"}}
		return s
	}
	for name, tc := range map[string]struct {
		shoot          *corev1beta1.Shoot
		command, patch string
		out, errOut    string
	}{
		"hibernates":            {typed(running()), "hibernate", `"enabled":true`, "shoot crazy-botany: hibernation requested\n", ""},
		"may not wake up again": {with(false, "False"), "hibernate", `"enabled":true`, "shoot crazy-botany: hibernation requested\n", "warning: it may not wake up again: a webhook is in the way\n"},
		"is hibernated already": {with(true, "False"), "hibernate", "", "shoot crazy-botany: hibernation requested\n", ""},
		"wakes up":              {with(true, "False"), "wake", `"enabled":false`, "shoot crazy-botany: wake-up requested\n", ""},
		"is awake":              {with(false, "True"), "wake", "", "shoot crazy-botany: wake-up requested\n", ""},
		"was never hibernated":  {typed(running()), "wake", "", "shoot crazy-botany: wake-up requested\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var patch string
			answer := func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				patch = string(body)
				object(tc.shoot)(w, r)
			}
			run := online(t, answers{"GET " + shootPath: object(tc.shoot), "PATCH " + shootPath: answer})
			if code, out, errOut := run(tc.command, "crazy-botany"); code != 0 || out != tc.out || errOut != tc.errOut {
				t.Errorf("exit code %d, output %q, %q", code, out, errOut)
			}
			if !strings.Contains(patch, tc.patch) || tc.patch == "" && patch != "" {
				t.Errorf("the shoot was patched with %q, want %q", patch, tc.patch)
			}
		})
	}
	awake := running()
	if err := hibernate.reached(awake, 0); err == nil {
		t.Error("a shoot that is awake counts as hibernated")
	}
	awake.Status.Hibernated = true
	if err := hibernate.reached(awake, 0); err != nil {
		t.Error(err)
	}
}
