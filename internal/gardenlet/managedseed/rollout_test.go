package managedseed

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/test/builder"
)

// record is that of a deployment, with objects before unless it is the first one.
func record(id string, state trial.State, first bool) *trial.Trial {
	t := &trial.Trial{ID: id, State: state, Since: metav1.NewTime(time.Unix(0, 0)), Reason: "it crashed"}
	if !first {
		t.Previous = []trial.Previous{{Object: &unstructured.Unstructured{}}}
	}
	return t
}

func TestDecide(t *testing.T) {
	crash := &problem{Reason: reasonCrash, Message: "it crashes"}
	bad, works := trial.Verdict{Failed: "it does not work"}, trial.Verdict{Works: true}
	for name, tc := range map[string]struct {
		deployed
		want step
	}{
		"the first one":                              {deployed{Trial: record("", "", true)}, begin},
		"another one":                                {deployed{Trial: record("old", trial.Succeeded, true)}, begin},
		"it works for long":                          {deployed{Trial: record("new", trial.Succeeded, true), Verdict: works}, apply},
		"it worked, and does not any more":           {deployed{Trial: record("new", trial.Succeeded, true), Verdict: bad, Problem: crash}, apply},
		"it is tried":                                {deployed{Trial: record("new", trial.Trying, false)}, apply},
		"it has just begun to work":                  {deployed{Trial: record("new", trial.Trying, false), Verdict: works}, succeed},
		"it does not work":                           {deployed{Trial: record("new", trial.Trying, false), Verdict: bad, Problem: crash}, rollBack},
		"the first one does not work":                {deployed{Trial: record("new", trial.Trying, true), Verdict: bad, Problem: crash}, apply},
		"the first one works in the end":             {deployed{Trial: record("new", trial.Trying, true), Verdict: bad}, succeed},
		"it does not work, and a user changed it":    {deployed{Trial: record("old", trial.Trying, false), Verdict: bad, Problem: crash}, begin},
		"it is rolled back, and a user changed it":   {deployed{Trial: record("old", trial.RollingBack, false), Verdict: bad}, begin},
		"it is rolled back, interrupted":             {deployed{Trial: record("new", trial.RollingBack, false)}, rollBack},
		"it was rolled back":                         {deployed{Trial: record("new", trial.RolledBack, false), Verdict: works}, restore},
		"it was rolled back, an operator retries":    {deployed{Trial: record("new", trial.RolledBack, false), Retry: true}, begin},
		"it was rolled back, and a user changed it":  {deployed{Trial: record("old", trial.RolledBack, false)}, begin},
		"it works, and an operator reconciles again": {deployed{Trial: record("new", trial.Succeeded, true), Retry: true}, apply},
	} {
		t.Run(name, func(t *testing.T) {
			tc.ID = "new"
			if got := decide(tc.deployed); got != tc.want {
				t.Errorf("decide() = %q, want %q", got, tc.want)
			}
		})
	}
}

// A gardenlet that waits for nothing but its Lease works long before the end of its trial.
func TestRecheckIn(t *testing.T) {
	for name, tc := range map[string]struct {
		state         trial.State
		recheck, want time.Duration
		renews        bool
	}{
		"it works":                                 {state: trial.Succeeded, recheck: 0, want: time.Hour},
		"it was rolled back":                       {state: trial.RolledBack, recheck: 2 * time.Minute, want: 2 * time.Minute},
		"it is tried":                              {state: trial.Trying, recheck: 9 * time.Minute, want: time.Minute},
		"it is tried, and works in some seconds":   {state: trial.Trying, recheck: 5 * time.Second, want: 5 * time.Second},
		"it is tried, without one to roll back to": {state: trial.Trying, recheck: 0, want: time.Minute},
		"it works, and gets a new certificate":     {state: trial.Succeeded, want: time.Minute, renews: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployed{Trial: record("a", tc.state, true), Verdict: trial.Verdict{RecheckIn: tc.recheck}, Renews: tc.renews}
			if got := d.recheckIn(time.Hour); got != tc.want {
				t.Errorf("recheckIn() = %s, want %s", got, tc.want)
			}
		})
	}
}

