package workload

import (
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/golden"
)

func TestAutoscalers(t *testing.T) {
	api := Workload{Name: "api", Namespace: "shoot--a--b", Container: corev1.Container{Resources: Requests("50m", "300Mi")}}
	pair := (Workload{Name: "pair", Namespace: "gateway", Container: corev1.Container{Resources: Requests("10m", "40Mi")}}).Deployment()
	pair.Spec.Template.Spec.Containers = append(pair.Spec.Template.Spec.Containers, corev1.Container{Name: "modest"})
	quiet := (Workload{Name: "quiet", Namespace: "garden"}).Deployment()
	objects := []client.Object{api.ServiceAccount(), api.Deployment(), api.Service("https", 443), pair, quiet}
	golden.Objects(t, "autoscalers.yaml", Autoscalers(objects, func(deployment string) Autoscaling {
		return map[string]Autoscaling{
			"api":  {Downscale: "in-maintenance-window-only", MaintenanceWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}},
			"pair": {Downscale: "never"}, "quiet": {UpdateMode: Off},
		}[deployment]
	}))
}

// Extensions find them by their names, and containers that webhooks add are not scaled.
func TestControlPlaneAutoscalers(t *testing.T) {
	api := Workload{Name: "api", Namespace: "shoot--a--b", Container: corev1.Container{Resources: Requests("50m", "300Mi")}}
	golden.Objects(t, "control-plane-autoscalers.yaml", ControlPlaneAutoscalers([]client.Object{api.ServiceAccount(), api.Deployment()}, func(string) Autoscaling {
		return Autoscaling{Downscale: "never"}
	}))
}

// System components of shoots are scaled, but for those whose number of pods depends on what they request.
func TestSystemAutoscalers(t *testing.T) {
	agent := Workload{Name: "agent", Namespace: "kube-system", Container: corev1.Container{Resources: Requests("5m", "30Mi")}}
	dns, metrics := Workload{Name: "dns", Namespace: "kube-system"}, Workload{Name: "metrics", Namespace: "kube-system"}
	golden.Objects(t, "system-autoscalers.yaml", SystemAutoscalers([]client.Object{
		agent.ServiceAccount(), agent.DaemonSet(), dns.Deployment(), metrics.Deployment(),
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "dns"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "dns"},
			},
		},
	}))
}

// Those under former names are only deleted where there is another one for the same Deployment.
func TestFormerAutoscalers(t *testing.T) {
	vpa := func(name, kind, target string, labels map[string]string) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"targetRef": map[string]any{"kind": kind, "name": target}}}}
		u.SetName(name)
		u.SetLabels(labels)
		return u
	}
	ours := map[string]string{AutoscalerLabel: "true"}
	var got []string
	for _, former := range FormerAutoscalers([]unstructured.Unstructured{
		vpa("api", "Deployment", "api", ours), vpa("api-vpa", "Deployment", "api", ours),
		vpa("alone", "Deployment", "alone", ours), vpa("etcd-main", "Etcd", "etcd-main", ours),
		vpa("other", "Deployment", "other", nil), vpa("other-vpa", "Deployment", "other", ours),
		vpa("x", "Deployment", "x", ours), vpa("x-vpa", "Deployment", "x-vpa", ours),
	}) {
		got = append(got, former.GetName())
	}
	if !slices.Equal(got, []string{"api"}) {
		t.Errorf("former are %q", got)
	}
}

func TestAutoscaled(t *testing.T) {
	for name, tc := range map[string]struct {
		settings *corev1beta1.SeedSettings
		want     bool
	}{
		"no settings":       {},
		"no setting for it": {settings: &corev1beta1.SeedSettings{}},
		"disabled":          {settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{}}},
		"enabled": {
			settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true}}, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Autoscaled(&corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: tc.settings}}); got != tc.want {
				t.Errorf("Autoscaled() is %t", got)
			}
		})
	}
}
