package extension

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestHealthConditions(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	const typ, threshold = corev1beta1.ShootControlPlaneHealthy, 5 * time.Minute
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	condition := func(status corev1beta1.ConditionStatus, reason, message string, since time.Duration, codes ...corev1beta1.ErrorCode) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: status, Reason: reason, Message: message, Codes: codes, LastTransitionTime: at(since), LastUpdateTime: at(since)}
	}
	const fine = "All health checks were successful."
	foreign := corev1beta1.Condition{Type: "OfTheActuator", Status: corev1beta1.ConditionTrue}
	unhealthy, unfinished := &Unhealthy{Message: "a is broken"}, &Unfinished{Message: "b is rolling out"}
	for name, tc := range map[string]struct {
		before []corev1beta1.Condition
		found  []error
		want   []corev1beta1.Condition
		again  time.Duration
	}{
		"all is well": {
			before: []corev1beta1.Condition{foreign}, found: []error{nil, nil},
			want: []corev1beta1.Condition{foreign, condition(corev1beta1.ConditionTrue, "HealthCheckSuccessful", fine, 0)},
		},
		"nothing to check any more": {
			before: []corev1beta1.Condition{foreign, condition(corev1beta1.ConditionFalse, "HealthCheckUnsuccessful", "x", time.Hour)},
			want:   []corev1beta1.Condition{foreign},
		},
		"a problem with a code, and a rollout": {
			found: []error{unfinished, errorcode.With(unhealthy, corev1beta1.ErrorInfraQuotaExceeded), nil},
			want: []corev1beta1.Condition{
				condition(corev1beta1.ConditionFalse, "HealthCheckUnsuccessful", "a is broken; b is rolling out", 0, corev1beta1.ErrorInfraQuotaExceeded),
			},
		},
		"a check that could not be run": {
			found: []error{nil, errors.New("no connection")},
			want:  []corev1beta1.Condition{condition(corev1beta1.ConditionUnknown, "ConditionCheckError", "no connection", 0)},
		},
		"a rollout begins": {
			before: []corev1beta1.Condition{condition(corev1beta1.ConditionTrue, "HealthCheckSuccessful", fine, time.Hour)}, found: []error{unfinished},
			want:  []corev1beta1.Condition{condition(corev1beta1.ConditionProgressing, "HealthCheckProgressing", "b is rolling out", 0)},
			again: threshold,
		},
		"a rollout goes on": {
			before: []corev1beta1.Condition{condition(corev1beta1.ConditionProgressing, "HealthCheckProgressing", "b is rolling out", time.Minute)}, found: []error{unfinished},
			want:  []corev1beta1.Condition{condition(corev1beta1.ConditionProgressing, "HealthCheckProgressing", "b is rolling out", time.Minute)},
			again: 4 * time.Minute,
		},
		"a rollout takes too long": {
			before: []corev1beta1.Condition{condition(corev1beta1.ConditionProgressing, "HealthCheckProgressing", "b is rolling out", threshold)}, found: []error{unfinished},
			want: []corev1beta1.Condition{condition(corev1beta1.ConditionFalse, "HealthCheckProgressing", "b is rolling out", 0)},
		},
		"and still does": {
			before: []corev1beta1.Condition{condition(corev1beta1.ConditionFalse, "HealthCheckProgressing", "b is rolling out", time.Second)}, found: []error{unfinished},
			want: []corev1beta1.Condition{condition(corev1beta1.ConditionFalse, "HealthCheckProgressing", "b is rolling out", time.Second)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[corev1beta1.ConditionType][]error{}
			if tc.found != nil {
				found[typ] = tc.found
			}
			got, again := healthConditions(tc.before, found, []HealthCheck{{Condition: typ}, {Condition: typ}}, threshold, now)
			if diff := cmp.Diff(tc.want, got); diff != "" || again != tc.again {
				t.Errorf("again after %s, want %s; conditions (-want +got):\n%s", again, tc.again, diff)
			}
		})
	}
}

func TestCheckable(t *testing.T) {
	last := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: typ, State: state}
	}
	created := last(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded)
	hibernated := &Cluster{Shoot: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Hibernation: &corev1beta1.Hibernation{Enabled: new(true)}}}}
	for name, tc := range map[string]struct {
		last    *corev1beta1.LastOperation
		cluster *Cluster
		want    bool
	}{
		"new":             {},
		"being created":   {last: last(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing)},
		"created":         {last: created, want: true},
		"update fails":    {last: last(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateError), want: true},
		"migrated":        {last: last(corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationStateSucceeded)},
		"being restored":  {last: last(corev1beta1.LastOperationTypeRestore, corev1beta1.LastOperationStateProcessing)},
		"of a hibernated": {last: created, cluster: hibernated},
	} {
		t.Run(name, func(t *testing.T) {
			network := &extensionsv1alpha1.Network{}
			network.Status.LastOperation = tc.last
			if got := checkable(Subject{Object: network, Cluster: tc.cluster}); got != tc.want {
				t.Errorf("checkable() = %t", got)
			}
		})
	}
}

