package lifecycle

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/flow"
)

func TestRunLogsWhenTasksEnd(t *testing.T) {
	for operation, want := range map[corev1beta1.LastOperationType][]string{
		corev1beta1.LastOperationTypeCreate:    {"namespace", "etcd-main"},
		corev1beta1.LastOperationTypeDelete:    {"namespace", "etcd-main"},
		corev1beta1.LastOperationTypeReconcile: nil, // too often
	} {
		t.Run(string(operation), func(t *testing.T) {
			var out bytes.Buffer
			ctx := logf.IntoContext(t.Context(), zap.New(zap.WriteTo(&out), zap.JSONEncoder()))
			done := func(context.Context) error { return nil }
			f, err := flow.New("Shoot reconciliation", flow.Do("namespace", "a", done), flow.Do("etcd-main", "b", done, "namespace"))
			if err != nil {
				t.Fatal(err)
			}
			shoot := &corev1beta1.Shoot{}
			shoot.Namespace, shoot.Name = "garden-local", "local"
			l := newLandscape(t)
			status := &statusReporter{gardenCache: l.garden, clock: l.Clock, shoot: shoot, operation: operation}
			if err := l.reconciler.run(ctx, status, f); err != nil {
				t.Fatal(err)
			}
			timings, err := flow.ReadTimings(&out)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, timing := range timings {
				got = append(got, timing.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tasks in the log (-want +got):\n%s", diff)
			}
		})
	}
}
