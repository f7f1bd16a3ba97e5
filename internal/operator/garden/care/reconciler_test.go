package care

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// The API server goes down, and components with it, while an operation runs that takes half an hour.
func TestOutageDuringAnOperation(t *testing.T) {
	const threshold = time.Minute
	types := []corev1beta1.ConditionType{
		operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.VirtualComponentsHealthy,
		operatorv1alpha1.ObservabilityComponentsHealthy,
	}
	start := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, corev1beta1.AddToScheme, druidv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Garden)
		// want are the states of API server, runtime, virtual and observability components at first, after the threshold, and after another operation.
		want [3][]corev1beta1.ConditionStatus
	}{
		"of a garden in use": {change: func(*operatorv1alpha1.Garden) {}, want: [3][]corev1beta1.ConditionStatus{
			{"Progressing", "Progressing", "Progressing", "True"},
			{"False", "Progressing", "Progressing", "True"},
			{"False", "False", "False", "True"},
		}},
		"of a new garden": {change: func(g *operatorv1alpha1.Garden) { g.Status.Credentials = nil }, want: [3][]corev1beta1.ConditionStatus{
			{"True", "True", "True", "True"},
			{"True", "True", "True", "True"},
			{"Progressing", "Progressing", "Progressing", "True"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
			garden.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateProcessing, LastUpdateTime: metav1.NewTime(start)}
			garden.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{}}
			config := operatorconfigv1alpha1.GardenCareControllerConfiguration{SyncPeriod: &metav1.Duration{Duration: threshold}}
			for _, typ := range types {
				garden.Status.Conditions = append(garden.Status.Conditions, corev1beta1.Condition{
					Type: typ, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.NewTime(start), LastUpdateTime: metav1.NewTime(start),
				})
				config.ConditionThresholds = append(config.ConditionThresholds, operatorconfigv1alpha1.ConditionThreshold{Type: string(typ), Duration: metav1.Duration{Duration: threshold}})
			}
			tc.change(garden)
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(garden).WithStatusSubresource(garden).Build()
			clk := clocktesting.NewFakePassiveClock(start)
			r := &reconciler{runtimeCache: c, Values: Values{
				Healthz: func(context.Context) error { return errors.New("connection refused") }, RuntimeAPI: c, Config: config, Clock: clk,
			}}
			for i, want := range tc.want {
				clk.SetTime(start.Add(time.Duration(i) * (threshold + time.Second)))
				if i == 2 {
					garden.Status.LastOperation.State = corev1beta1.LastOperationStateError
					if err := c.Status().Update(t.Context(), garden); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(garden)}); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
					t.Fatal(err)
				}
				var got []corev1beta1.ConditionStatus
				for _, condition := range garden.Status.Conditions {
					got = append(got, condition.Status)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("pass %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestPostpone(t *testing.T) {
	const threshold = time.Minute
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	last := func(state corev1beta1.LastOperationState, ago time.Duration) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{State: state, LastUpdateTime: metav1.NewTime(now.Add(-ago))}
	}
	was := func(status corev1beta1.ConditionStatus) *corev1beta1.Condition {
		return &corev1beta1.Condition{Status: status}
	}
	for name, tc := range map[string]struct {
		typ    corev1beta1.ConditionType
		last   *corev1beta1.LastOperation
		before *corev1beta1.Condition
		want   corev1beta1.ConditionStatus
		again  time.Duration
	}{
		"in progress":                      {last: last("Processing", time.Hour), before: was("Progressing"), want: "Progressing"},
		"in progress, first pass":          {last: last("Processing", time.Hour), want: "Progressing"},
		"in progress, broken before":       {last: last("Processing", time.Hour), before: was("False"), want: "False"},
		"in progress, API server":          {typ: operatorv1alpha1.VirtualGardenAPIServerAvailable, last: last("Processing", 0), before: was("Progressing"), want: "False"},
		"succeeded a moment ago":           {last: last("Succeeded", 10*time.Second), before: was("Progressing"), want: "Progressing", again: 50 * time.Second},
		"succeeded long ago":               {last: last("Succeeded", time.Hour), before: was("Progressing"), want: "False"},
		"failed a moment ago":              {last: last("Error", time.Second), before: was("Progressing"), want: "False"},
		"there was no operation until now": {before: was("Progressing"), want: "False"},
	} {
		t.Run(name, func(t *testing.T) {
			desired := corev1beta1.Condition{Type: operatorv1alpha1.VirtualComponentsHealthy, Status: corev1beta1.ConditionFalse}
			if tc.typ != "" {
				desired.Type = tc.typ
			}
			if again := postpone(tc.last, tc.before, &desired, threshold, now); again != tc.again || desired.Status != tc.want {
				t.Errorf("postpone() = %s, %s; want %s, %s", desired.Status, again, tc.want, tc.again)
			}
		})
	}
}
