package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"gardener.cloud/gardener/api/core/v1beta1"
)

func TestKubeletConfigOfAPool(t *testing.T) {
	one, two := &v1beta1.KubeletConfigReserved{PID: resource.NewQuantity(1, resource.DecimalSI)}, &v1beta1.KubeletConfigReserved{PID: resource.NewQuantity(2, resource.DecimalSI)}
	shoot := &v1beta1.KubeletConfig{MaxPods: new(int32(50)), FailSwapOn: new(false)}
	shootReserves := &v1beta1.KubeletConfig{MaxPods: new(int32(50)), KubeReserved: two}
	both := &v1beta1.KubeletConfig{MaxPods: new(int32(50)), FailSwapOn: new(false), KubeReserved: one}
	reserves := &v1beta1.KubeletConfig{FailSwapOn: new(true), KubeReserved: one}
	failsNot := &v1beta1.KubeletConfig{FailSwapOn: new(false), KubeReserved: one}
	more := &v1beta1.KubeletConfig{CPUManagerPolicy: new("none"), KubeReserved: one}
	empty := &v1beta1.KubeletConfig{FailSwapOn: new(true)}
	for name, tc := range map[string]struct{ pool, shoot, want *v1beta1.KubeletConfig }{
		"neither says anything":                      {},
		"the pool says nothing":                      {shoot: shoot, want: shoot},
		"the Shoot says nothing":                     {pool: reserves, want: reserves},
		"the pool only reserves":                     {pool: reserves, shoot: shoot, want: both},
		"the pool reserves, before defaults":         {pool: &v1beta1.KubeletConfig{KubeReserved: one}, shoot: shoot, want: both},
		"the pool only reserves, and the Shoot does": {pool: reserves, shoot: shootReserves, want: reserves},
		"the pool wants swap":                        {pool: failsNot, shoot: shoot, want: failsNot},
		"the pool says more":                         {pool: more, shoot: shoot, want: more},
		"the pool wants defaults":                    {pool: empty, shoot: shoot, want: empty},
	} {
		t.Run(name, func(t *testing.T) {
			worker := &v1beta1.Worker{Kubernetes: &v1beta1.WorkerKubernetes{Kubelet: tc.pool}}
			if diff := cmp.Diff(tc.want, worker.KubeletConfig(tc.shoot)); diff != "" {
				t.Errorf("KubeletConfig() (-want +got):\n%s", diff)
			}
			if shoot.KubeReserved != nil {
				t.Error("the Shoot's configuration was changed")
			}
		})
	}
	if got := (&v1beta1.Worker{}).KubeletConfig(shoot); got != shoot {
		t.Errorf("a pool without anything gets %v", got)
	}
}
