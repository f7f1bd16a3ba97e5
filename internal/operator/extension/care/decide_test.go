package care

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// managedResource is one whose objects have a health, with a message if they are not applied.
func managedResource(name string, healthy corev1beta1.ConditionStatus, notApplied string) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	mr.Status.Conditions = []corev1beta1.Condition{
		{Type: "ResourcesApplied", Status: "True"}, {Type: "ResourcesHealthy", Status: healthy, Message: "no pods"}, {Type: "ResourcesProgressing", Status: "False"},
	}
	if notApplied != "" {
		mr.Status.Conditions[0].Status, mr.Status.Conditions[0].Message = "False", notApplied
	}
	return mr
}

func installation(name, registration string, healthy corev1beta1.ConditionStatus) corev1beta1.ControllerInstallation {
	ci := corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ci.Spec.RegistrationRef.Name = registration
	ci.Status.Conditions = []corev1beta1.Condition{
		{Type: "Valid", Status: "True"}, {Type: "Installed", Status: "True"}, {Type: "Healthy", Status: healthy, Message: "no pods"}, {Type: "Progressing", Status: "False"},
	}
	return ci
}

func TestDecide(t *testing.T) {
	helm := &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{}}
	chart := func(e *operatorv1alpha1.Extension) {
		e.Spec.Deployment.Extension = &operatorv1alpha1.ExtensionDeploymentSpec{DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: helm}}
	}
	required := func(e *operatorv1alpha1.Extension) {
		e.Status.Conditions = []corev1beta1.Condition{{Type: "RequiredRuntime", Status: "True"}}
	}
	admission := func(runtime, virtual bool) func(*operatorv1alpha1.Extension) {
		return func(e *operatorv1alpha1.Extension) {
			e.Spec.Deployment.Admission = &operatorv1alpha1.AdmissionDeploymentSpec{}
			if runtime {
				e.Spec.Deployment.Admission.RuntimeCluster = &operatorv1alpha1.DeploymentSpec{Helm: helm}
			}
			if virtual {
				e.Spec.Deployment.Admission.VirtualCluster = &operatorv1alpha1.DeploymentSpec{Helm: helm}
			}
		}
	}
	secret := func(e *operatorv1alpha1.Extension) {
		e.Spec.Deployment.Resources = []gardencorev1.NamedResourceReference{{ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: "Secret"}}}
	}
	type options = []func(*operatorv1alpha1.Extension)
	const runtime, virtual, pods, registered = "extension-x-garden", "extension-admission-virtual-x", "extension-admission-runtime-x", "extension-registration-x"
	registration := managedResource(registered, "True", "")
	for name, tc := range map[string]struct {
		options          options
		managedResources []resourcesv1alpha1.ManagedResource
		installations    []corev1beta1.ControllerInstallation
		want             []string
	}{
		"no parts": {want: nil},
		"a chart, not required by the garden, without installations": {
			options: options{chart}, managedResources: []resourcesv1alpha1.ManagedResource{registration},
			want: []string{"ControllerInstallationsHealthy True ControllerInstallationsRunning: All ControllerInstallations of the extension are healthy."},
		},
		"the registration is refused": {
			options: options{chart}, managedResources: []resourcesv1alpha1.ManagedResource{managedResource(registered, "True", "invalid")},
			want: []string{"ControllerInstallationsHealthy False ControllerInstallationsNotHealthy: ManagedResource garden/extension-registration-x: ResourcesApplied is False: invalid"},
		},
		"a ControllerInstallation is unhealthy": {
			options: options{chart}, managedResources: []resourcesv1alpha1.ManagedResource{registration},
			installations: []corev1beta1.ControllerInstallation{installation("x-2", "x", "False"), installation("x-1", "x", "True"), installation("y-1", "y", "False")},
			want:          []string{`ControllerInstallationsHealthy False ControllerInstallationsNotHealthy: ControllerInstallation "x-2": condition Healthy is False: no pods`},
		},
		"a chart that the garden requires": {
			options: options{chart, required}, managedResources: []resourcesv1alpha1.ManagedResource{registration, managedResource(runtime, "False", "")},
			want: []string{
				"ControllerInstallationsHealthy True ControllerInstallationsRunning: All ControllerInstallations of the extension are healthy.",
				"RuntimeHealthy False RuntimeComponentsNotHealthy: ManagedResource garden/extension-x-garden: ResourcesHealthy is False: no pods",
			},
		},
		"both parts of an admission controller": {
			options: options{admission(true, true)}, managedResources: []resourcesv1alpha1.ManagedResource{managedResource(pods, "True", "")},
			want: []string{`AdmissionHealthy False AdmissionComponentsNotHealthy: ManagedResource "extension-admission-virtual-x": not found`},
		},
		"only one part of an admission controller": {
			options: options{admission(false, true)}, managedResources: []resourcesv1alpha1.ManagedResource{managedResource(virtual, "True", "")},
			want: []string{"AdmissionHealthy True AdmissionComponentsRunning: All objects of the admission controller are healthy."},
		},
		"an error that may quote a Secret": {
			options: options{admission(true, false), secret}, managedResources: []resourcesv1alpha1.ManagedResource{managedResource(pods, "True", "5ecret")},
			want: []string{"AdmissionHealthy False AdmissionComponentsNotHealthy: ManagedResource garden/extension-admission-runtime-x: ResourcesApplied is False: " +
				"the error is not shown, as values of the chart are data of Secrets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: operatorv1alpha1.ExtensionSpec{Deployment: &operatorv1alpha1.Deployment{}}}
			for _, option := range tc.options {
				option(e)
			}
			status := decide(e, tc.managedResources, tc.installations)
			var got []string
			for _, c := range status.Conditions {
				got = append(got, strings.Join([]string{string(c.Type), string(c.Status), c.Reason}, " ")+": "+c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if len(status.Conditions)+len(status.Without) != 3 {
				t.Errorf("conditions %v are removed, want all others", status.Without)
			}
		})
	}
}
