package vpaevictionrequirements

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1 "k8s.io/api/apps/v1"

	"gardener.cloud/gardener/internal/component/workload"
)

func TestReconcile(t *testing.T) {
	const (
		label = "autoscaling.gardener.cloud/eviction-requirements"
		when  = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
		frame = "shoot.gardener.cloud/maintenance-window"
	)
	managed := map[string]string{label: "managed-by-controller"}
	upwards := []any{map[string]any{"resources": []any{"cpu", "memory"}, "changeRequirement": "TargetHigherThanRequests"}}
	own := []any{map[string]any{"resources": []any{"cpu"}, "changeRequirement": "TargetLowerThanRequests"}}
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		before, want        []any
		requeueAfter        time.Duration
		invalid             bool
	}{
		"never":                    {labels: managed, annotations: map[string]string{when: "never"}, want: upwards},
		"never, already written":   {labels: managed, annotations: map[string]string{when: "never"}, before: upwards, want: upwards},
		"never, changed by a user": {labels: managed, annotations: map[string]string{when: "never"}, before: own, want: upwards},
		"before the window": {
			labels: managed, annotations: map[string]string{when: "in-maintenance-window-only", frame: "220000+0100,230000+0100"}, want: upwards, requeueAfter: 9 * time.Hour,
		},
		"in the window": {
			labels: managed, annotations: map[string]string{when: "in-maintenance-window-only", frame: "110000+0000,130000+0000"}, before: upwards, requeueAfter: time.Hour,
		},
		"no window":                     {labels: managed, annotations: map[string]string{when: "in-maintenance-window-only"}, before: upwards, want: upwards, invalid: true},
		"an invalid window":             {labels: managed, annotations: map[string]string{when: "in-maintenance-window-only", frame: "noon,night"}, invalid: true},
		"an unknown restriction":        {labels: managed, annotations: map[string]string{when: "sometimes"}, invalid: true},
		"not managed by the controller": {annotations: map[string]string{when: "never"}, before: own, want: own},
	} {
		t.Run(name, func(t *testing.T) {
			vpa := workload.Autoscaler(metav1.ObjectMeta{Namespace: "shoot--a--b", Name: "x"}, appsv1.SchemeGroupVersion.WithKind("Deployment"), nil, workload.Autoscaling{}).(*unstructured.Unstructured) //nolint:forcetypeassert // it panics in a test
			vpa.SetLabels(tc.labels)
			vpa.SetAnnotations(tc.annotations)
			path := []string{"spec", "updatePolicy", "evictionRequirements"}
			if tc.before != nil {
				if err := unstructured.SetNestedSlice(vpa.Object, tc.before, path...); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithObjects(vpa).Build()
			r := &reconciler{Values{SeedAPI: c, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(vpa)})
			if errors.Is(err, reconcile.TerminalError(nil)) != tc.invalid || err != nil != tc.invalid {
				t.Errorf("Reconcile() returns error %v", err)
			}
			if result.RequeueAfter != tc.requeueAfter {
				t.Errorf("RequeueAfter is %s, want %s", result.RequeueAfter, tc.requeueAfter)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(vpa), vpa); err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedSlice(vpa.Object, path...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
			if mode, _, _ := unstructured.NestedString(vpa.Object, "spec", "updatePolicy", "updateMode"); mode != "Recreate" {
				t.Errorf("the mode is %q", mode)
			}
		})
	}
}
