package shootresourcereservation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/config/admission/shootresourcereservation/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/shootresourcereservation"
)

// text is a reservation as "cpu memory pid", or "" for none.
func text(kubelet *corev1beta1.KubeletConfig) string {
	if kubelet == nil || kubelet.KubeReserved == nil {
		return ""
	}
	out := ""
	for _, q := range []*resource.Quantity{kubelet.KubeReserved.CPU, kubelet.KubeReserved.Memory, kubelet.KubeReserved.PID} {
		if q != nil {
			out += q.String()
		}
		out += " "
	}
	return out
}

func TestAdmit(t *testing.T) {
	machine := func(name, cpu, memory string) corev1beta1.MachineType {
		return corev1beta1.MachineType{Name: name, CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory)}
	}
	profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: corev1beta1.CloudProfileSpec{MachineTypes: []corev1beta1.MachineType{
		machine("small", "1", "512Mi"), machine("medium", "4", "8Gi"), machine("large", "16", "128Gi"),
	}}}
	formula := v1alpha1.Configuration{UseGKEFormula: true}
	selected := v1alpha1.Configuration{UseGKEFormula: true, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}
	own := &corev1beta1.KubeletConfig{KubeReserved: &corev1beta1.KubeletConfigReserved{CPU: resource.NewQuantity(1, resource.DecimalSI)}}
	for name, tc := range map[string]struct {
		config       v1alpha1.Configuration
		machine      string
		kubelet      *corev1beta1.KubeletConfig
		pool         *corev1beta1.KubeletConfig
		want, inPool string
	}{
		"the same for all":              {machine: "medium", want: "80m 1Gi 20k "},
		"what is set stays":             {machine: "medium", kubelet: own, want: "1 1Gi 20k "},
		"formula, small machine":        {config: formula, machine: "small", inPool: "60m 255Mi 20k "},
		"formula, medium machine":       {config: formula, machine: "medium", inPool: "80m 1932735283 20k "},
		"formula, large machine":        {config: formula, machine: "large", inPool: "110m 10007273799 20k "},
		"formula, unknown machine":      {config: formula, machine: "x"},
		"formula, set for all":          {config: formula, machine: "medium", kubelet: own, want: "1   "},
		"formula, set for the pool":     {config: formula, machine: "medium", pool: own, inPool: "1   "},
		"formula for other Shoots only": {config: selected, machine: "medium", want: "80m 1Gi 20k "},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{
				CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
				Kubernetes:   corev1beta1.Kubernetes{Kubelet: tc.kubelet.DeepCopy()},
				Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{
					Machine: corev1beta1.Machine{Type: tc.machine}, Kubernetes: &corev1beta1.WorkerKubernetes{Kubelet: tc.pool.DeepCopy()},
				}}},
			}}
			p, err := shootresourcereservation.New(&tc.config)
			if err != nil {
				t.Fatal(err)
			}
			p.GardenCache = admissiontest.Reader(t, profile)
			if err := p.Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: shoot}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if got := text(shoot.Spec.Kubernetes.Kubelet); got != tc.want {
				t.Errorf("for all %q is reserved, want %q", got, tc.want)
			}
			if got := text(shoot.Spec.Provider.Workers[0].Kubernetes.Kubelet); got != tc.inPool {
				t.Errorf("in the pool %q is reserved, want %q", got, tc.inPool)
			}
		})
	}
}
