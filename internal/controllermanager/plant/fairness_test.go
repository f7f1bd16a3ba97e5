package plant

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A Plant waits outside of the workers while others of its namespace are checked.
func TestReconcileWithoutTurn(t *testing.T) {
	api, plant := garden(t, "")
	r := reconcilerOf(api, api, events.NewFakeRecorder(10), anywhere)
	r.turns.Take(plant.Namespace, checksPerNamespace)
	r.turns.Take(plant.Namespace, checksPerNamespace)
	expect(t, r, time.Second)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(plant), plant); err != nil || plant.Status.ObservedGeneration != nil {
		t.Errorf("the Plant was checked: %v, %v", plant.Status, err)
	}
	r.turns.Give(plant.Namespace)
	expect(t, r, time.Minute)
	expect(t, r, time.Minute) // the turn has ended with the pass
}

// A cluster that does not answer is checked less and less often, until something has changed.
func TestPauses(t *testing.T) {
	answers := &atomic.Bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !answers.Load() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	api, plant := garden(t, kubeconfigFor(server, ""))
	r := reconcilerOf(api, api, events.NewFakeRecorder(100), anywhere)
	for _, again := range []time.Duration{1, 2, 4, 5, 5} {
		expect(t, r, again*time.Minute)
	}

	secret := &corev1.Secret{}
	if err := api.Get(t.Context(), types.NamespacedName{Namespace: plant.Namespace, Name: "k"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Labels = map[string]string{"a": "b"}
	if err := api.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect(t, r, time.Minute) // a new kubeconfig
	expect(t, r, 2*time.Minute)

	if err := api.Get(t.Context(), client.ObjectKeyFromObject(plant), plant); err != nil {
		t.Fatal(err)
	}
	plant.Generation++ // another Secret
	if err := api.Update(t.Context(), plant); err != nil {
		t.Fatal(err)
	}
	expect(t, r, time.Minute)
	expect(t, r, 2*time.Minute)

	answers.Store(true)
	expect(t, r, time.Minute)
	answers.Store(false)
	expect(t, r, time.Minute)

	if err := api.Delete(t.Context(), plant); err != nil {
		t.Fatal(err)
	}
	expect(t, r, 0)
	if len(r.pauses.of) > 0 {
		t.Errorf("pauses of a deleted Plant are kept: %v", r.pauses.of)
	}
}

func TestPauseWithLongSyncPeriod(t *testing.T) {
	p := &pauses{}
	for range 3 {
		if got := p.next(types.NamespacedName{Name: "a"}, checked{}, false, time.Hour); got != time.Hour {
			t.Errorf("pause is %s", got)
		}
	}
}

func TestAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     bool
	}{
		"all is well":         {observed{}, true},
		"no kubeconfig":       {observed{kubeconfigProblem: "none"}, true},
		"unhealthy":           {observed{healthzError: &statusError{http.StatusInternalServerError}}, true},
		"nodes are forbidden": {observed{versionError: &statusError{http.StatusForbidden}, nodesError: &statusError{http.StatusForbidden}}, true},
		"no connection":       {observed{healthzError: errors.New("refused")}, false},
		"no end of the nodes": {observed{versionError: &statusError{http.StatusForbidden}, nodesError: errors.Join(errMalformed, context.DeadlineExceeded)}, false},
		"no end of a version": {observed{versionError: errMalformed}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.observed.answered(); got != tc.want {
				t.Errorf("answered() = %v", got)
			}
		})
	}
}

// What is checked differs with each of what it depends on.
func TestChecked(t *testing.T) {
	plant, secret := &corev1beta1.Plant{}, &corev1.Secret{}
	seen := map[checked]bool{checkedOf(plant, secret): true}
	for _, change := range []func(){
		func() { plant.UID = "a" }, func() { plant.Generation = 1 }, func() { secret.UID = "a" }, func() { secret.ResourceVersion = "1" },
	} {
		change()
		if of := checkedOf(plant, secret); seen[of] {
			t.Errorf("%v is the same as before", of)
		} else {
			seen[of] = true
		}
	}
}
