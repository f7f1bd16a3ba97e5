package care

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		applied, healthy, progressing corev1beta1.ConditionStatus
		stale                         bool
		want                          []string
	}{
		"no conditions":    {want: []string{"Installed=False InstallationPending", "Healthy=False ControllerNotHealthy", "Progressing=True ControllerNotRolledOut"}},
		"healthy":          {"True", "True", "False", false, []string{"Installed=True InstallationSuccessful", "Healthy=True ControllerHealthy", "Progressing=False ControllerRolledOut"}},
		"being rolled out": {"True", "True", "True", false, []string{"Installed=True InstallationSuccessful", "Healthy=True ControllerHealthy", "Progressing=True ControllerNotRolledOut"}},
		"unhealthy":        {"True", "False", "False", false, []string{"Installed=True InstallationSuccessful", "Healthy=False ControllerNotHealthy", "Progressing=False ControllerRolledOut"}},
		"not observed yet": {"True", "True", "False", true, []string{"Installed=False InstallationPending", "Healthy=True ControllerHealthy", "Progressing=False ControllerRolledOut"}},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{}
			if tc.stale {
				mr.Generation = 2
			}
			for typ, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
				resourcesv1alpha1.ResourcesApplied: tc.applied, resourcesv1alpha1.ResourcesHealthy: tc.healthy, resourcesv1alpha1.ResourcesProgressing: tc.progressing,
			} {
				if status != "" {
					mr.Status.Conditions = append(mr.Status.Conditions, corev1beta1.Condition{Type: typ, Status: status})
				}
			}
			var got []string
			for _, c := range decide(mr) {
				got = append(got, string(c.Type)+"="+string(c.Status)+" "+c.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
	mr := &resourcesv1alpha1.ManagedResource{Status: resourcesv1alpha1.ManagedResourceStatus{Conditions: []corev1beta1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionFalse, Message: `Secret "a" is invalid: data[k]: Invalid value: "5ecret"`},
	}}}
	if got := decide(mr)[0].Message; !strings.Contains(got, "5ecret") {
		t.Errorf("without data of Secrets the message is %q", got)
	}
	mr.Annotations = map[string]string{"controllerinstallation.gardener.cloud/secret-data": "true"}
	if got := decide(mr)[0].Message; strings.Contains(got, "5ecret") {
		t.Errorf("with data of Secrets the message is %q", got)
	}
	if got := decide(nil); got != nil {
		t.Errorf("conditions without a ManagedResource are %v", got)
	}
}