// GardenletReady of a Seed may be that of the gardenlet before.
func TestConfirmed(t *testing.T) {
	acquired := time.Unix(0, 0).Add(time.Hour)
	held := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("new_uid"), AcquireTime: &metav1.MicroTime{Time: acquired}}}
	seed := func(ready corev1beta1.ConditionStatus, writer string, written time.Time) *corev1beta1.Seed {
		return builder.Seed("s", func(s *corev1beta1.Seed) {
			s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: ready}}
			s.Status.Gardener = &corev1beta1.Gardener{Name: writer}
			s.Status.LastOperation = &corev1beta1.LastOperation{LastUpdateTime: metav1.NewTime(written)}
		})
	}
	before, after := acquired.Add(-time.Minute), acquired.Add(time.Minute)
	for name, tc := range map[string]struct {
		seed    *corev1beta1.Seed
		lease   *coordinationv1.Lease
		noLease bool
		want    string
	}{
		"it has reconciled its Seed":                {seed: seed("True", "new", before), lease: held, want: "new"},
		"it reconciles its Seed":                    {seed: seed("True", "old", after), lease: held, want: "new"},
		"the one before has":                        {seed: seed("True", "old", before), lease: held},
		"it stopped":                                {seed: seed("Unknown", "new", after), lease: held},
		"there is no leader":                        {seed: seed("True", "old", after)},
		"it has not registered its Seed":            {lease: held},
		"its status is empty":                       {seed: builder.Seed("s"), lease: held},
		"without a leader election":                 {seed: seed("True", "new", before), noLease: true, want: "new"},
		"without a leader election, it has stopped": {seed: seed("False", "new", before), noLease: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &trial.Trial{Lease: "lease", Confirmed: "new"}
			if tc.noLease {
				r.Lease = ""
			}
			if got := confirmed(r, trial.Observed{Lease: tc.lease}, tc.seed); got != tc.want {
				t.Errorf("confirmed() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	crash, starts := &problem{Reason: reasonCrash, Message: "it ended"}, &problem{"RollingOut", "1 of 2 pods", true}
	bad := trial.Verdict{Failed: "it does not work"}
	for name, tc := range map[string]struct {
		deployed
		after    time.Duration
		want     corev1beta1.ConditionStatus
		reason   string
		contains []string
		without  string
	}{
		"tried": {deployed{Trial: record("a", trial.Trying, false)}, 0, "Progressing", "Deploying", []string{"rolled back if it does not work"}, ""},
		"tried, its image is missing": {
			deployed{Trial: record("a", trial.Trying, false), Problem: &problem{Reason: reasonImagePull, Message: "no image"}},
			0,
			"Progressing", "ImagePullBackOff",
			[]string{"no image"},
			"",
		},
		"the first one":          {deployed{Trial: record("a", trial.Trying, true)}, 0, "Progressing", "Deploying", nil, "rolled back"},
		"the first one crashes":  {deployed{Trial: record("a", trial.Trying, true), Verdict: bad, Problem: crash}, 0, "False", "CrashLoopBackOff", []string{"it ended", "no gardenlet before"}, ""},
		"works":                  {deployed{Trial: record("a", trial.Succeeded, true)}, 0, "True", "GardenletHealthy", []string{"works"}, ""},
		"worked, and crashes":    {deployed{Trial: record("a", trial.Succeeded, true), Problem: crash}, 0, "False", "CrashLoopBackOff", []string{"it ended"}, "before"},
		"works, a pod is moved":  {deployed{Trial: record("a", trial.Succeeded, true), Problem: starts}, 0, "Progressing", "RollingOut", []string{"1 of 2"}, ""},
		"rolled back, it starts": {deployed{Trial: record("a", trial.RolledBack, false), Problem: starts}, 0, "False", "RolledBack", []string{"it crashed", "not tried again until"}, "1 of 2"},
		"rolled back, the one before crashes": {
			deployed{Trial: record("a", trial.RolledBack, false), Problem: crash},
			time.Minute, "False", "RolledBack",
			[]string{"it crashed", "does not work either: it ended"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := health(tc.deployed, time.Unix(0, 0).Add(tc.after))
			if got.Type != "GardenletHealthy" || got.Status != tc.want || got.Reason != tc.reason {
				t.Errorf("health() = %+v, want %s with reason %s", got, tc.want, tc.reason)
			}
			for _, text := range tc.contains {
				if !strings.Contains(got.Message, text) {
					t.Errorf("the message is %q, want one with %q", got.Message, text)
				}
			}
			if tc.without != "" && strings.Contains(got.Message, tc.without) {
				t.Errorf("the message is %q, want one without %q", got.Message, tc.without)
			}
		})
	}
}

func TestDiagnose(t *testing.T) {
	complete := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "gardenlet"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	with := func(conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
		d := complete.DeepCopy()
		d.Status.AvailableReplicas, d.Status.Conditions = 0, conditions
		return d
	}
	pod := func(status corev1.ContainerStatus) []corev1.Pod {
		status.Name, status.Image = "gardenlet", "registry.example.com/gardener:v1"
		return []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}}
	}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "log\nerror: no seed"}}
	seed := func(status corev1beta1.ConditionStatus) *corev1beta1.Seed {
		return builder.Seed("s", func(s *corev1beta1.Seed) {
			s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: status, Message: "Gardenlet stopped"}}
		})
	}
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		seed       *corev1beta1.Seed
		want       problem // none if empty
	}{
		"works":          {complete, nil, seed("True"), problem{}},
		"does not exist": {nil, nil, seed("True"), problem{"NotDeployed", `Deployment "gardenlet" does not exist`, true}},
		"an image that cannot be pulled": {
			complete, pod(corev1.ContainerStatus{State: waiting("ErrImagePull", "of the registry")}), seed("True"),
			problem{"ImagePullBackOff", `Pod "p": container "gardenlet": image "registry.example.com/gardener:v1" cannot be pulled`, false},
		},
		"it crashes": {
			complete, pod(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: ended}), seed("True"),
			problem{"CrashLoopBackOff", `Pod "p": container "gardenlet": it ended with exit code 1 (Error): error: no seed`, false},
		},
		"it crashes, between": {
			complete, pod(corev1.ContainerStatus{RestartCount: 2, LastTerminationState: ended}), seed("True"),
			problem{"CrashLoopBackOff", `Pod "p": container "gardenlet": it ended with exit code 1 (Error): error: no seed`, false},
		},
		"it started again for a certificate": {complete, pod(corev1.ContainerStatus{RestartCount: 1, LastTerminationState: ended}), seed("True"), problem{}},
		"it cannot be created": {
			complete, pod(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `secret "a" not found`)}), seed("True"),
			problem{"CreateContainerConfigError", `Pod "p": container "gardenlet": CreateContainerConfigError: secret "a" not found`, false},
		},
		"it is created": {complete, pod(corev1.ContainerStatus{State: waiting("ContainerCreating", "")}), seed("True"), problem{}},
		"no node": {
			complete, []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes",
			}}}}}, seed("True"), problem{"Unschedulable", `Pod "p" is not scheduled: 0/1 nodes`, false},
		},
		"no progress": {
			with(appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out"}),
			nil, seed("True"),
			problem{"ProgressDeadlineExceeded", `Deployment "gardenlet": timed out`, false},
		},
		"not registered": {complete, nil, nil, problem{"SeedNotRegistered", "it has not registered its Seed", true}},
		"not ready":      {complete, nil, seed("Unknown"), problem{"GardenletNotReady", `condition GardenletReady of Seed "s" is Unknown: Gardenlet stopped`, false}},
		"not ready yet":  {complete, nil, builder.Seed("s"), problem{"GardenletNotReady", `condition GardenletReady of Seed "s" is Unknown: `, true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnose(trial.Observed{Deployment: tc.deployment, Pods: tc.pods}, tc.seed)
			if got == nil {
				got = &problem{}
			}
			if *got != tc.want {
				t.Errorf("diagnose() = %+v, want %+v", *got, tc.want)
			}
		})
	}
	if got := diagnose(trial.Observed{Deployment: with()}, seed("True")); got == nil || got.Reason != "RollingOut" || !got.Transient {
		t.Errorf("diagnose() of a rollout = %+v", got)
	}
}

