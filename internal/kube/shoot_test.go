package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestShootHealthy(t *testing.T) {
	operation := func(state corev1beta1.LastOperationState, progress int32, description string) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: state, Progress: progress, Description: description}
	}
	done := operation(corev1beta1.LastOperationStateSucceeded, 100, "Done.")
	for name, tc := range map[string]struct {
		status corev1beta1.ShootStatus
		want   string
	}{
		"no operation": {corev1beta1.ShootStatus{}, "no operation has begun yet"},
		"under way": {
			corev1beta1.ShootStatus{LastOperation: operation(corev1beta1.LastOperationStateProcessing, 40, "Waiting until main etcd is ready")}, "Create Processing 40%, Waiting until main etcd is ready",
		},
		"in error, with codes in order": {
			corev1beta1.ShootStatus{
				LastOperation: operation(corev1beta1.LastOperationStateError, 40, ""),
				LastErrors: []corev1beta1.LastError{
					{Description: "no room\nleft", Codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED", "ERR_CONFIGURATION_PROBLEM"}}, {Description: "odd"},
				},
			},
			"Create Error 40%; error ERR_CONFIGURATION_PROBLEM, ERR_INFRA_QUOTA_EXCEEDED: no room left; error: odd",
		},
		"a change is not observed yet": {corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 1}, "its last change has not been observed yet"},
		"between two seeds": {
			corev1beta1.ShootStatus{
				LastOperation:      &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded},
				ObservedGeneration: 2, Conditions: []corev1beta1.Condition{{Type: "A", Status: "True"}},
			}, "its control plane has left the former seed, and is not restored yet",
		},
		"without conditions": {corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 2}, "its health has not been checked yet"},
		"unhealthy": {
			corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 2, Conditions: []corev1beta1.Condition{{Type: "A", Status: "True"}, {Type: "B", Status: "False", Message: "down\nsince noon"}}},
			"its condition B is False: down since noon",
		},
		"healthy": {corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 2, Conditions: []corev1beta1.Condition{{Type: "A", Status: "True"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := ShootHealthy(&corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.status}); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShootThatIsGone(t *testing.T) {
	if err := ShootHealthy(nil); err == nil || err.Error() != "it is gone" {
		t.Errorf("ShootHealthy(nil) = %v", err)
	}
	if err := ShootGone(nil); err != nil {
		t.Errorf("ShootGone(nil) = %v", err)
	}
	deleting := &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeDelete, State: corev1beta1.LastOperationStateProcessing, Progress: 7, Description: "Deleting nodes"}
	err := ShootGone(&corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: deleting}})
	if want := "it still exists: Delete Processing 7%, Deleting nodes"; err == nil || err.Error() != want {
		t.Errorf("ShootGone() = %v, want %s", err, want)
	}
}

// Backups of a control plane may not be complete on its seed yet.
func TestUnrestored(t *testing.T) {
	const migrate, restore = corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeRestore
	for _, tc := range []struct {
		operation corev1beta1.LastOperationType
		state     corev1beta1.LastOperationState
		want      bool
	}{
		{migrate, corev1beta1.LastOperationStateProcessing, false},
		{migrate, corev1beta1.LastOperationStateError, false},
		{migrate, corev1beta1.LastOperationStateSucceeded, true},
		{restore, corev1beta1.LastOperationStateError, true},
		{restore, corev1beta1.LastOperationStateSucceeded, false},
		{corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateError, false},
	} {
		if got := Unrestored(&corev1beta1.LastOperation{Type: tc.operation, State: tc.state}); got != tc.want {
			t.Errorf("after %s %s: %t, want %t", tc.operation, tc.state, got, tc.want)
		}
	}
	if Unrestored(nil) {
		t.Error("a new shoot is not restored")
	}
}
