package values

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/infrastructure"
)

// The first run, before the status has the networks that the infrastructure has chosen, has the same networks as later ones: pods would be
// replaced otherwise.
func TestAllNetworks(t *testing.T) {
	desired := &corev1beta1.NetworkingStatus{Nodes: []string{"10.0.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"}}
	chosen := &extensionsv1alpha1.Infrastructure{}
	chosen.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{"10.1.0.0/16"}}
	older := &extensionsv1alpha1.Infrastructure{}
	older.Status.NodesCIDR = new("10.2.0.0/16")
	published, err := (&infrastructure.Result{Infrastructure: chosen}).Networks(desired)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		status *corev1beta1.NetworkingStatus
		infra  *extensionsv1alpha1.Infrastructure
		want   []string
	}{
		"nothing is chosen":          {desired, &extensionsv1alpha1.Infrastructure{}, []string{"10.0.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen":           {desired, chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen as before": {desired, older, []string{"10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"and published":              {published, chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"the spec has none":          {nil, chosen, []string{"10.1.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Source{State: &observed.State{Shoot: &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Networking: tc.status}}}, Infrastructure: &infrastructure.Result{Infrastructure: tc.infra}}
			got, err := s.allNetworks()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
		})
	}
}

// A task that does not come after the task infrastructure fails.
func TestInfrastructureIsReadTooEarly(t *testing.T) {
	s := Source{State: observedtest.State(), Infrastructure: &infrastructure.Result{}}
	if got, err := s.allNetworks(); err == nil {
		t.Errorf("networks are %v", got)
	}
	if got, err := s.Infrastructure.ProviderStatus(); err == nil {
		t.Errorf("status is %v", got)
	}
}

func TestCores(t *testing.T) {
	o := observedtest.State()
	o.CloudProfile = &corev1beta1.CloudProfile{}
	o.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2")}, {Name: "large", CPU: resource.MustParse("64")}}
	o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Machine: corev1beta1.Machine{Type: "small"}, Minimum: 3, Maximum: 9},
		{Machine: corev1beta1.Machine{Type: "large"}, Minimum: 1},
		{Machine: corev1beta1.Machine{Type: "unknown"}, Minimum: 7},
	}
	if got := cores(o); got != 70 {
		t.Errorf("cores() = %d", got)
	}
}
