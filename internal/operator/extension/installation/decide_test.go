package installation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

func helmDeployment() *operatorv1alpha1.ExtensionHelm {
	return &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{Ref: new("registry.example.com/chart:1")}}
}

// full is an Extension with all parts.
func full(change ...func(*operatorv1alpha1.Extension)) *operatorv1alpha1.Extension {
	e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2}, Spec: operatorv1alpha1.ExtensionSpec{
		Resources: []corev1beta1.ControllerResource{{Kind: "Worker", Type: "x"}},
		Deployment: &operatorv1alpha1.Deployment{
			Extension: &operatorv1alpha1.ExtensionDeploymentSpec{DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: helmDeployment()}},
			Admission: &operatorv1alpha1.AdmissionDeploymentSpec{
				RuntimeCluster: &operatorv1alpha1.DeploymentSpec{Helm: helmDeployment()}, VirtualCluster: &operatorv1alpha1.DeploymentSpec{Helm: helmDeployment()},
			},
		},
	}}
	for _, c := range change {
		c(e)
	}
	return e
}

func requires(status corev1beta1.ConditionStatus) func(*operatorv1alpha1.Extension) {
	return func(e *operatorv1alpha1.Extension) {
		e.Status.Conditions = append(e.Status.Conditions, corev1beta1.Condition{Type: operatorv1alpha1.ExtensionRequiredRuntime, Status: status})
	}
}

func was(status corev1beta1.ConditionStatus, reason string) func(*operatorv1alpha1.Extension) {
	return func(e *operatorv1alpha1.Extension) {
		e.Status.Conditions = append(e.Status.Conditions, corev1beta1.Condition{Type: operatorv1alpha1.ExtensionInstalled, Status: status, Reason: reason})
	}
}

func TestDecide(t *testing.T) {
	now := metav1.Now()
	garden := func(last *corev1beta1.LastOperation) *operatorv1alpha1.Garden {
		return &operatorv1alpha1.Garden{Status: operatorv1alpha1.GardenStatus{LastOperation: last}}
	}
	succeeded := garden(&corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100})
	processing := garden(&corev1beta1.LastOperation{Type: "Reconcile", State: "Processing", Progress: 100})
	halfway := garden(&corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 95})
	deleting := garden(nil)
	deleting.DeletionTimestamp = &now
	all := func(a action, going bool) plan {
		return plan{runtime: a, admissionVirtual: a, admissionRuntime: a, registration: a, going: going}
	}
	but := func(p plan, change func(*plan)) plan {
		change(&p)
		return p
	}
	gone := func(e *operatorv1alpha1.Extension) { e.DeletionTimestamp = &now }
	for name, tc := range map[string]struct {
		extension *operatorv1alpha1.Extension
		garden    *operatorv1alpha1.Garden
		want      plan
	}{
		"everything is installed":                            {full(requires("True")), succeeded, all(install, false)},
		"the garden does not require it":                     {full(requires("False")), succeeded, but(all(install, false), func(p *plan) { p.runtime = remove })},
		"it is not known yet whether the garden requires it": {full(), succeeded, but(all(install, false), func(p *plan) { p.runtime = leave })},
		"the Garden is new":                                  {full(requires("True")), garden(nil), but(all(leave, false), func(p *plan) { p.runtime = install })},
		"the Garden is reconciled":                           {full(requires("True")), processing, but(all(leave, false), func(p *plan) { p.runtime = install })},
		"only the admission controller in the virtual garden": {full(requires("True"), func(e *operatorv1alpha1.Extension) {
			e.Spec.Resources, e.Spec.Deployment.Extension, e.Spec.Deployment.Admission.RuntimeCluster = nil, nil, nil
		}), succeeded, but(all(remove, false), func(p *plan) { p.runtime, p.admissionVirtual = leave, install })},
		"no chart any more, with objects":       {full(requires("True"), func(e *operatorv1alpha1.Extension) { e.Spec.Deployment = nil }), succeeded, but(all(remove, false), func(p *plan) { p.runtime, p.registration = leave, install })},
		"only resources":                        {full(requires("False"), func(e *operatorv1alpha1.Extension) { e.Spec.Deployment = nil }), succeeded, but(all(remove, false), func(p *plan) { p.registration = install })},
		"the Garden has only succeeded in part": {full(requires("True")), halfway, but(all(leave, false), func(p *plan) { p.runtime = install })},
		"no Garden":                             {full(requires("False")), nil, all(remove, true)},
		"the Garden is deleted":                 {full(requires("False")), deleting, all(remove, true)},
		"the Garden is deleted, with objects":   {full(requires("True")), deleting, but(all(remove, true), func(p *plan) { p.runtime = install })},
		"no Garden, but objects":                {full(requires("True")), nil, but(all(remove, true), func(p *plan) { p.runtime = leave })},
		"the Garden is deleted, with objects but no chart": {
			full(requires("True"), func(e *operatorv1alpha1.Extension) { e.Spec.Deployment = nil }), deleting, but(all(remove, true), func(p *plan) { p.runtime = leave }),
		},
		"the Extension is deleted":                            {full(requires("False"), gone), succeeded, all(remove, true)},
		"the Extension is deleted but the garden requires it": {full(requires("True"), gone), succeeded, but(all(remove, true), func(p *plan) { p.runtime = install })},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.extension, tc.garden), cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbsentAndPending(t *testing.T) {
	waits, deletes := &waiting{message: "wait"}, &waiting{deletion: true, message: "wait"}
	for name, tc := range map[string]struct {
		got            []corev1beta1.Condition
		status, reason string
	}{
		"no Garden": {absent(full(), nil).Conditions, "False", "NoGardenFound"},
		"the Garden was deleted with the objects":    {absent(full(was("False", "DeleteSuccessful")), nil).Conditions, "False", "DeleteSuccessful"},
		"the Garden is being deleted":                {absent(full(), &operatorv1alpha1.Garden{}).Conditions, "False", "DeleteSuccessful"},
		"waits for the Garden":                       {pending(full(was("False", "NoGardenFound")), waits).Conditions, "Progressing", "GardenNotReconciled"},
		"waits for the Garden, but is installed":     {pending(full(was("True", "ReconcileSuccessful")), waits).Conditions, "", ""},
		"waits for a deletion":                       {pending(full(was("True", "ReconcileSuccessful")), deletes).Conditions, "Progressing", "Deleting"},
		"the installation failed":                    {failed(full(), plan{}, errors.New("no")).Conditions, "False", "ReconcileFailed"},
		"the deletion failed":                        {failed(full(), plan{going: true}, errors.New("no")).Conditions, "False", "DeleteFailed"},
		"stays for objects that are not deleted yet": {inRuntime().Conditions, "True", "InstalledInRuntime"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.reason == "" {
				if len(tc.got) > 0 {
					t.Errorf("conditions are %v, want none", tc.got)
				}
				return
			}
			if len(tc.got) != 1 || string(tc.got[0].Status) != tc.status || tc.got[0].Reason != tc.reason || tc.got[0].Message == "" {
				t.Errorf("conditions are %v, want %s, %s", tc.got, tc.status, tc.reason)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	failed, waits := errors.New("no"), &waiting{message: "wait"}
	var wait *waiting
	if err := first([]error{nil, waits, failed}); !errors.Is(err, failed) || errors.As(err, &wait) {
		t.Errorf("first() = %v, want the failure", err)
	}
	if err := first([]error{nil, waits, nil}); !errors.As(err, &wait) {
		t.Errorf("first() = %v, want to wait", err)
	}
	if err := first([]error{nil, nil}); err != nil {
		t.Errorf("first() = %v, want none", err)
	}
}