func TestNodesReady(t *testing.T) {
	machine := func(phase machinev1alpha1.MachinePhase, ready corev1.ConditionStatus) machinev1alpha1.Machine {
		m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Status.CurrentStatus.Phase = phase
		m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		m.Status.LastOperation = machinev1alpha1.LastOperation{Description: "none left", ErrorCode: "ResourceExhausted"}
		return m
	}
	up, down := machine(machinev1alpha1.MachineRunning, corev1.ConditionTrue), machine(machinev1alpha1.MachineRunning, corev1.ConditionFalse)
	pending, failed := machine(machinev1alpha1.MachinePending, ""), machine(machinev1alpha1.MachineFailed, "")
	for name, tc := range map[string]struct {
		machines []machinev1alpha1.Machine
		status   corev1beta1.ConditionStatus
		message  string
	}{
		"all ready":     {[]machinev1alpha1.Machine{up, up}, corev1beta1.ConditionTrue, ""},
		"one joins":     {[]machinev1alpha1.Machine{up, pending}, corev1beta1.ConditionProgressing, "1 of 2 nodes are ready, 1 machines are being created"},
		"one too many":  {[]machinev1alpha1.Machine{up, up, up}, corev1beta1.ConditionProgressing, "3 of 2 nodes are ready, 0 machines are being created"},
		"one not ready": {[]machinev1alpha1.Machine{up, down}, corev1beta1.ConditionFalse, "1 of 2 nodes are ready"},
		"one missing":   {[]machinev1alpha1.Machine{up}, corev1beta1.ConditionFalse, "1 of 2 nodes are ready"},
		"one failed":    {[]machinev1alpha1.Machine{up, up, failed}, corev1beta1.ConditionFalse, `Machine "m": its phase is Failed: none left`},
	} {
		t.Run(name, func(t *testing.T) {
			err := nodesReady([]machinev1alpha1.MachineDeployment{
				{Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 2}},
				{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 5}},
			}, tc.machines)
			if statusOf(err) != tc.status || err != nil && err.Error() != tc.message {
				t.Errorf("nodesReady() = %v", err)
			}
			if codes := errorcode.Of(err); (len(codes) > 0) != (name == "one failed") {
				t.Errorf("codes are %v", codes)
			}
		})
	}
}

func TestCommonChecks(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "n", Name: "x"}
	resource := func(applied, healthy, progressing corev1beta1.ConditionStatus) client.Object {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: meta, Status: resourcesv1alpha1.ManagedResourceStatus{Conditions: []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: applied},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing},
		}}}
	}
	deployment := func(available corev1.ConditionStatus, updated int32) client.Object {
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}, Status: appsv1.DeploymentStatus{
			UpdatedReplicas: updated, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available}}, AvailableReplicas: 1,
		}}
	}
	managed := CheckManagedResource(corev1beta1.ShootSystemComponentsHealthy, "x")
	deployed := CheckObject(corev1beta1.ShootControlPlaneHealthy, &appsv1.Deployment{}, "x")
	const yes, no = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse
	for name, tc := range map[string]struct {
		check  HealthCheck
		object client.Object
		want   corev1beta1.ConditionStatus
	}{
		"no ManagedResource":          {managed, nil, no},
		"ManagedResource":             {managed, resource(yes, yes, no), yes},
		"ManagedResource not applied": {managed, resource(no, yes, no), no},
		"ManagedResource unhealthy":   {managed, resource(yes, no, no), no},
		"ManagedResource rolling out": {managed, resource(yes, yes, yes), corev1beta1.ConditionProgressing},
		"no Deployment":               {deployed, nil, no},
		"Deployment":                  {deployed, deployment(corev1.ConditionTrue, 1), yes},
		"Deployment unavailable":      {deployed, deployment(corev1.ConditionFalse, 1), no},
		"Deployment rolling out":      {deployed, deployment(corev1.ConditionTrue, 0), corev1beta1.ConditionProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme)
			if tc.object != nil {
				b = b.WithObjects(tc.object)
			}
			err := tc.check.Run(context.Background(), Subject{Reader: b.Build(), Object: &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}})
			if got := statusOf(err); got != tc.want {
				t.Errorf("status is %s: %v", got, err)
			}
		})
	}
}
