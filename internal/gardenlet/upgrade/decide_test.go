package upgrade

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
)

func TestDecide(t *testing.T) {
	state := func(id string, state trial.State) *trial.Trial { return &trial.Trial{ID: id, State: state} }
	for name, tc := range map[string]struct {
		observed
		want action
	}{
		"as it is":                             {observed{Trial: state("", "")}, keep},
		"the first change":                     {observed{Trial: state("", ""), Differs: "a"}, prepare},
		"a change after one that worked":       {observed{Trial: state("old", trial.Succeeded), Differs: "a"}, prepare},
		"what works has been changed by hand":  {observed{Trial: state("new", trial.Succeeded), Differs: "a"}, repair},
		"prepared, the guard starts":           {observed{Trial: state("new", trial.Preparing), Differs: "a", Guard: guardState{Exists: true, Unready: errors.New("starts")}}, await},
		"prepared, the guard runs":             {observed{Trial: state("new", trial.Preparing), Differs: "a"}, begin},
		"prepared, and changed back":           {observed{Trial: state("old", trial.Preparing)}, keep},
		"prepared, and changed again":          {observed{Trial: state("old", trial.Preparing), Differs: "a"}, replace},
		"tried, interrupted":                   {observed{Trial: state("new", trial.Trying), Differs: "a"}, apply},
		"tried":                                {observed{Trial: state("new", trial.Trying)}, apply},
		"tried, and changed":                   {observed{Trial: state("old", trial.Trying), Differs: "a"}, replace},
		"rolling back":                         {observed{Trial: state("new", trial.RollingBack), Differs: "a"}, await},
		"rolling back, and changed":            {observed{Trial: state("old", trial.RollingBack), Differs: "a"}, await},
		"rolled back":                          {observed{Trial: state("new", trial.RolledBack), Differs: "a"}, restore},
		"rolled back, to be tried again":       {observed{Trial: state("new", trial.RolledBack), Differs: "a", Retry: true}, prepare},
		"rolled back, and changed":             {observed{Trial: state("old", trial.RolledBack), Differs: "a"}, prepare},
		"rolled back, and changed back":        {observed{Trial: state("old", trial.RolledBack)}, keep},
		"changed by hand, not approved":        {observed{Trial: state("new", trial.Succeeded), Differs: "a", Unapproved: true}, refuse},
		"created by the gardenlet, a change":   {observed{Trial: state("", ""), Differs: "a", Unapproved: true}, refuse},
		"created by the gardenlet, no change":  {observed{Trial: state("", ""), Unapproved: true}, keep},
		"created by the gardenlet, to be kept": {observed{Trial: state("old", trial.Succeeded), Unapproved: true}, keep},
	} {
		t.Run(name, func(t *testing.T) {
			tc.ID = "new"
			if got := decide(tc.observed); got != tc.want {
				t.Errorf("decide() = %s, want %s", got, tc.want)
			}
		})
	}
}

// A guard whose role is gone, or is another one, ends.
func TestGuardOf(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{UID: "role"}}
	deployment := func(owner types.UID, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: owner}}},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))}, Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: available},
		}
	}
	ending := deployment("role", 1)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		role          *rbacv1.ClusterRole
		deployment    *appsv1.Deployment
		exists, ready bool
	}{
		"it runs":             {role, deployment("role", 1), true, true},
		"it starts":           {role, deployment("role", 0), true, false},
		"it does not exist":   {role, &appsv1.Deployment{}, false, false},
		"of another role":     {role, deployment("before", 1), false, false},
		"its role is gone":    {&rbacv1.ClusterRole{}, deployment("before", 1), false, false},
		"nothing exists":      {&rbacv1.ClusterRole{}, &appsv1.Deployment{}, false, false},
		"it is being deleted": {role, ending, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := guardOf(tc.role, tc.deployment); got.Exists != tc.exists || (got.Unready == nil) != tc.ready {
				t.Errorf("guardOf() = %+v, want exists %t, ready %t", got, tc.exists, tc.ready)
			}
		})
	}
}

