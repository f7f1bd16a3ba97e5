package upgrade

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
)

func TestDecide(t *testing.T) {
	state := func(id string, state trial.State) *trial.Trial { return &trial.Trial{ID: id, State: state} }
	for name, tc := range map[string]struct {
		observed
		want action
	}{
		"as it is":                             {observed{Trial: state("", "")}, keep},
		"the first change":                     {observed{Trial: state("", ""), Differs: true}, prepare},
		"a change after one that worked":       {observed{Trial: state("old", trial.Succeeded), Differs: true}, prepare},
		"what works has been changed by hand":  {observed{Trial: state("new", trial.Succeeded), Differs: true}, prepare},
		"prepared, the guard starts":           {observed{Trial: state("new", trial.Preparing), Differs: true}, await},
		"prepared, the guard runs":             {observed{Trial: state("new", trial.Preparing), Differs: true, GuardReady: true}, begin},
		"prepared, and changed back":           {observed{Trial: state("old", trial.Preparing), GuardReady: true}, keep},
		"prepared, and changed again":          {observed{Trial: state("old", trial.Preparing), Differs: true, GuardReady: true}, replace},
		"tried, interrupted":                   {observed{Trial: state("new", trial.Trying), Differs: true}, apply},
		"tried":                                {observed{Trial: state("new", trial.Trying)}, apply},
		"tried, and changed":                   {observed{Trial: state("old", trial.Trying), Differs: true}, replace},
		"rolling back":                         {observed{Trial: state("new", trial.RollingBack), Differs: true}, await},
		"rolling back, and changed":            {observed{Trial: state("old", trial.RollingBack), Differs: true}, await},
		"rolled back":                          {observed{Trial: state("new", trial.RolledBack), Differs: true}, restore},
		"rolled back, to be tried again":       {observed{Trial: state("new", trial.RolledBack), Differs: true, Retry: true}, prepare},
		"rolled back, and changed":             {observed{Trial: state("old", trial.RolledBack), Differs: true}, prepare},
		"rolled back, and changed back":        {observed{Trial: state("old", trial.RolledBack)}, keep},
		"created by the gardenlet, a change":   {observed{Trial: state("", ""), Differs: true, Unapproved: true}, refuse},
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

func TestLeaseOf(t *testing.T) {
	for want, config := range map[string]release.Configuration{
		"gardenlet-leader-election": {"leaderElection": map[string]any{"resourceNamespace": "garden"}},
		"own":                       {"leaderElection": map[string]any{"leaderElect": true, "resourceName": "own"}},
		"":                          {"leaderElection": map[string]any{"leaderElect": false, "resourceName": "own"}},
	} {
		if got := leaseOf(config); got != want {
			t.Errorf("leaseOf(%v) = %q, want %q", config, got, want)
		}
	}
}