// The bootstrap credentials are no part of what is rolled back, nor of what identifies a gardenlet.
func TestSplitAndIdentify(t *testing.T) {
	object := func(kind, name, value string) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": kind, "metadata": map[string]any{"namespace": "garden", "name": name}, "data": map[string]any{"a": value},
		}}
	}
	secret, others := split(
		[]client.Object{object("Secret", "bootstrap", "a"), object("ConfigMap", "bootstrap", "a"), object("Secret", "other", "a")},
		corev1.SecretReference{Namespace: "garden", Name: "bootstrap"},
	)
	if len(secret) != 1 || secret[0].GetName() != "bootstrap" || len(others) != 2 {
		t.Errorf("split() = %v and %v", secret, others)
	}
	id := func(objects ...client.Object) string {
		id, err := identify(objects)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := id(object("ConfigMap", "a", "1"), object("ConfigMap", "b", "1"))
	if first != id(object("ConfigMap", "b", "1"), object("ConfigMap", "a", "1")) {
		t.Error("the order of objects counts")
	}
	if first == id(object("ConfigMap", "a", "2"), object("ConfigMap", "b", "1")) {
		t.Error("a changed object does not count")
	}
}

// A gardenlet that got new credentials during a trial gets its pods replaced for them by the roll-back, too.
func TestMarkBootstrapped(t *testing.T) {
	for at, want := range map[string]bool{"": false, "2026-11-24T12:00:00Z": true} {
		object := func(kind string) trial.Previous {
			return trial.Previous{Object: &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "gardenlet"}}}}
		}
		previous := []trial.Previous{object("ConfigMap"), object("Deployment")}
		if err := markBootstrapped(previous, at); err != nil {
			t.Fatal(err)
		}
		for _, p := range previous {
			got, found, err := unstructured.NestedString(p.Object.Object, "spec", "template", "metadata", "annotations", annotationBootstrapped)
			if wanted := want && p.Object.GetKind() == "Deployment"; err != nil || found != wanted || got != "" && got != at {
				t.Errorf("the annotation of the %s is %q, %t, %v, want %q", p.Object.GetKind(), got, found, err, at)
			}
		}
	}
}

// A gardenlet whose objects cannot be applied is not rolled back by the time: the error is reported.
func TestApplied(t *testing.T) {
	late, crash := trial.Verdict{Failed: "it does not work after 10m0s", Late: true}, trial.Verdict{Failed: "it crashes"}
	all, some := &trial.Trial{Applied: metav1.Now()}, &trial.Trial{}
	for name, tc := range map[string]struct {
		verdict trial.Verdict
		trial   *trial.Trial
		want    trial.Verdict
	}{
		"late": {late, all, late},
		"late, but its objects cannot be applied":       {late, some, trial.Verdict{RecheckIn: trial.SteadyTime}},
		"it crashes, and its objects cannot be applied": {crash, some, crash},
	} {
		t.Run(name, func(t *testing.T) {
			if got := applied(tc.verdict, tc.trial); got != tc.want {
				t.Errorf("applied() = %+v, want %+v", got, tc.want)
			}
		})
	}
}
