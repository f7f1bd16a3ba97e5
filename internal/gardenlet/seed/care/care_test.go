package care

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	component := func(name string, applied, healthy, progressing corev1beta1.ConditionStatus) resourcesv1alpha1.ManagedResource {
		mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
		mr.Spec.Class = ptr.To("seed")
		mr.Status.Conditions = []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: applied, Message: "a"},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Message: "h"},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing, Message: "p"},
		}
		return mr
	}
	good, sick := component("good", "True", "True", "False"), component("sick", "True", "False", "True")
	elsewhere, foreign := component("elsewhere", "False", "False", "True"), component("foreign", "False", "False", "True")
	elsewhere.Namespace, foreign.Spec.Class = "shoot--a--b", nil
	was := func(status corev1beta1.ConditionStatus, ago time.Duration) *corev1beta1.Condition {
		return &corev1beta1.Condition{Status: status, LastUpdateTime: metav1.NewTime(now.Add(-ago))}
	}
	const sickMessage = "ManagedResource garden/sick: ResourcesHealthy is False: h"
	for name, tc := range map[string]struct {
		before     *corev1beta1.Condition
		components []resourcesv1alpha1.ManagedResource
		problems   []string
		threshold  time.Duration
		status     corev1beta1.ConditionStatus
		message    string
	}{
		"nothing there":                 {status: "True", message: "All system components are healthy."},
		"all well, others do not count": {components: []resourcesv1alpha1.ManagedResource{good, elsewhere, foreign}, status: "True", message: "All system components are healthy."},
		"a Deployment sick": {
			components: []resourcesv1alpha1.ManagedResource{sick}, problems: []string{"A"}, status: "False", message: "A; " + sickMessage,
		},
		"one sick":                   {components: []resourcesv1alpha1.ManagedResource{good, sick}, status: "False", message: sickMessage},
		"sick at first":              {components: []resourcesv1alpha1.ManagedResource{sick}, threshold: time.Minute, status: "False", message: sickMessage},
		"sick, but well before":      {before: was("True", time.Hour), components: []resourcesv1alpha1.ManagedResource{sick}, threshold: time.Minute, status: "Progressing", message: sickMessage},
		"sick for less than allowed": {before: was("Progressing", time.Minute), components: []resourcesv1alpha1.ManagedResource{sick}, threshold: time.Minute, status: "Progressing", message: sickMessage},
		"sick for more than allowed": {before: was("Progressing", time.Minute+1), components: []resourcesv1alpha1.ManagedResource{sick}, threshold: time.Minute, status: "False", message: sickMessage},
		"sick all the time":          {before: was("False", time.Second), components: []resourcesv1alpha1.ManagedResource{sick}, threshold: time.Minute, status: "False", message: sickMessage},
		"not rolled out": {
			components: []resourcesv1alpha1.ManagedResource{component("new", "True", "True", "True")}, status: "False",
			message: "ManagedResource garden/new: ResourcesProgressing is True: p",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.before, tc.components, tc.problems, now, tc.threshold)
			if diff := cmp.Diff([]string{string(tc.status), tc.message}, []string{string(got.Status), got.Message}); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStop(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	types := func(conditions []corev1beta1.Condition) (names []string) {
		for _, c := range conditions {
			names = append(names, string(c.Type)+" "+string(c.Status))
		}
		return names
	}
	healthy := []corev1beta1.Condition{{Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue}}
	for _, tc := range []struct {
		annotation string
		want       []string
	}{
		{"", []string{"SeedSystemComponentsHealthy True"}},
		{"no", []string{"SeedSystemComponentsHealthy True"}},
		{"true", []string{"SeedSystemComponentsHealthy True", "EmergencyStopShootReconciliations True"}},
	} {
		seed := &corev1beta1.Seed{}
		seed.Annotations = map[string]string{"shoot.gardener.cloud/emergency-stop-reconciliations": tc.annotation}
		conditions, changed := withStop(healthy, Stopped(seed), now)
		if diff := cmp.Diff(tc.want, types(conditions)); diff != "" || changed != (len(tc.want) > 1) {
			t.Errorf("%q: changed is %t, conditions (-want +got):\n%s", tc.annotation, changed, diff)
		}
		after, changed := withStop(conditions, false, now)
		if diff := cmp.Diff(types(healthy), types(after)); diff != "" || changed != (len(tc.want) > 1) {
			t.Errorf("after %q: changed is %t, conditions (-want +got):\n%s", tc.annotation, changed, diff)
		}
	}
}

func TestUnhealthy(t *testing.T) {
	deployment := func(name string, change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: name}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}}
		d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}}
		change(d)
		return d
	}
	service := func(addresses ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses}},
		}
	}
	as := func(*appsv1.Deployment) {}
	address := corev1.LoadBalancerIngress{IP: "192.0.2.1"}
	for name, tc := range map[string]struct {
		there []client.Object
		want  []string
	}{
		"all well":      {there: []client.Object{deployment("gateway", as), service(address)}},
		"nothing there": {want: []string{"Deployment gateway/gateway: it is not there", "Service gateway/gateway: it is not there"}},
		"no pod": {
			there: []client.Object{deployment("gateway", func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas, d.Status.Conditions[0].Status = 0, corev1.ConditionFalse
			}), service(address)},
			want: []string{"Deployment gateway/gateway: it lacks minimum availability: 0 of 1 pods are available"},
		},
		"a new pod that does not come": {
			there: []client.Object{deployment("gateway", func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), service(address)},
			want:  []string{"Deployment gateway/gateway: 1 old pods are not gone"},
		},
		"no address": {
			there: []client.Object{deployment("gateway", as), service()}, want: []string{"Service gateway/gateway: its load balancer has no address"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.there...).Build()
			r := &reconciler{seedClient: c, seedReader: c, components: func(*corev1beta1.Seed) []client.Object {
				meta := metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"}
				return []client.Object{&appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}}
			}}
			got, err := r.unhealthy(t.Context(), &corev1beta1.Seed{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unhealthy() (-want +got):\n%s", diff)
			}
		})
	}
}
