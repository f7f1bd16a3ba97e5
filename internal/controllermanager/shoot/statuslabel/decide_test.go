package statuslabel

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestHealth(t *testing.T) {
	operation := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: typ, State: state}
	}
	conditions := func(statuses ...corev1beta1.ConditionStatus) (conditions []corev1beta1.Condition) {
		for _, status := range statuses {
			conditions = append(conditions, corev1beta1.Condition{Status: status})
		}
		return conditions
	}
	reconciled := operation(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded)
	failed := []corev1beta1.LastError{{Description: "quota is used up"}}
	for name, tc := range map[string]struct {
		status corev1beta1.ShootStatus
		want   string
	}{
		"no operation yet": {corev1beta1.ShootStatus{}, healthy},
		"conditions do not count while it is created": {
			corev1beta1.ShootStatus{
				LastOperation: operation(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing),
				Conditions:    conditions(corev1beta1.ConditionFalse),
			}, healthy,
		},
		"errors count while it is created": {
			corev1beta1.ShootStatus{
				LastOperation: operation(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateError), LastErrors: failed,
			}, unhealthy,
		},
		"conditions count once it is created": {
			corev1beta1.ShootStatus{
				LastOperation: operation(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded),
				Conditions:    conditions(corev1beta1.ConditionTrue, corev1beta1.ConditionProgressing),
			}, progressing,
		},
		"conditions do not count while it is deleted": {
			corev1beta1.ShootStatus{
				LastOperation: operation(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing),
				Conditions:    conditions(corev1beta1.ConditionUnknown),
			}, healthy,
		},
		"all conditions are True":      {corev1beta1.ShootStatus{LastOperation: reconciled, Conditions: conditions("True", "True")}, healthy},
		"Unknown outranks Progressing": {corev1beta1.ShootStatus{LastOperation: reconciled, Conditions: conditions("Unknown", "Progressing")}, unknown},
		"False outranks Unknown":       {corev1beta1.ShootStatus{LastOperation: reconciled, Conditions: conditions("Unknown", "False")}, unhealthy},
		"an unknown status":            {corev1beta1.ShootStatus{LastOperation: reconciled, Conditions: conditions("Perhaps")}, unknown},
		"an error outranks all":        {corev1beta1.ShootStatus{LastOperation: reconciled, LastErrors: failed}, unhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			if got := health(&tc.status); got != tc.want {
				t.Errorf("health() is %s, want %s", got, tc.want)
			}
		})
	}
}
