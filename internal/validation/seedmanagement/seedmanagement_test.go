package seedmanagement_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/seedmanagement"
	"gardener.cloud/gardener/internal/validation/validationtest"
	"gardener.cloud/gardener/test/builder"
)

// config is a gardenlet configuration as it is embedded in objects.
func config(t *testing.T, change func(*gardenletconfigv1alpha1.GardenletConfiguration)) *runtime.RawExtension {
	t.Helper()
	c := &gardenletconfigv1alpha1.GardenletConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "gardenlet.config.gardener.cloud/v1alpha1", Kind: "GardenletConfiguration"},
		SeedConfig: &gardenletconfigv1alpha1.SeedConfig{},
	}
	c.SeedConfig.Labels = map[string]string{"set": "s"}
	c.SeedConfig.Spec = corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "local", Region: "local"},
		Networks: corev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: new("172.18.0.0/16")},
		DNS: corev1beta1.SeedDNS{Internal: &corev1beta1.SeedDNSProviderConfig{
			Type: "local", Domain: "internal.example.com",
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"},
		}},
	}
	if change != nil {
		change(c)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: data}
}

func managedSeed(t *testing.T) *seedmanagementv1alpha1.ManagedSeed {
	m := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Name: "seed", Namespace: "garden", ResourceVersion: "1"},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: "seed"},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: config(t, nil)},
		},
	}
	seedmanagementv1alpha1.DefaultManagedSeed(m)
	return m
}

func TestValidateManagedSeed(t *testing.T) {
	const gardenlet = "spec.gardenlet."
	for name, tc := range map[string]struct {
		change func(*testing.T, *seedmanagementv1alpha1.ManagedSeed)
		want   []string
	}{
		"a usual one is valid": {change: func(*testing.T, *seedmanagementv1alpha1.ManagedSeed) {}},
		"elsewhere": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) { m.Namespace = "garden-dev" },
			want:   []string{"FieldValueInvalid metadata.namespace"},
		},
		"no shoot": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) { m.Spec.Shoot = nil },
			want:   []string{"FieldValueRequired spec.shoot"},
		},
		"an operation of another kind": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Annotations = map[string]string{"gardener.cloud/operation": "migrate"}
			},
			want: []string{"FieldValueNotSupported metadata.annotations[gardener.cloud/operation]"},
		},
		"no seed": {
			change: func(t *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Config = config(t, func(c *gardenletconfigv1alpha1.GardenletConfiguration) { c.SeedConfig = nil })
			},
			want: []string{"FieldValueRequired " + gardenlet + "config.seedConfig"},
		},
		"something else than a configuration": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret"}`)}
			},
			want: []string{"FieldValueInvalid " + gardenlet + "config"},
		},
		"a setting of another type": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: []byte(`{"resources":"many"}`)}
			},
			want: []string{"FieldValueInvalid " + gardenlet + "config"},
		},
		"a kubeconfig that the bootstrap makes": {
			change: func(t *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Config = config(t, func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
					c.GardenClientConnection = &gardenletconfigv1alpha1.GardenClientConnection{}
					c.GardenClientConnection.Kubeconfig = "/kubeconfig"
				})
			},
			want: []string{"FieldValueForbidden " + gardenlet + "config.gardenClientConnection.kubeconfig"},
		},
		"no kubeconfig and no bootstrap": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Bootstrap = new(seedmanagementv1alpha1.BootstrapNone)
			},
			want: []string{"FieldValueRequired " + gardenlet + "config.gardenClientConnection.kubeconfig"},
		},
		"a log level that does not exist": {
			change: func(t *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Config = config(t, func(c *gardenletconfigv1alpha1.GardenletConfiguration) { c.LogLevel = "nonsense" })
			},
			want: []string{"FieldValueNotSupported " + gardenlet + "config.logLevel"},
		},
		"a deployment that cannot be": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				d := m.Spec.Gardenlet.Deployment
				d.ReplicaCount, d.ServiceAccountName = new(int32(-1)), new("-")
				d.Image = &seedmanagementv1alpha1.Image{Tag: new(""), PullPolicy: new(corev1.PullPolicy("Sometimes"))}
			},
			want: []string{
				"FieldValueInvalid " + gardenlet + "deployment.replicaCount", "FieldValueInvalid " + gardenlet + "deployment.serviceAccountName",
				"FieldValueInvalid " + gardenlet + "deployment.image.tag", "FieldValueNotSupported " + gardenlet + "deployment.image.pullPolicy",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := managedSeed(t)
			tc.change(t, m)
			validationtest.Expect(t, seedmanagement.ValidateManagedSeed(m), tc.want...)
		})
	}
}

func TestValidateManagedSeedUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*testing.T, *seedmanagementv1alpha1.ManagedSeed)
		want   []string
	}{
		"more replicas": {change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
			m.Spec.Gardenlet.Deployment.ReplicaCount = new(int32(3))
		}},
		"another shoot": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "other"}
			},
			want: []string{"FieldValueInvalid spec.shoot"},
		},
		"other networks": {
			change: func(t *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Config = config(t, func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
					c.SeedConfig.Spec.Networks.Pods = "10.8.0.0/16"
				})
			},
			want: []string{"FieldValueInvalid spec.gardenlet.config.seedConfig.spec.networks.pods"},
		},
		"another bootstrap": {
			change: func(_ *testing.T, m *seedmanagementv1alpha1.ManagedSeed) {
				m.Spec.Gardenlet.Bootstrap = new(seedmanagementv1alpha1.BootstrapServiceAccount)
			},
			want: []string{"FieldValueInvalid spec.gardenlet.bootstrap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := managedSeed(t)
			tc.change(t, m)
			validationtest.Expect(t, seedmanagement.ValidateManagedSeedUpdate(m, managedSeed(t)), tc.want...)
		})
	}
}

