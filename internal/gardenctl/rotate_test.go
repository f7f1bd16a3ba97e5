package gardenctl

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestRotate(t *testing.T) {
	for name, tc := range map[string]struct {
		args      string
		operation string
		out       string
		err       string
	}{
		"all":                {args: "", operation: "rotate-credentials-start", out: "rotation of credentials requested"},
		"the end of all":     {args: "--complete", operation: "rotate-credentials-complete", out: "completion of the rotation requested"},
		"nodes later":        {args: "--without-workers-rollout", operation: "rotate-credentials-start-without-workers-rollout", out: "rotation of credentials requested"},
		"nodes of two pools": {args: "--pools=a,b", operation: "rotate-rollout-workers=a,b", out: "rollout of nodes requested"},
		"CAs":                {args: "--only=ca --complete", operation: "rotate-ca-complete", out: "completion of the rotation requested"},
		"in one step":        {args: "--only=etcd-encryption-key", operation: "rotate-etcd-encryption-key", out: "rotation of credentials requested"},
		"not in two steps":   {args: "--only=ssh-keypair --complete", err: "ssh-keypair is rotated in one step"},
		"unknown":            {args: "--only=everything", err: "--only must be one of all, ca, etcd-encryption-key, observability, service-account-key, ssh-keypair"},
		"no pools":           {args: "--pools=", err: "--pools is empty"},
		"pools at the end":   {args: "--pools=a --complete", err: "--pools excludes"},
		"nodes at the end":   {args: "--complete --without-workers-rollout", err: "--without-workers-rollout is for the first step"},
	} {
		t.Run(name, func(t *testing.T) {
			var patch string
			answer := func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				patch = string(body)
				object(typed(running()))(w, r)
			}
			run := online(t, answers{"GET " + shootPath: object(typed(running())), "PATCH " + shootPath: answer})
			code, out, errOut := run(append([]string{"rotate", "crazy-botany"}, strings.Fields(tc.args)...)...)
			if (code == 0) != (tc.err == "") || !strings.Contains(out, tc.out) || !strings.Contains(errOut, tc.err) {
				t.Errorf("exit code %d, output %q, error %q", code, out, errOut)
			}
			if !strings.Contains(patch, tc.operation) || tc.operation == "" && patch != "" {
				t.Errorf("the shoot was patched with %s, want operation %q", patch, tc.operation)
			}
		})
	}
}

// A step takes more than one reconciliation: that the first one succeeded does not mean that the step is done.
func TestWaitForRotation(t *testing.T) {
	at := func(phase corev1beta1.CredentialsRotationPhase) *corev1beta1.Shoot {
		s := running()
		s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPrepared},
			ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
		}}
		return s
	}
	for phase, want := range map[corev1beta1.CredentialsRotationPhase]string{
		"": "", corev1beta1.RotationPrepared: "", corev1beta1.RotationCompleted: "", corev1beta1.RotationWaitingForWorkersRollout: "",
		corev1beta1.RotationPreparing:  "etcd encryption key: Preparing",
		corev1beta1.RotationCompleting: "etcd encryption key: Completing",
	} {
		got := ""
		if err := rotated(request{}, at(phase)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("in phase %q %q is missing, want %q", phase, got, want)
		}
	}
	if err := rotated(request{}, failing()); err == nil || !strings.Contains(err.Error(), "Failed") {
		t.Errorf("of one that failed: %v", err)
	}
}
