package health

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDecide(t *testing.T) {
	found := func(kind, name string) finding {
		return finding{kind: kind, name: types.NamespacedName{Namespace: "n", Name: name}}
	}
	with := func(f finding, unhealthy, progressing error) finding {
		f.unhealthy, f.progressing = unhealthy, progressing
		return f
	}
	missing := found("ConfigMap", "c")
	missing.missing = true
	healthy := corev1beta1.Condition{Type: "ResourcesHealthy", Status: "True", Reason: "ResourcesHealthy", Message: "All resources are healthy."}
	done := corev1beta1.Condition{Type: "ResourcesProgressing", Status: "False", Reason: "ResourcesRolledOut", Message: "All resources have been fully rolled out."}
	few := errors.New("too few")
	var many []finding
	for i := range 7 {
		many = append(many, with(found("Job", fmt.Sprint(i)), few, nil))
	}
	for name, tc := range map[string]struct {
		findings []finding
		want     []corev1beta1.Condition
	}{
		"nothing":     {want: []corev1beta1.Condition{healthy, done}},
		"all healthy": {findings: []finding{found("Deployment", "d")}, want: []corev1beta1.Condition{healthy, done}},
		"the order of objects does not matter": {
			findings: []finding{with(found("Deployment", "d"), few, few), missing},
			want: []corev1beta1.Condition{
				{Type: "ResourcesHealthy", Status: "False", Reason: "ConfigMapMissing", Message: "ConfigMap \"n/c\" is missing\nDeployment \"n/d\" is unhealthy: too few"},
				{Type: "ResourcesProgressing", Status: "True", Reason: "DeploymentProgressing", Message: "Deployment \"n/d\" is progressing: too few"},
			},
		},
		"many": {
			findings: many,
			want: []corev1beta1.Condition{{
				Type: "ResourcesHealthy", Status: "False", Reason: "JobUnhealthy",
				Message: "Job \"n/0\" is unhealthy: too few\nJob \"n/1\" is unhealthy: too few\nJob \"n/2\" is unhealthy: too few\n" +
					"Job \"n/3\" is unhealthy: too few\nJob \"n/4\" is unhealthy: too few\nand 2 more",
			}, done},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.findings)); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}
