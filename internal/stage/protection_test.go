package stage

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestProtectedReplicas(t *testing.T) {
	deployment := func(replicas *int32, protected bool) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: replicas}}
		if protected {
			d.Annotations = map[string]string{"dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}
		}
		return d
	}
	for name, tc := range map[string]struct {
		existing *appsv1.Deployment
		desired  int32
		want     int32
	}{
		"new":                                    {existing: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "another"}}, desired: 1, want: 1},
		"running":                                {existing: deployment(new(int32(1)), false), desired: 1, want: 1},
		"waking up":                              {existing: deployment(new(int32(0)), false), desired: 1, want: 1},
		"scaled down by the watchdog":            {existing: deployment(new(int32(0)), true), desired: 1, want: 0},
		"protected, not scaled down yet":         {existing: deployment(new(int32(1)), true), desired: 1, want: 1},
		"hibernates while the watchdog protects": {existing: deployment(new(int32(1)), true), desired: 0, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := &Run{SeedAPI: fake.NewClientBuilder().WithObjects(tc.existing).Build(), Namespace: "a", Protected: true}
			if got, err := run.ProtectedReplicas(t.Context(), "d", tc.desired); err != nil || got != tc.want {
				t.Errorf("ProtectedReplicas() = %d, %v, want %d", got, err, tc.want)
			}
			run.Protected = false
			if got, err := run.ProtectedReplicas(t.Context(), "d", tc.desired); err != nil || got != tc.desired {
				t.Errorf("ProtectedReplicas() without the watchdog = %d, %v, want %d", got, err, tc.desired)
			}
		})
	}
}
