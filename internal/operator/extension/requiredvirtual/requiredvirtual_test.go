package requiredvirtual

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

func installation(name, registration string, required corev1beta1.ConditionStatus) corev1beta1.ControllerInstallation {
	ci := corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ci.Spec.RegistrationRef.Name = registration
	if required != "" {
		ci.Status.Conditions = []corev1beta1.Condition{{Type: "Required", Status: required}}
	}
	return ci
}

func TestDecide(t *testing.T) {
	yes := func(names string) corev1beta1.Condition {
		return corev1beta1.Condition{
			Type: "RequiredVirtual", Status: "True", Reason: "RequiredControllerInstallation", Message: "ControllerInstallations of the extension are required: " + names,
		}
	}
	no := corev1beta1.Condition{
		Type: "RequiredVirtual", Status: "False", Reason: "NoRequiredControllerInstallation", Message: "No ControllerInstallation of the extension is required.",
	}
	for name, tc := range map[string]struct {
		installations []corev1beta1.ControllerInstallation
		want          corev1beta1.Condition
	}{
		"none":                      {want: no},
		"not required":              {installations: []corev1beta1.ControllerInstallation{installation("x-1", "x", "False")}, want: no},
		"not reported yet":          {installations: []corev1beta1.ControllerInstallation{installation("x-1", "x", "")}, want: no},
		"another extension":         {installations: []corev1beta1.ControllerInstallation{installation("y-1", "y", "True")}, want: no},
		"required in several seeds": {installations: []corev1beta1.ControllerInstallation{installation("x-2", "x", "True"), installation("x-1", "x", "True")}, want: yes("x-1, x-2")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide("x", tc.installations)); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteGardenDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	e.Status.Conditions = []corev1beta1.Condition{{Type: "RequiredVirtual", Status: "True"}, {Type: "RequiredRuntime", Status: "True"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).WithStatusSubresource(e).Build()
	if err := WriteGardenDeleted(t.Context(), c, testingclock.NewFakePassiveClock(time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	got := e.Status.Conditions
	if len(got) != 2 || got[0].Status != "False" || got[0].Reason != "GardenDeleted" || got[1].Status != "True" {
		t.Errorf("conditions are %v", got)
	}
}
