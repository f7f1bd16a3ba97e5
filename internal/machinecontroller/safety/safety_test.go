package safety

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestReachability(t *testing.T) {
	c := testclock.NewFakeClock(now)
	var answer error
	r := newReachability(func(context.Context) error { return answer }, time.Minute, time.Second, c)
	step := func(err error, since time.Time, reachable bool) {
		t.Helper()
		c.Step(time.Minute)
		answer = err
		r.check(t.Context())
		if gotSince, got := r.State(); !gotSince.Equal(since) || got != reachable {
			t.Errorf("got %s, %t, want %s, %t", gotSince, got, since, reachable)
		}
	}
	step(nil, time.Time{}, true)
	step(errors.New("no"), time.Time{}, false)
	step(errors.New("no"), time.Time{}, false)
	step(nil, now.Add(4*time.Minute), true)
	step(nil, now.Add(4*time.Minute), true)
	step(errors.New("no"), now.Add(4*time.Minute), false)
}

func TestOrphans(t *testing.T) {
	machines := []machinev1alpha1.Machine{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, // it is being created
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: machinev1alpha1.MachineSpec{ProviderID: "x:///2"}},
	}
	var got []string
	for _, orphan := range orphans(map[string]string{"x:///1": "a", "x:///2": "renamed", "x:///4": "d", "x:///3": "c"}, machines) {
		got = append(got, orphan.Name+" "+orphan.Spec.ProviderID)
	}
	if diff := cmp.Diff([]string{"c x:///3", "d x:///4"}, got); diff != "" {
		t.Errorf("orphans() (-want +got):\n%s", diff)
	}
}

// A seed that was lost returns: it deletes no machine that was created for the control plane on the next seed, before it knows of that.
func TestFirstPassIsAfterAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		listed := 0
		control := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				if _, ok := list.(*machinev1alpha1.MachineClassList); ok {
					listed++
				}
				return nil
			},
		})
		o := &Orphans{ControlAPI: control, TargetCache: control, Period: 15 * time.Minute, Clock: clock.RealClock{}}
		ended := make(chan error)
		go func() { ended <- o.Start(ctx) }()
		for _, step := range []struct {
			later time.Duration
			want  int
		}{{0, 0}, {14 * time.Minute, 0}, {time.Minute, 1}, {15 * time.Minute, 2}} {
			time.Sleep(step.later) //nolint:forbidigo // of a synctest bubble
			synctest.Wait()
			if listed != step.want {
				t.Errorf("%s later there were %d passes, want %d", step.later, listed, step.want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestUnmanaged(t *testing.T) {
	machines := []machinev1alpha1.Machine{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{machinev1alpha1.NodeLabelKey: "n"}}, Spec: machinev1alpha1.MachineSpec{ProviderID: "x:///1"}},
	}
	for name, tc := range map[string]struct {
		node corev1.Node
		want bool
	}{
		"that of a machine": {corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, false},
		"one by its ID":     {corev1.Node{Spec: corev1.NodeSpec{ProviderID: "x:///1"}}, false},
		"one by its label":  {corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{machinev1alpha1.MachineLabelKey: "a"}}}, false},
		"another one":       {corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, true},
		"a new one":         {corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unmanaged(&tc.node, machines, now); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
