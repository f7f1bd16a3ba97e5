package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
)

func TestRequestsOfAnInterval(t *testing.T) {
	l := &load{}
	for i := range 100 {
		l.add(200, time.Duration(100-i)*time.Millisecond)
	}
	l.add(429, time.Millisecond)
	l.add(500, time.Millisecond)
	l.add(0, time.Hour)
	var s, next sample
	s.set(l.cut(), 2*time.Second)
	if want := (sample{Rate: 51, Rejected: 1, Failed: 2, P50: 49, P99: 98}); !cmp.Equal(want, s) {
		t.Errorf("sample (-want +got):\n%s", cmp.Diff(want, s))
	}
	next.set(l.cut(), 2*time.Second)
	if !cmp.Equal(sample{}, next) {
		t.Errorf("requests count twice: %+v", next)
	}
}

// pod is one of a kube-apiserver.
func pod(ready corev1.ConditionStatus, cpu, memory string) corev1.Pod {
	return corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: kubeapiserver.Name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
			}}},
			{Name: "other"},
		}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
			ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}},
		},
	}
}

func TestObserved(t *testing.T) {
	deleted := pod(corev1.ConditionTrue, "9", "9Gi")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	container := func(name, field string) any {
		return map[string]any{"name": name, "containerName": name, field: map[string]any{"cpu": "250m", "memory": "100Mi"}}
	}
	vpa := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"recommendation": map[string]any{
		"containerRecommendations": []any{container("other", "lowerBound"), container(kubeapiserver.Name, "target")},
	}}}}
	var s sample
	s.pods([]corev1.Pod{pod(corev1.ConditionTrue, "20m", "200Mi"), pod(corev1.ConditionFalse, "500m", "300Mi"), deleted})
	s.horizontally(&autoscalingv2.HorizontalPodAutoscaler{Status: autoscalingv2.HorizontalPodAutoscalerStatus{
		DesiredReplicas: 4, CurrentMetrics: []autoscalingv2.MetricStatus{
			{Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageValue: new(resource.MustParse("500m"))}}},
			{Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceMemory, Current: autoscalingv2.MetricValueStatus{AverageValue: new(resource.MustParse("200Mi"))}}},
		},
	}})
	if err := s.usage([]unstructured.Unstructured{
		{Object: map[string]any{"containers": []any{container("a", "usage"), container("b", "usage")}}}, {Object: map[string]any{"containers": []any{container("a", "usage")}}},
	}); err != nil {
		t.Error(err)
	}
	if err := s.vertically(vpa); err != nil {
		t.Error(err)
	}
	want := []string{
		"0 s", "0", "-", "-", "0/0", "1 of 2", "4", "0.50 CPU 200 MiB", "0.75 CPU 300 MiB", "0.02 CPU 200 MiB to 0.50 CPU 300 MiB", "0.25 CPU 100 MiB",
	}
	if diff := cmp.Diff(want, s.row()); diff != "" || s.Restarts != 2 {
		t.Errorf("row with %d restarts (-want +got):\n%s", s.Restarts, diff)
	}
	if none := (sample{}).row(); none[6] != "-" || none[7] != "no metric" || none[8] != "no metric" || none[9] != "-" || none[10] != "-" {
		t.Errorf("row of nothing is %q", none)
	}
}

func TestReport(t *testing.T) {
	r := &report{Manifest: "shoot.yaml", Clients: 2, Objects: 3, Bytes: 4, Samples: []sample{
		{Seconds: 15, Load: true, Rate: 10, P99: 1200, Pods: 2, Ready: 2},
		{Seconds: 30, Load: true, Rate: 10, P99: 900, Pods: 4, Ready: 4},
		{Seconds: 45, Pods: 3, Ready: 3, Restarts: 1},
	}}
	const want = "p99 was above 1s in 1 of 2 intervals with load, at most 1200 ms. Ready pods: 2 at first, 2 at least, 4 at most, 3 at the end; 1 restarts."
	if got := r.summary(); got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
	for name, write := range formats {
		var out bytes.Buffer
		if err := write(&out, r); err != nil {
			t.Error(err)
		}
		if name == "json" {
			back := &report{}
			if err := json.Unmarshal(out.Bytes(), back); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(r, back); diff != "" {
				t.Errorf("JSON and back (-want +got):\n%s", diff)
			}
		} else if !strings.Contains(out.String(), want) || strings.Count(out.String(), "no metric") != 2*len(r.Samples) {
			t.Errorf("%s is\n%s", name, out.String())
		}
	}
	if got := (&report{}).summary(); got != "Nothing was measured." {
		t.Errorf("summary of nothing is %q", got)
	}
}
