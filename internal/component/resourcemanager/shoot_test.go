package resourcemanager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	validation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

func ofShoot(o ShootOptions) Values {
	o.Namespace = "shoot--a--b"
	return Values{
		Namespace: "shoot--a--b", Image: "registry.example/gardener:v1", Replicas: 1, ServerSecret: "server-1234", CABundle: []byte("CA"),
		Config: ForShoot(o), Shoot: &Shoot{GenericKubeconfig: "generic-token-kubeconfig-1"},
	}
}

func TestShoot(t *testing.T) {
	for name, options := range map[string]ShootOptions{
		"workerless": {Workerless: true, ClusterIdentity: "seed"},
		"full":       {ClusterIdentity: "seed", APIServerHost: "api.example", SchedulerName: "bin-packing-scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			v := ofShoot(options)
			if name == "full" {
				v.TrafficDistribution = new("PreferSameZone")
			}
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, "shoot-"+name+".yaml", objects)
			golden.Objects(t, "shoot-"+name+"-target.yaml", TargetObjects(v))
			for _, object := range objects {
				if configMap, ok := object.(*corev1.ConfigMap); ok {
					config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
					if err := yaml.UnmarshalStrict([]byte(configMap.Data["config.yaml"]), config); err != nil {
						t.Fatal(err)
					}
					if err := validation.ValidateResourceManager(config).ToAggregate(); err != nil {
						t.Errorf("its configuration is invalid: %v", err)
					}
				}
			}
		})
	}
}
