package trial

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var begin = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// ready returns a pod whose container runs since a time after the beginning.
func ready(name string, since time.Duration, changes ...func(*corev1.Pod)) corev1.Pod {
	started := metav1.NewTime(begin.Add(since))
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: started},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "gardenlet", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}},
		},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func TestJudge(t *testing.T) {
	complete := func(surplus int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "gardenlet"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
			Status: appsv1.DeploymentStatus{Replicas: 1 + surplus, UpdatedReplicas: 1, AvailableReplicas: 1},
		}
	}
	scaled := func(pods int32) *appsv1.Deployment {
		d := complete(0)
		d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{Replicas: pods, AvailableReplicas: pods}
		return d
	}
	held := func(by string, since time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new(by + "_uid"), AcquireTime: &metav1.MicroTime{Time: begin.Add(since)}}}
	}
	restarted := func(n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].RestartCount = n
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		}
	}
	unpulled := func(p *corev1.Pod) {
		p.Status.Conditions, p.Status.Phase = nil, corev1.PodPending
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	}
	ending := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: begin} }
	for name, tc := range map[string]struct {
		Observed
		noLease bool
		// partly says that not all objects have been applied.
		partly bool
		// offline says that the new gardenlet has not reached the garden.
		offline bool
		after   time.Duration
		want    Verdict
		failed  string
	}{
		"it leads for a minute": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second)}, held("new", 20*time.Second)},
			after:    80 * time.Second, want: Verdict{Works: true},
		},
		"it leads for some seconds": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second)}, held("new", 20*time.Second)},
			after:    30 * time.Second, want: Verdict{RecheckIn: 50 * time.Second},
		},
		"its container restarted a moment ago": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 70*time.Second, restarted(1))}, held("new", 20*time.Second)},
			after:    80 * time.Second, want: Verdict{RecheckIn: 50 * time.Second},
		},
		"pods were not replaced": {
			Observed: Observed{complete(0), []corev1.Pod{ready("old", -time.Hour, restarted(9))}, held("old", -time.Hour)},
			after:    time.Minute, want: Verdict{Works: true},
		},
		"not all is applied, the old one works": {
			Observed: Observed{complete(0), []corev1.Pod{ready("old", -time.Hour)}, held("old", -time.Hour)}, partly: true,
			after: 9 * time.Minute, want: Verdict{RecheckIn: time.Minute},
		},
		"all is never applied": {
			Observed: Observed{complete(0), []corev1.Pod{ready("old", -time.Hour)}, held("old", -time.Hour)}, partly: true,
			after: 10 * time.Minute, failed: "its objects have not all been applied",
		},
		"it has not reached the garden": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second)}, held("new", 20*time.Second)}, offline: true,
			after: 9 * time.Minute, want: Verdict{RecheckIn: time.Minute},
		},
		"it never reaches the garden": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second)}, held("new", 20*time.Second)}, offline: true,
			after: 10 * time.Minute, failed: "it has not reached the garden",
		},
		"the old one leads still": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second), ready("old", -time.Hour, ending)}, held("old", -time.Hour)},
			after:    9 * time.Minute, want: Verdict{RecheckIn: time.Minute},
		},
		"old pods are there still": {
			Observed: Observed{complete(1), []corev1.Pod{ready("new", 10*time.Second), ready("old", -time.Hour)}, held("old", -time.Hour)},
			after:    9 * time.Minute, want: Verdict{RecheckIn: time.Minute},
		},
		"without a leader election": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second)}, nil}, noLease: true,
			after: 70 * time.Second, want: Verdict{Works: true},
		},
		"its image does not exist": {
			Observed: Observed{complete(1), []corev1.Pod{ready("new", 10*time.Second, unpulled), ready("old", -time.Hour)}, held("old", -time.Hour)},
			after:    10 * time.Minute, failed: `it does not work after 10m0s: Pod "new": container "gardenlet": ImagePullBackOff`,
		},
		"it crashes": {
			Observed: Observed{complete(1), []corev1.Pod{ready("new", 10*time.Second, restarted(3)), ready("old", -time.Hour)}, held("old", -time.Hour)},
			after:    time.Minute, failed: `Pod "new": container "gardenlet" has restarted 3 times, the last time with exit code 1 (Error)`,
		},
		"it never leads": {
			Observed: Observed{complete(0), []corev1.Pod{ready("new", 10*time.Second)}, held("", 0)},
			after:    10 * time.Minute, failed: `none of its pods holds Lease "lease"`,
		},
		"it is to have no pods": {
			Observed: Observed{scaled(0), nil, held("old", -time.Hour)}, offline: true,
			after: time.Minute, want: Verdict{Works: true},
		},
		"it is to have no pods, one is not gone": {
			Observed: Observed{scaled(1), []corev1.Pod{ready("old", -time.Hour)}, held("old", -time.Hour)}, offline: true,
			after: 9 * time.Minute, want: Verdict{RecheckIn: time.Minute},
		},
		"it was deleted": {Observed: Observed{}, after: 10 * time.Minute, failed: `Deployment "gardenlet" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			try := &Trial{Since: metav1.NewTime(begin), Applied: metav1.NewTime(begin), Lease: "lease"}
			if tc.partly {
				try.Applied = metav1.Time{}
			}
			if n := len(tc.Pods); n > 0 && !tc.offline {
				try.Confirmed = tc.Pods[0].Name
			}
			if tc.noLease {
				try.Lease = ""
			}
			got := Judge(try, tc.Observed, begin.Add(tc.after))
			if tc.failed != "" {
				if !strings.Contains(got.Failed, tc.failed) || got.Works || got.Late != (tc.after == Timeout) {
					t.Errorf("Judge() = %+v, want that it failed with %q", got, tc.failed)
				}
			} else if got != tc.want {
				t.Errorf("Judge() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// A pod that was evicted stays for hours, and says nothing about the gardenlet.
func TestObserveSkipsPodsThatHaveEnded(t *testing.T) {
	labels := map[string]string{"app": "gardener", "role": "gardenlet"}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: phase}}
	}
	seed := fake.NewClientBuilder().WithObjects(
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet"},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		pod("evicted", corev1.PodFailed), pod("ended", corev1.PodSucceeded), pod("pending", corev1.PodPending), pod("running", corev1.PodRunning),
	).Build()
	o, err := Observe(t.Context(), seed, &Trial{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range o.Pods {
		names = append(names, o.Pods[i].Name)
	}
	if want := []string{"pending", "running"}; !slices.Equal(names, want) {
		t.Errorf("Observe() has pods %v, want %v", names, want)
	}
}
