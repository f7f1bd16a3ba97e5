package plantvalidator_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/plantvalidator"
)

func TestAdmit(t *testing.T) {
	const createdBy = "gardener.cloud/created-by"
	deleted := &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "deleted", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"gardener"}},
		Spec:       corev1beta1.ProjectSpec{Namespace: new("garden-deleted")},
	}
	reader := admissiontest.Reader(t, deleted, &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-dev")},
	})
	for name, tc := range map[string]struct {
		namespace, subresource string
		annotations            map[string]string
		creator                string
		reason                 metav1.StatusReason
	}{
		"a new one has its creator":              {namespace: "garden-dev", creator: "alice"},
		"not whom the request names":             {namespace: "garden-dev", annotations: map[string]string{createdBy: "mallory"}, creator: "alice"},
		"a subresource is ignored":               {namespace: "garden-deleted", subresource: "status"},
		"its project is being deleted":           {namespace: "garden-deleted", reason: metav1.StatusReasonForbidden},
		"the namespace is not that of a project": {namespace: "default", reason: metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			plant := &corev1beta1.Plant{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "p", Annotations: tc.annotations}}
			p := plantvalidator.New()
			p.GardenCache = reader
			if !p.Handles(admission.Create) {
				t.Error("the plugin does not handle the creation of Plants")
			}
			request := admissiontest.Request{Resource: "plants", Subresource: tc.subresource, Object: plant}
			if err := p.Admit(t.Context(), request.Attributes(), nil); admissiontest.Reason(err) != tc.reason {
				t.Fatalf("Admit() = %v, want reason %q", err, tc.reason)
			}
			if got := plant.Annotations[createdBy]; got != tc.creator {
				t.Errorf("the creator is %q, want %q", got, tc.creator)
			}
		})
	}
}
