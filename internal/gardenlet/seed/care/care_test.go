package care

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestDecide(t *testing.T) {
	component := func(name string, applied, healthy, progressing corev1beta1.ConditionStatus) resourcesv1alpha1.ManagedResource {
		mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
		mr.Spec.Class = new("seed")
		mr.Status.Conditions = []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: applied, Message: "a"},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Message: "h"},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing, Message: "p"},
		}
		return mr
	}
	healthy, unhealthy := component("healthy", "True", "True", "False"), component("unhealthy", "True", "False", "True")
	ofShoot, withoutClass := component("a", "False", "False", "True"), component("b", "False", "False", "True")
	ofShoot.Namespace, withoutClass.Spec.Class = "shoot--a--b", nil
	const message = "ManagedResource garden/unhealthy: ResourcesHealthy is False: h"
	for name, tc := range map[string]struct {
		components []resourcesv1alpha1.ManagedResource
		problems   []string
		status     corev1beta1.ConditionStatus
		message    string
	}{
		"no components":               {status: "True", message: "All system components are healthy."},
		"healthy, others are ignored": {components: []resourcesv1alpha1.ManagedResource{healthy, ofShoot, withoutClass}, status: "True", message: "All system components are healthy."},
		"a Deployment too": {
			components: []resourcesv1alpha1.ManagedResource{unhealthy}, problems: []string{"A"}, status: "False", message: "A; " + message,
		},
		"one unhealthy": {components: []resourcesv1alpha1.ManagedResource{healthy, unhealthy}, status: "False", message: message},
		"not rolled out": {
			components: []resourcesv1alpha1.ManagedResource{component("new", "True", "True", "True")}, status: "False",
			message: "ManagedResource garden/new: ResourcesProgressing is True: p",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.components, tc.problems)
			if diff := cmp.Diff([]string{string(tc.status), tc.message}, []string{string(got.Status), got.Message}); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// The condition is Progressing before it is False, for the threshold since it was True. That its message changes meanwhile does not count.
func TestThreshold(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		before corev1beta1.ConditionStatus
		ago    time.Duration
		want   corev1beta1.ConditionStatus
		again  time.Duration
	}{
		"True before":          {before: "True", ago: time.Hour, want: "Progressing", again: time.Minute},
		"within the threshold": {before: "Progressing", ago: 50 * time.Second, want: "Progressing", again: 10 * time.Second},
		"after the threshold":  {before: "Progressing", ago: time.Minute, want: "False", again: 2 * time.Minute},
		"False before":         {before: "False", ago: time.Second, want: "False", again: 2 * time.Minute},
		"unknown before":       {want: "False", again: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
			if tc.before != "" {
				seed.Status.Conditions = []corev1beta1.Condition{{
					Type: corev1beta1.SeedSystemComponentsHealthy, Status: tc.before, Message: "another problem",
					LastTransitionTime: metav1.NewTime(now.Add(-tc.ago)), LastUpdateTime: metav1.NewTime(now.Add(-time.Second)),
				}}
			}
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "new"}}
			mr.Spec.Class = new("seed")
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).WithStatusSubresource(seed).Build()
			seedCache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mr).Build()
			r := &reconciler{
				gardenCache: garden, seedCache: seedCache, seedAPI: seedCache, clock: clocktesting.NewFakePassiveClock(now),
				components: func(*corev1beta1.Seed) []client.Object { return nil }, period: 2 * time.Minute, threshold: time.Minute,
			}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seed)})
			if err != nil {
				t.Fatal(err)
			}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
				t.Fatal(err)
			}
			if got := seed.Status.Conditions[0].Status; got != tc.want || result.RequeueAfter != tc.again {
				t.Errorf("it is %s, for %s, want %s for %s", got, result.RequeueAfter, tc.want, tc.again)
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
	before := []corev1beta1.Condition{{Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue}}
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
		conditions, changed := withStop(before, seed.ShootReconciliationsStopped(), now)
		if diff := cmp.Diff(tc.want, types(conditions)); diff != "" || changed != (len(tc.want) > 1) {
			t.Errorf("%q: changed is %t, conditions (-want +got):\n%s", tc.annotation, changed, diff)
		}
		after, changed := withStop(conditions, false, now)
		if diff := cmp.Diff(types(before), types(after)); diff != "" || changed != (len(tc.want) > 1) {
			t.Errorf("after %q: changed is %t, conditions (-want +got):\n%s", tc.annotation, changed, diff)
		}
	}
}

func TestExtensionProblems(t *testing.T) {
	extension := func(namespace string, class *extensionsv1alpha1.ExtensionClass, change func(*extensionsv1alpha1.Extension)) extensionsv1alpha1.Extension {
		e := extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e", Generation: 1}}
		e.Spec.Class = class
		e.Status.ObservedGeneration = 1
		e.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
		change(&e)
		return e
	}
	failed := func(e *extensionsv1alpha1.Extension) {
		e.Status.LastError = &corev1beta1.LastError{Description: "no quota"}
	}
	unhealthy := func(status corev1beta1.ConditionStatus) func(*extensionsv1alpha1.Extension) {
		return func(e *extensionsv1alpha1.Extension) {
			e.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedSystemComponentsHealthy, Status: status, Message: "no pods"}}
		}
	}
	seed := new(extensionsv1alpha1.ExtensionClassSeed)
	for name, tc := range map[string]struct {
		extension extensionsv1alpha1.Extension
		want      []string
	}{
		"ready and healthy":  {extension: extension("garden", seed, unhealthy(corev1beta1.ConditionTrue))},
		"failed":             {extension: extension("garden", seed, failed), want: []string{"Extension garden/e: no quota"}},
		"unhealthy":          {extension: extension("garden", seed, unhealthy(corev1beta1.ConditionFalse)), want: []string{"Extension garden/e: no pods"}},
		"one of the garden":  {extension: extension("garden", new(extensionsv1alpha1.ExtensionClassGarden), failed)},
		"one without class":  {extension: extension("garden", nil, failed)},
		"in another project": {extension: extension("shoot--a--b", seed, failed)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, extensionProblems([]extensionsv1alpha1.Extension{tc.extension})); diff != "" {
				t.Errorf("extensionProblems() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnhealthy(t *testing.T) {
	deployment := func(name string, change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
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
	unchanged := func(*appsv1.Deployment) {}
	address := corev1.LoadBalancerIngress{IP: "192.0.2.1"}
	for name, tc := range map[string]struct {
		existing []client.Object
		want     []string
	}{
		"healthy": {existing: []client.Object{deployment("gateway", unchanged), service(address)}},
		"missing": {want: []string{"Deployment gateway/gateway: not found", "Service gateway/gateway: not found"}},
		"no pod": {
			existing: []client.Object{deployment("gateway", func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas, d.Status.Conditions[0].Status = 0, corev1.ConditionFalse
			}), service(address)},
			want: []string{"Deployment gateway/gateway: it lacks minimum availability: 0 of 1 pods are available"},
		},
		"an old pod": {
			existing: []client.Object{deployment("gateway", func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), service(address)},
			want:     []string{"Deployment gateway/gateway: 1 old pods are not gone"},
		},
		"no address": {
			existing: []client.Object{deployment("gateway", unchanged), service()}, want: []string{"Service gateway/gateway: its load balancer has no address"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.existing...).Build()
			r := &reconciler{seedCache: c, seedAPI: c, components: func(*corev1beta1.Seed) []client.Object {
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
