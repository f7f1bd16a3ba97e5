package stage_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// A pod that was replaced still writes for a while.
func TestOldPodsGone(t *testing.T) {
	clusters := stagetest.New(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: stagetest.Namespace, Name: "kube-apiserver-old", Labels: kubeapiserver.Labels(), Finalizers: []string{"example.com/running"},
	}}
	if err := clusters.Seed.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	run := clusters.Run()
	if err := run.OldPodsGone(t.Context(), kubeapiserver.Labels()); err != nil {
		t.Errorf("a pod that is not replaced is waited for: %v", err)
	}
	if err := clusters.Seed.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) error { return run.OldPodsGone(ctx, kubeapiserver.Labels()) }
	if err := stagetest.UntilIdle(t, gone); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pod that is terminating is not waited for: %v", err)
	}
	if err := clusters.Seed.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := run.OldPodsGone(t.Context(), kubeapiserver.Labels()); err != nil {
		t.Error(err)
	}
}
