package care

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gateway"
)

func healthy() *observed {
	o := &observed{}
	for _, name := range requiredDeployments {
		o.deployments = append(o.deployments, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
			Status: appsv1.DeploymentStatus{
				Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			},
		})
	}
	for _, name := range requiredEtcds {
		o.etcds = append(o.etcds, druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: druidv1alpha1.EtcdStatus{Ready: new(true)}})
	}
	o.managedResources = []resourcesv1alpha1.ManagedResource{
		managedResource("runtime", new("seed"), ""), managedResource("virtual", nil, ""),
		managedResource("labelled", new("seed"), operatorv1alpha1.VirtualComponentsHealthy),
		managedResource("observability", nil, operatorv1alpha1.ObservabilityComponentsHealthy),
	}
	return o
}

func managedResource(name string, class *string, typ corev1beta1.ConditionType) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	mr.Spec.Class = class
	if typ != "" {
		mr.Labels = map[string]string{constants.CareConditionType: string(typ)}
	}
	mr.Status.Conditions = []corev1beta1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue},
		{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: corev1beta1.ConditionFalse},
	}
	return mr
}

// fails makes a condition of a ManagedResource False.
func fails(index int, typ corev1beta1.ConditionType, reason string) func(*observed) {
	return func(o *observed) {
		for i := range o.managedResources[index].Status.Conditions {
			if c := &o.managedResources[index].Status.Conditions[i]; c.Type == typ {
				c.Status, c.Reason, c.Message = corev1beta1.ConditionFalse, reason, "broken"
			}
		}
	}
}

func TestDecide(t *testing.T) {
	const (
		api           = operatorv1alpha1.VirtualGardenAPIServerAvailable
		runtime       = operatorv1alpha1.RuntimeComponentsHealthy
		virtual       = operatorv1alpha1.VirtualComponentsHealthy
		observability = operatorv1alpha1.ObservabilityComponentsHealthy
	)
	for name, tc := range map[string]struct {
		change func(*observed)
		// reasons are those of conditions that are False.
		reasons map[corev1beta1.ConditionType]string
	}{
		"healthy":              {func(*observed) {}, nil},
		"nothing of a gateway": {func(o *observed) { o.managedResources = nil }, nil},
		"API server":           {func(o *observed) { o.apiServerError = errors.New("refused") }, map[corev1beta1.ConditionType]string{api: "VirtualGardenAPIServerDown"}},
		"Deployment missing":   {func(o *observed) { o.deployments = o.deployments[:2] }, map[corev1beta1.ConditionType]string{virtual: "DeploymentMissing"}},
		"Deployment rolling":   {func(o *observed) { o.deployments[1].Generation, o.deployments[1].Status.Replicas = 1, 2 }, nil},
		"Deployment unhealthy": {func(o *observed) { o.deployments[1].Status = appsv1.DeploymentStatus{} }, map[corev1beta1.ConditionType]string{virtual: "DeploymentUnhealthy"}},
		"Etcd missing":         {func(o *observed) { o.etcds = o.etcds[:1] }, map[corev1beta1.ConditionType]string{virtual: "EtcdMissing"}},
		"Etcd unhealthy":       {func(o *observed) { o.etcds[0].Status.Ready = nil }, map[corev1beta1.ConditionType]string{virtual: "EtcdUnhealthy"}},
		"runtime":              {fails(0, resourcesv1alpha1.ResourcesHealthy, "Sick"), map[corev1beta1.ConditionType]string{runtime: "Sick"}},
		"no ManagedResource":   {func(o *observed) { o.componentProblems = []string{"Deployment garden/etcd-druid: not found"} }, map[corev1beta1.ConditionType]string{runtime: "RuntimeComponentUnhealthy"}},
		"virtual":              {fails(1, resourcesv1alpha1.ResourcesApplied, "ApplyFailed"), map[corev1beta1.ConditionType]string{virtual: "ApplyFailed"}},
		"by its label":         {fails(2, resourcesv1alpha1.ResourcesHealthy, "Sick"), map[corev1beta1.ConditionType]string{virtual: "Sick"}},
		"observability":        {fails(3, resourcesv1alpha1.ResourcesHealthy, "Sick"), map[corev1beta1.ConditionType]string{observability: "Sick"}},
		"not observed":         {func(o *observed) { o.managedResources[0].Generation = 1 }, map[corev1beta1.ConditionType]string{runtime: "OutdatedManagedResource"}},
		"no condition":         {func(o *observed) { o.managedResources[0].Status.Conditions = nil }, map[corev1beta1.ConditionType]string{runtime: "MissingManagedResourceCondition"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			tc.change(o)
			conditions, reasons := decide(o), map[corev1beta1.ConditionType]string(nil)
			if len(conditions) != 4 {
				t.Errorf("there are %d conditions, want 4", len(conditions))
			}
			for _, c := range conditions {
				if c.Status != corev1beta1.ConditionTrue {
					if reasons == nil {
						reasons = map[corev1beta1.ConditionType]string{}
					}
					reasons[c.Type] = c.Reason
				}
			}
			if diff := cmp.Diff(tc.reasons, reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, conditions)
			}
		})
	}
}

func TestRequiredDeployment(t *testing.T) {
	for name, want := range map[string]bool{
		"garden/virtual-garden-kube-apiserver": true, "garden/gardener-resource-manager": true, "garden/etcd-druid": true, "garden/vpa-updater": true,
		"other/virtual-garden-kube-apiserver": false, "other/etcd-druid": false, "garden/other": false, gateway.Namespace + "/" + gateway.Name: true,
	} {
		namespace, name, _ := strings.Cut(name, "/")
		if got := requiredDeployment(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); got != want {
			t.Errorf("Deployment %s/%s is required: %t, want %t", namespace, name, got, want)
		}
	}
}
