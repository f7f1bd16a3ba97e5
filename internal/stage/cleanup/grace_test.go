package cleanup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestGrace(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for annotation, want := range map[string]time.Duration{"": 0, "never": 0, "-1": 0, "0": time.Second, "300": 5 * time.Minute} {
		shoot := &corev1beta1.Shoot{}
		shoot.Annotations = map[string]string{"shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds": annotation}
		if got := GracePeriod(shoot); got != want {
			t.Errorf("%q is a grace period of %s", annotation, got)
		}
	}
	claim := func(name string, deleted time.Duration) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Finalizers: []string{"example.com/x"}, DeletionTimestamp: new(metav1.NewTime(now.Add(-deleted))),
		}}
	}
	system := claim("system", time.Hour)
	system.Labels = map[string]string{"shoot.gardener.cloud/no-cleanup": "true"}
	for name, tc := range map[string]struct {
		period time.Duration
		left   []string
	}{
		"forever":       {left: []string{"early", "late", "system"}},
		"for some time": {period: 5 * time.Minute, left: []string{"late", "system"}},
		"for a moment":  {period: time.Second, left: []string{"system"}},
		"for a day":     {period: 24 * time.Hour, left: []string{"early", "late", "system"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := fake.NewClientBuilder().WithObjects(claim("early", 10*time.Minute), claim("late", time.Minute), system.DeepCopy()).Build()
			g, waited := grace{period: tc.period, clock: clocktesting.NewFakePassiveClock(now)}, errors.New("waited")
			err := g.await(t.Context(), shoot, &corev1.PersistentVolumeClaimList{}, func(client.Object) bool { return true }, func(context.Context) error { return waited })
			if !errors.Is(err, waited) {
				t.Fatalf("await() does not wait: %v", err)
			}
			claims := &corev1.PersistentVolumeClaimList{}
			if err := shoot.List(t.Context(), claims); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, c := range claims.Items {
				left = append(left, c.Name)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}
