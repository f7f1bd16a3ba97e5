package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
)

func TestDefaultGardenletConfiguration(t *testing.T) {
	config := &v1alpha1.GardenletConfiguration{ExposureClassHandlers: []v1alpha1.ExposureClassHandler{{Name: "internet"}}}
	v1alpha1.DefaultGardenletConfiguration(config)

	for what, pair := range map[string][2]any{
		"requests per second to the garden": {config.GardenClientConnection.QPS, float32(50)},
		"requests at once to the seed":      {config.SeedClientConnection.Burst, int32(100)},
		"port of the health endpoint":       {config.Server.HealthProbes.Port, 2728},
		"port of the metrics endpoint":      {config.Server.Metrics.Port, 2729},
		"name of the lease":                 {config.LeaderElection.ResourceName, "gardenlet-leader-election"},
		"shoots at once":                    {*config.Controllers.Shoot.ConcurrentSyncs, 20},
		"period of shoots":                  {config.Controllers.Shoot.SyncPeriod.Duration, time.Hour},
		"namespace of the gateway":          {*config.SNI.Ingress.Namespace, "istio-ingress"},
		"namespace of a handler's gateway":  {*config.ExposureClassHandlers[0].SNI.Ingress.Namespace, "istio-ingress-handler-internet"},
		"etcd controller":                   {*config.ETCDConfig.ETCDController.Workers, int64(50)},
		"logs":                              {config.LogLevel + " " + config.LogFormat, "info json"},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	again := config.DeepCopy()
	v1alpha1.DefaultGardenletConfiguration(again)
	if diff := cmp.Diff(config, again); diff != "" {
		t.Errorf("defaults differ the second time (-first +second):\n%s", diff)
	}

	given := &v1alpha1.GardenletConfiguration{Controllers: &v1alpha1.GardenletControllerConfiguration{
		Shoot: &v1alpha1.ShootControllerConfiguration{ConcurrentSyncs: new(3), SyncPeriod: &metav1.Duration{Duration: time.Minute}},
	}}
	v1alpha1.DefaultGardenletConfiguration(given)
	if shoot := given.Controllers.Shoot; *shoot.ConcurrentSyncs != 3 || shoot.SyncPeriod.Duration != time.Minute {
		t.Errorf("defaults replaced something: %+v", shoot)
	}
}