// Who waits in vain learns why.
func TestWaiting(t *testing.T) {
	since := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	unready := guardState{Exists: true, Unready: errors.New("ImagePullBackOff")}
	for name, tc := range map[string]struct {
		trial   trial.Trial
		guard   guardState
		after   time.Duration
		status  corev1beta1.ConditionStatus
		reason  string
		message string
	}{
		"the guard starts":         {trial.Trial{State: trial.Preparing}, unready, time.Minute, corev1beta1.ConditionProgressing, "Reconciling", "ImagePullBackOff"},
		"the guard cannot start":   {trial.Trial{State: trial.Preparing}, unready, 5 * time.Minute, corev1beta1.ConditionFalse, "GuardNotReady", "ImagePullBackOff"},
		"the guard does not start": {trial.Trial{State: trial.Trying}, unready, 5 * time.Minute, corev1beta1.ConditionFalse, "GuardNotReady", "ImagePullBackOff"},
		"it is tried":              {trial.Trial{State: trial.Trying}, guardState{Exists: true}, 9 * time.Minute, corev1beta1.ConditionProgressing, "Reconciling", "rolled back if it does not work"},
		"it is rolled back":        {trial.Trial{State: trial.RollingBack, Reason: "it crashes"}, guardState{Exists: true}, 9 * time.Minute, corev1beta1.ConditionProgressing, "Reconciling", "it crashes"},
		"it failed to be restored": {trial.Trial{State: trial.RollingBack, RestoreError: "forbidden"}, guardState{Exists: true}, time.Minute, corev1beta1.ConditionProgressing, "Reconciling", "forbidden"},
		"it cannot be rolled back": {trial.Trial{State: trial.RollingBack, RestoreError: "forbidden"}, guardState{Exists: true}, 5 * time.Minute, corev1beta1.ConditionFalse, "RollbackFailed", "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.trial.Since = metav1.NewTime(since)
			got := waiting(&tc.trial, tc.guard, since.Add(tc.after))
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("waiting() = %+v, want %s, %s with %q", got, tc.status, tc.reason, tc.message)
			}
		})
	}
}

// What the operator deploys, the gardenlet does not deploy at the same time.
func TestByOperator(t *testing.T) {
	for name, tc := range map[string]struct {
		object seedmanagementv1alpha1.Gardenlet
		want   bool
	}{
		"a change":     {want: false},
		"an operation": {object: seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/operation": "reconcile"}}}},
		"forced":       {object: seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/operation": "force-redeploy"}}}, want: true},
		"with a kubeconfig": {object: seedmanagementv1alpha1.Gardenlet{Spec: seedmanagementv1alpha1.GardenletSpec{
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "a"},
		}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := byOperator(&tc.object); got != tc.want {
				t.Errorf("byOperator() = %t, want %t", got, tc.want)
			}
		})
	}
}

// The gardenlet before and the one after have to agree about what is tried.
func TestIdentify(t *testing.T) {
	object := func(config string) *seedmanagementv1alpha1.Gardenlet {
		return &seedmanagementv1alpha1.Gardenlet{Spec: seedmanagementv1alpha1.GardenletSpec{Config: &runtime.RawExtension{Raw: []byte(config)}}}
	}
	id := func(object *seedmanagementv1alpha1.Gardenlet, archive string) string {
		got, err := identify(object, []byte(archive))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := id(object(`{"a":1,"b":2}`), "chart")
	if first != id(object(`{"b": 2, "a": 1}`), "chart") {
		t.Error("the order of fields changes it")
	}
	if first == id(object(`{"a":1,"b":3}`), "chart") || first == id(object(`{"a":1,"b":2}`), "other") {
		t.Error("another configuration or chart does not change it")
	}
	annotated := object(`{"a":1,"b":2}`)
	annotated.Generation, annotated.Annotations = 5, map[string]string{"gardener.cloud/operation": "reconcile"}
	if first != id(annotated, "chart") {
		t.Error("an operation changes it")
	}
}
