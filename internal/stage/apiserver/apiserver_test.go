package apiserver

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// The number of pods is that of the HorizontalPodAutoscaler, whose minimum is not lowered if the Shoot says so. It is gone when there are no pods.
func TestAutoscaling(t *testing.T) {
	clusters := stagetest.New(t)
	scaling := &kubeapiserver.Autoscaling{MinReplicas: 2, MaxReplicas: 6}
	in := Inputs{Run: clusters.Run(), Values: func(_ context.Context, replicas int32) (kubeapiserver.Values, error) {
		v := kubeapiserver.Values{Namespace: stagetest.Namespace, Version: "1.36.1", Replicas: replicas}
		if replicas > 0 {
			v.Autoscaling = scaling
		}
		return v, nil
	}}
	key := client.ObjectKey{Namespace: stagetest.Namespace, Name: "kube-apiserver"}
	deploy := func(replicas int32) (*autoscalingv2.HorizontalPodAutoscaler, error) {
		t.Helper()
		if err := Deploy(in, replicas)(t.Context()); err != nil {
			t.Fatal(err)
		}
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		return hpa, clusters.Seed.Get(t.Context(), key, hpa)
	}
	hpa, err := deploy(1)
	if err != nil || *hpa.Spec.MinReplicas != 2 {
		t.Fatalf("HorizontalPodAutoscaler is %v, %v", hpa.Spec, err)
	}
	desire := func() {
		t.Helper()
		hpa.Status.DesiredReplicas = 5
		if err := clusters.Seed.Update(t.Context(), hpa); err != nil {
			t.Fatal(err)
		}
	}
	desire()
	if hpa, err = deploy(1); err != nil || *hpa.Spec.MinReplicas != 2 {
		t.Errorf("the minimum is %d, %v: it may be lowered", *hpa.Spec.MinReplicas, err)
	}
	desire()
	scaling.MinReplicas, scaling.ScaleDownDisabled = 4, true
	if hpa, err = deploy(1); err != nil || *hpa.Spec.MinReplicas != 5 {
		t.Errorf("the minimum is %d, %v", *hpa.Spec.MinReplicas, err)
	}
	if _, err = deploy(0); !apierrors.IsNotFound(err) {
		t.Errorf("the HorizontalPodAutoscaler exists while there are no pods: %v", err)
	}
	deployment := &appsv1.Deployment{}
	if err := clusters.Seed.Get(t.Context(), key, deployment); err != nil || *deployment.Spec.Replicas != 0 {
		t.Errorf("there are %v pods, %v", deployment.Spec.Replicas, err)
	}
}