func TestValidateManagedSeedSet(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*seedmanagementv1alpha1.ManagedSeedSet)
		want   []string
	}{
		"a usual set is valid": {change: func(*seedmanagementv1alpha1.ManagedSeedSet) {}},
		"a selector for everything": {
			change: func(s *seedmanagementv1alpha1.ManagedSeedSet) { s.Spec.Selector = metav1.LabelSelector{} },
			want:   []string{"FieldValueInvalid spec.selector"},
		},
		"labels that the selector misses": {
			change: func(s *seedmanagementv1alpha1.ManagedSeedSet) {
				s.Spec.Selector.MatchLabels = map[string]string{"set": "other"}
			},
			want: []string{
				"FieldValueInvalid spec.template.metadata.labels", "FieldValueInvalid spec.shootTemplate.metadata.labels",
				"FieldValueInvalid spec.template.spec.gardenlet.config.seedConfig.metadata.labels",
			},
		},
		"a shoot of its own": {
			change: func(s *seedmanagementv1alpha1.ManagedSeedSet) {
				s.Spec.Template.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "other"}
			},
			want: []string{"FieldValueForbidden spec.template.spec.shoot"},
		},
		"negative numbers": {
			change: func(s *seedmanagementv1alpha1.ManagedSeedSet) {
				s.Spec.Replicas, s.Spec.RevisionHistoryLimit = new(int32(-1)), new(int32(-1))
				s.Spec.UpdateStrategy.RollingUpdate = &seedmanagementv1alpha1.RollingUpdateStrategy{Partition: new(int32(-1))}
			},
			want: []string{
				"FieldValueInvalid spec.replicas", "FieldValueInvalid spec.revisionHistoryLimit",
				"FieldValueInvalid spec.updateStrategy.rollingUpdate.partition",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := managedSeedSet(t)
			tc.change(s)
			validationtest.Expect(t, seedmanagement.ValidateManagedSeedSet(s, core.Options{}), tc.want...)
		})
	}
}

func managedSeedSet(t *testing.T) *seedmanagementv1alpha1.ManagedSeedSet {
	labels := map[string]string{"set": "s"}
	s := &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden", ResourceVersion: "1"},
		Spec:       seedmanagementv1alpha1.ManagedSeedSetSpec{Selector: metav1.LabelSelector{MatchLabels: labels}},
	}
	s.Spec.Template.Labels, s.Spec.ShootTemplate.Labels = labels, labels
	s.Spec.Template.Spec.Gardenlet.Config = config(t, nil)
	shoot := builder.Shoot("", builder.Workers(1))
	corev1beta1.DefaultShoot(shoot)
	s.Spec.ShootTemplate.Spec = shoot.Spec
	seedmanagementv1alpha1.DefaultManagedSeedSet(s)
	return s
}

func TestValidateManagedSeedSetStatusUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		status, old seedmanagementv1alpha1.ManagedSeedSetStatus
		want        []string
	}{
		"a replica more": {
			status: seedmanagementv1alpha1.ManagedSeedSetStatus{
				Replicas: 2, ReadyReplicas: 1, NextReplicaNumber: 2,
				PendingReplica: &seedmanagementv1alpha1.PendingReplica{Name: "s-1", Reason: seedmanagementv1alpha1.ShootReconcilingReason},
			},
			old: seedmanagementv1alpha1.ManagedSeedSetStatus{Replicas: 1, NextReplicaNumber: 1},
		},
		"numbers that go back": {
			old:  seedmanagementv1alpha1.ManagedSeedSetStatus{NextReplicaNumber: 2, CollisionCount: new(int32(1))},
			want: []string{"FieldValueInvalid status.nextReplicaNumber", "FieldValueInvalid status.collisionCount"},
		},
		"more are ready than there are": {
			status: seedmanagementv1alpha1.ManagedSeedSetStatus{ReadyReplicas: 1},
			want:   []string{"FieldValueInvalid status.readyReplicas"},
		},
		"a replica of another set": {
			status: seedmanagementv1alpha1.ManagedSeedSetStatus{PendingReplica: &seedmanagementv1alpha1.PendingReplica{Name: "t-1", Reason: "Bored"}},
			want:   []string{"FieldValueInvalid status.pendingReplica.name", "FieldValueNotSupported status.pendingReplica.reason"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, old := managedSeedSet(t), managedSeedSet(t)
			set.Status, old.Status = tc.status, tc.old
			validationtest.Expect(t, seedmanagement.ValidateManagedSeedSetStatusUpdate(set, old), tc.want...)
		})
	}
}

func TestValidateGardenlet(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*seedmanagementv1alpha1.Gardenlet)
		want   []string
	}{
		"a usual one is valid": {change: func(*seedmanagementv1alpha1.Gardenlet) {}},
		"it is deployed again": {change: func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Annotations = map[string]string{"gardener.cloud/operation": "force-redeploy"}
		}},
		"no chart": {
			change: func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.Deployment.Helm.OCIRepository = gardencorev1.OCIRepository{}
			},
			want: []string{"FieldValueRequired spec.deployment.helm.ociRepository"},
		},
		"a name that is no label": {
			change: func(g *seedmanagementv1alpha1.Gardenlet) { g.Name = "not.a.label" },
			want:   []string{"FieldValueInvalid metadata.name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Name: "local", Namespace: "garden"}}
			g.Spec.Config = config(t, nil)
			g.Spec.Deployment.Helm.OCIRepository.Ref = new("registry.example.com/gardenlet:v1")
			seedmanagementv1alpha1.DefaultGardenlet(g)
			tc.change(g)
			validationtest.Expect(t, seedmanagement.ValidateGardenlet(g), tc.want...)
		})
	}
}
