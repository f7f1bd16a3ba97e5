package bastion

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/technicalid"
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
		"no address": {
			inSeed: reported("Succeeded", func(s *extensionsv1alpha1.BastionStatus) { s.Ingress = nil }), noIP: true,
			want: "False FailedReconciling The extension reports no address of the bastion.",
		},
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

// A Bastion may be left when its Shoot is gone. A gardenlet may not read a Shoot that does not exist, so the answer is the same as for one on
// another seed.
func TestDeletionWithoutShoot(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), operationsv1alpha1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	shoots := schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}
	for name, tc := range map[string]struct {
		answer error
		gone   bool
	}{
		"it does not exist":          {answer: apierrors.NewNotFound(shoots, "a"), gone: true},
		"it may not be read":         {answer: apierrors.NewForbidden(shoots, "a", errors.New("no relation")), gone: true},
		"the garden does not answer": {answer: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			bastion := &operationsv1alpha1.Bastion{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "garden-dev", Name: "b", Finalizers: []string{"gardener"}, DeletionTimestamp: new(metav1.Now()),
				},
				Spec: operationsv1alpha1.BastionSpec{SeedName: new("east"), ShootRef: corev1.LocalObjectReference{Name: "a"}},
			}
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bastion).WithStatusSubresource(bastion).Build()
			seed := fake.NewClientBuilder().WithScheme(scheme).Build()
			r := &reconciler{
				Values: Values{SeedName: "east", SeedAPI: seed, Clock: clock.RealClock{}}, gardenCache: garden, seedCache: seed,
				gardenAPI: interceptor.NewClient(garden, interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						return tc.answer
					},
				}),
			}
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bastion)})
			if (err == nil) != tc.gone {
				t.Errorf("Reconcile() = %v", err)
			}
			err = garden.Get(t.Context(), client.ObjectKeyFromObject(bastion), bastion)
			if apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("the Bastion is gone: %t (%v)", apierrors.IsNotFound(err), err)
			}
		})
	}
}

// Members of a project may remove the finalizer of a Bastion. Its machine must not run on.
func TestOrphan(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), operationsv1alpha1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bastion := func(shoot string) *operationsv1alpha1.Bastion {
		return &operationsv1alpha1.Bastion{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "b", Finalizers: []string{"gardener"}},
			Spec:       operationsv1alpha1.BastionSpec{SeedName: new("east"), ShootRef: corev1.LocalObjectReference{Name: shoot}},
		}
	}
	released := bastion("a")
	released.Finalizers, released.DeletionTimestamp = []string{"example.com/keep"}, new(metav1.Now())
	shoot := func(project, name string) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-" + project, Name: name},
			Status:     corev1beta1.ShootStatus{TechnicalID: "shoot--" + project + "--" + name},
		}
	}
	for name, tc := range map[string]struct {
		bastion *operationsv1alpha1.Bastion
		kept    []string
	}{
		"it is gone":                  {kept: []string{"shoot--other--a", "unknown"}},
		"it is there":                 {bastion: bastion("a"), kept: []string{"shoot--dev--a", "shoot--other--a", "unknown"}},
		"it is only kept by others":   {bastion: released, kept: []string{"shoot--other--a", "unknown"}},
		"it is for another Shoot now": {bastion: bastion("c"), kept: []string{"shoot--dev--c", "shoot--other--a", "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			garden := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1beta1.Shoot{}, "status.technicalID", technicalid.Keys).
				WithObjects(shoot("dev", "a"), shoot("dev", "c"), shoot("other", "a"))
			if tc.bastion != nil {
				garden = garden.WithObjects(tc.bastion).WithStatusSubresource(tc.bastion)
			}
			gardenClient := garden.Build()
			seed := fake.NewClientBuilder().WithScheme(scheme)
			for _, namespace := range []string{"shoot--dev--a", "shoot--other--a", "unknown"} {
				seed = seed.WithObjects(&extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}})
			}
			seedClient := seed.Build()
			r := &reconciler{
				Values:      Values{SeedName: "east", SeedAPI: seedClient, Clock: clock.RealClock{}},
				gardenCache: gardenClient, gardenAPI: gardenClient, seedCache: seedClient,
			}
			inSeed := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "b"}}
			for _, request := range r.bastionFor(t.Context(), inSeed) {
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			list := &extensionsv1alpha1.BastionList{}
			if err := seedClient.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, b := range list.Items {
				kept = append(kept, b.Namespace)
			}
			if diff := cmp.Diff(tc.kept, kept); diff != "" {
				t.Errorf("Bastions in the seed are in (-want +got):\n%s", diff)
			}
		})
	}
}

// An extension that does not try again by itself is requested to, but not all the time.
func TestRetry(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		state     corev1beta1.LastOperationState
		requested string // the annotation gardener.cloud/operation
		at        string // gardener.cloud/timestamp
		want      time.Duration
		failed    bool
	}{
		"it is ready":                   {state: "Succeeded", at: now.Add(-time.Hour).Format(time.RFC3339Nano)},
		"it has failed just now":        {state: "Error", at: now.Add(-20 * time.Second).Format(time.RFC3339Nano), want: 40 * time.Second, failed: true},
		"it has failed":                 {state: "Error", at: now.Add(-time.Hour).Format(time.RFC3339Nano), failed: true},
		"it has failed, without a time": {state: "Failed", failed: true},
		"it is requested":               {state: "Error", requested: "reconcile", at: now.Add(-time.Hour).Format(time.RFC3339Nano)},
	} {
		t.Run(name, func(t *testing.T) {
			b := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/timestamp": tc.at}}}
			if tc.requested != "" {
				b.Annotations["gardener.cloud/operation"] = tc.requested
			}
			b.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: tc.state}
			if got, failed := retryIn(b, now); got != tc.want || failed != tc.failed {
				t.Errorf("retryIn() = %s, %v, want %s, %v", got, failed, tc.want, tc.failed)
			}
		})
	}
}
