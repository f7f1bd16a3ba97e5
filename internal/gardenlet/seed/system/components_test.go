package system

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// TestComponents compares Components with what the flow deploys: every Deployment and every load balancer is in it.
func TestComponents(t *testing.T) {
	for name, scaled := range map[string]bool{"plain": false, "autoscaled": true} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{
				VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: scaled},
			}}}
			s := (&reconciler{}).newRun(seed)
			s.certificates = certificates{resourceManager: "any", vpa: "any"}
			_, deployed, err := s.resourceManagerObjects()
			if err != nil {
				t.Fatal(err)
			}
			druid, err := s.etcdDruidObjects()
			if err != nil {
				t.Fatal(err)
			}
			deployed = slices.Concat(deployed, druid, s.gatewayObjects())
			if scaled {
				vpa, err := s.vpaObjects()
				if err != nil {
					t.Fatal(err)
				}
				deployed = append(deployed, vpa...)
			}
			want, got := map[string]bool{}, map[string]bool{}
			for _, object := range deployed {
				service, ok := object.(*corev1.Service)
				if _, deployment := object.(*appsv1.Deployment); deployment || ok && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
					want[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = true
				}
			}
			for _, object := range Components(seed) {
				got[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Components() (-want +got):\n%s", diff)
			}
		})
	}
}
