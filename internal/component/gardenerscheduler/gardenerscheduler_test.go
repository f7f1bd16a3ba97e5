package gardenerscheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	validation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

func TestVirtual(t *testing.T) {
	v := Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, Autoscaled: true,
		Config:  schedulerconfigv1alpha1.SchedulerConfiguration{ClientConnection: &componentbaseconfigv1alpha1.ClientConnectionConfiguration{QPS: 7}},
		Virtual: &gardenerprocess.Virtual{GenericKubeconfig: "generic-token-kubeconfig"},
	}
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "virtual.yaml", objects)
	golden.Objects(t, "virtual-target.yaml", TargetObjects(v))
	if v.Config.ClientConnection.Kubeconfig != "" || v.Config.LeaderElection != nil {
		t.Error("the configuration of the caller is changed")
	}
}

func TestConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		config *operatorv1alpha1.GardenerSchedulerConfig
		want   schedulerconfigv1alpha1.SchedulerConfiguration
	}{
		"none": {},
		"full": {
			config: &operatorv1alpha1.GardenerSchedulerConfig{
				LogLevel: new("debug"), FeatureGates: map[string]bool{"Some": true}, Strategy: new("MinimalDistance"),
			},
			want: schedulerconfigv1alpha1.SchedulerConfiguration{
				LogLevel: "debug", FeatureGates: map[string]bool{"Some": true},
				Schedulers: schedulerconfigv1alpha1.SchedulerControllerConfiguration{
					Shoot: &schedulerconfigv1alpha1.ShootSchedulerConfiguration{Strategy: schedulerconfigv1alpha1.MinimalDistance},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Configuration(tc.config)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Configuration() (-want +got):\n%s", diff)
			}
			schedulerconfigv1alpha1.SetDefaults(&got)
			if errs := validation.ValidateScheduler(&got); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
