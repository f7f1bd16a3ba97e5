package flow

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/errorcode"
)

// LastErrors returns status.lastErrors for the error of a flow: one entry per failed task, with its ID and codes.
// Any other error becomes one entry without ID. It returns nil for nil.
func LastErrors(err error, now metav1.Time) []corev1beta1.LastError {
	if err == nil {
		return nil
	}
	var failed *Error
	if !errors.As(err, &failed) || len(failed.Tasks) == 0 {
		return []corev1beta1.LastError{{Description: err.Error(), Codes: errorcode.Of(err), LastUpdateTime: &now}}
	}
	var list []corev1beta1.LastError
	for _, task := range failed.Tasks {
		list = append(list, corev1beta1.LastError{
			Description: task.Error(), TaskID: &task.ID, Codes: errorcode.Of(task), LastUpdateTime: &now,
		})
	}
	return list
}
