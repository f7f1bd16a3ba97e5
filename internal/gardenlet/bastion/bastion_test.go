package bastion

import (
	"encoding/base64"
	"errors"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestOutcome(t *testing.T) {
	reported := func(state corev1beta1.LastOperationState, change func(*extensionsv1alpha1.BastionStatus)) *extensionsv1alpha1.Bastion {
		b := &extensionsv1alpha1.Bastion{}
		b.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: state, Progress: 50, Description: "on it"}
		b.Status.Ingress = &corev1.LoadBalancerIngress{IP: "203.0.113.7"}
		if change != nil {
			change(&b.Status)
		}
		return b
	}
	for name, tc := range map[string]struct {
		inSeed *extensionsv1alpha1.Bastion
		err    error
		want   string
		noIP   bool
	}{
		"ready":                     {inSeed: reported("Succeeded", nil), want: "True SuccessfullyReconciled The bastion has been reconciled successfully."},
		"the extension works on it": {inSeed: reported("Processing", nil), want: "Progressing Reconciling on it"},
		"the extension has failed": {inSeed: reported("Error", func(s *extensionsv1alpha1.BastionStatus) {
			s.LastError = &corev1beta1.LastError{Description: "no quota"}
		}), want: "False FailedReconciling no quota"},
		"no address": {inSeed: reported("Succeeded", func(s *extensionsv1alpha1.BastionStatus) { s.Ingress = nil }), noIP: true,
			want: "False FailedReconciling The extension reports no address of the bastion."},
		"not written": {err: errors.New("seed: connection refused"), noIP: true, want: "False FailedReconciling seed: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(tc.inSeed, tc.err)
			c := got.condition
			if text := string(c.Status) + " " + c.Reason + " " + c.Message; text != tc.want || c.Type != "BastionReady" || (got.ingress == nil) != tc.noIP {
				t.Errorf("outcome() = %s %s with address %v, want %s", c.Type, text, got.ingress, tc.want)
			}
		})
	}
}

// The comment of a key must not become a part of the script.
func TestUserData(t *testing.T) {
	const key = "ssh-ed25519 AAAA '; rm -rf / #$(reboot)`reboot`"
	script := userData(key)
	found := regexp.MustCompile(`echo ([A-Za-z0-9+/=]+) \| base64 -d >/home/gardener/.ssh/authorized_keys`).FindSubmatch(script)
	if found == nil {
		t.Fatalf("no key in the script:\n%s", script)
	}
	if decoded, err := base64.StdEncoding.DecodeString(string(found[1])); err != nil || string(decoded) != key+"\n" {
		t.Errorf("the key is %q (%v)", decoded, err)
	}
	if regexp.MustCompile(`reboot`).Match(script) {
		t.Errorf("the script has the comment of the key:\n%s", script)
	}
}
