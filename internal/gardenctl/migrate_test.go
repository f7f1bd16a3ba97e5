package gardenctl

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestMigrate(t *testing.T) {
	for name, tc := range map[string]struct {
		seed, out, body string
	}{
		"to another seed": {"there", "shoot crazy-botany: move to seed there requested\n", `"seedName":"there"`},
		"it is there":     {"here", "shoot crazy-botany: move to seed here requested\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := typed(running())
			shoot.Spec.SeedName = new("here")
			var body string
			run := online(t, answers{"GET " + shootPath: object(shoot), "PUT " + shootPath + "/binding": func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				body = string(raw)
				object(shoot)(w, r)
			}})
			if code, out, errOut := run("migrate", "crazy-botany", "--to", tc.seed); code != 0 || out != tc.out {
				t.Errorf("exit code %d, output %q, %q", code, out, errOut)
			}
			if !strings.Contains(body, tc.body) || tc.body == "" && body != "" {
				t.Errorf("the shoot was bound with %q, want %q", body, tc.body)
			}
		})
	}
}

// A move is done when the other seed has restored the control plane, and not when the former one has released it.
func TestMovedTo(t *testing.T) {
	for name, tc := range map[string]struct {
		on        string
		operation corev1beta1.LastOperationType
		state     corev1beta1.LastOperationState
		observed  int64
		ok, over  bool
	}{
		"not begun":     {on: "here", operation: "Reconcile", state: "Succeeded", observed: 1},
		"is released":   {on: "here", operation: "Migrate", state: "Processing", observed: 2},
		"released":      {on: "there", operation: "Migrate", state: "Succeeded", observed: 2},
		"is restored":   {on: "there", operation: "Restore", state: "Processing", observed: 2},
		"has failed":    {on: "there", operation: "Restore", state: "Failed", observed: 2, over: true},
		"restored":      {on: "there", operation: "Restore", state: "Succeeded", observed: 2, ok: true},
		"goes on there": {on: "there", operation: "Reconcile", state: "Succeeded", observed: 3, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := running()
			shoot.Generation, shoot.Spec.SeedName, shoot.Status.SeedName = 2, new("there"), &tc.on
			shoot.Status.ObservedGeneration = tc.observed
			shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: tc.operation, State: tc.state}
			err := movedTo(shoot, "there", 2)
			var lost *hopeless
			if (err == nil) != tc.ok || errors.As(err, &lost) != tc.over {
				t.Errorf("movedTo() = %v", err)
			}
		})
	}
}
