package core_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestValidateSeed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.Seed)
		want   []string
	}{
		"a usual seed is valid": {change: func(*v1beta1.Seed) {}},
		"networks overlap": {
			change: func(s *v1beta1.Seed) { s.Spec.Networks.Services = "10.1.0.0/24" },
			want:   []string{"FieldValueInvalid spec.networks.services"},
		},
		"the internal domain is needed": {
			change: func(s *v1beta1.Seed) { s.Spec.DNS.Internal = nil },
			want:   []string{"FieldValueRequired spec.dns.internal"},
		},
		"zones are there once": {
			change: func(s *v1beta1.Seed) { s.Spec.Provider.Zones = []string{"a", "a"} },
			want:   []string{"FieldValueDuplicate spec.provider.zones[1]"},
		},
		"a load balancer of an unknown zone": {
			change: func(s *v1beta1.Seed) {
				s.Spec.Settings.LoadBalancerServices.Zones = []v1beta1.SeedSettingLoadBalancerServicesZones{{Name: "c"}}
			},
			want: []string{"FieldValueNotFound spec.settings.loadBalancerServices.zones[0].name"},
		},
		"topology-aware routing needs zones": {
			change: func(s *v1beta1.Seed) {
				s.Spec.Provider.Zones, s.Spec.Settings.TopologyAwareRouting.Enabled = []string{"a"}, true
			},
			want: []string{"FieldValueForbidden spec.settings.topologyAwareRouting.enabled"},
		},
		"backups elsewhere need a region": {
			change: func(s *v1beta1.Seed) {
				s.Spec.Backup = &v1beta1.Backup{Provider: "other", CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}}
			},
			want: []string{"FieldValueInvalid spec.backup.region"},
		},
		"an operation of another kind": {
			change: func(s *v1beta1.Seed) { s.Annotations = map[string]string{"gardener.cloud/operation": "migrate"} },
			want:   []string{"FieldValueNotSupported metadata.annotations[gardener.cloud/operation]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := seed()
			tc.change(s)
			validationtest.Expect(t, core.ValidateSeed(s), tc.want...)
		})
	}
}

func TestValidateSeedUpdate(t *testing.T) {
	changed := seed()
	changed.Spec.Networks.Pods = "10.9.0.0/16"
	changed.Spec.Ingress.Domain = "other.example.com"
	validationtest.Expect(t, core.ValidateSeedUpdate(changed, seed()), "FieldValueInvalid spec.ingress.domain", "FieldValueInvalid spec.networks.pods")
}

func TestValidateCloudProfile(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := metav1.NewTime(now.Add(time.Hour))
	for name, tc := range map[string]struct {
		change func(*v1beta1.CloudProfile)
		opts   core.Options
		want   []string
	}{
		"a usual profile is valid": {change: func(*v1beta1.CloudProfile) {}},
		"the latest version must not expire": {
			change: func(p *v1beta1.CloudProfile) { p.Spec.Kubernetes.Versions[0].ExpirationDate = &later },
			want:   []string{"FieldValueInvalid spec.kubernetes.versions[].expirationDate"},
		},
		"one supported patch version for each minor version": {
			change: func(p *v1beta1.CloudProfile) {
				supported := new(v1beta1.ClassificationSupported)
				p.Spec.Kubernetes.Versions = []v1beta1.ExpirableVersion{{Version: "1.36.1", Classification: supported}, {Version: "1.36.0", Classification: supported}}
			},
			want: []string{"FieldValueForbidden spec.kubernetes.versions[0]", "FieldValueForbidden spec.kubernetes.versions[1]"},
		},
		"lifecycles need their gate": {
			change: func(p *v1beta1.CloudProfile) {
				p.Spec.Kubernetes.Versions[1].Lifecycle = []v1beta1.LifecycleStage{{Classification: v1beta1.ClassificationSupported}}
			},
			want: []string{"FieldValueForbidden spec.kubernetes.versions[1].lifecycle"},
		},
		"stages of a lifecycle are in order": {
			opts: core.Options{VersionClassificationLifecycle: true},
			change: func(p *v1beta1.CloudProfile) {
				p.Spec.Kubernetes.Versions[1].Lifecycle = []v1beta1.LifecycleStage{
					{Classification: v1beta1.ClassificationSupported}, {Classification: v1beta1.ClassificationPreview, StartTime: &later},
				}
			},
			want: []string{"FieldValueInvalid spec.kubernetes.versions[1].lifecycle[1].classification"},
		},
		"capabilities need their gate": {
			change: func(p *v1beta1.CloudProfile) {
				p.Spec.MachineCapabilities = []v1beta1.CapabilityDefinition{{Name: "architecture", Values: v1beta1.CapabilityValues{"amd64"}}}
			},
			want: []string{"FieldValueForbidden spec.machineCapabilities"},
		},
		"a flavor that is not declared": {
			opts: options,
			change: func(p *v1beta1.CloudProfile) {
				p.Spec.MachineCapabilities = []v1beta1.CapabilityDefinition{{Name: "architecture", Values: v1beta1.CapabilityValues{"amd64"}}}
				p.Spec.MachineImages[0].Versions[0].CapabilityFlavors = []v1beta1.MachineImageFlavor{{Capabilities: v1beta1.Capabilities{"gpu": {"yes"}}}}
			},
			want: []string{"FieldValueNotSupported spec.machineImages[0].versions[0].capabilityFlavors[0]"},
		},
		"bastions of an image that is not offered": {
			change: func(p *v1beta1.CloudProfile) {
				p.Spec.Bastion = &v1beta1.Bastion{MachineImage: &v1beta1.BastionMachineImage{Name: "other"}}
			},
			want: []string{"FieldValueInvalid spec.bastion.machineImage.name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := cloudProfile()
			tc.change(p)
			validationtest.Expect(t, core.ValidateCloudProfile(p, now, tc.opts), tc.want...)
		})
	}
}

func TestValidateProject(t *testing.T) {
	user := func(name string, roles ...string) v1beta1.ProjectMember {
		return v1beta1.ProjectMember{Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}, Roles: roles}
	}
	roles := func(n int, prefix string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("extension:%s%d", prefix, i))
		}
		return out
	}
	for name, tc := range map[string]struct {
		spec v1beta1.ProjectSpec
		want []string
	}{
		"a usual project is valid": {spec: v1beta1.ProjectSpec{Members: []v1beta1.ProjectMember{user("alice", "owner", "extension:dns")}}},
		"too many roles of extensions": {
			spec: v1beta1.ProjectSpec{Members: []v1beta1.ProjectMember{user("alice", roles(30, "a")...), user("bob", roles(21, "b")...)}},
			want: []string{"FieldValueTooMany spec.members"},
		},
		"as many roles of extensions as there may be": {
			spec: v1beta1.ProjectSpec{Members: []v1beta1.ProjectMember{user("alice", roles(50, "a")...), user("bob", roles(50, "a")...)}},
		},
		"two owners": {
			spec: v1beta1.ProjectSpec{Members: []v1beta1.ProjectMember{user("alice", "owner"), user("bob", "owner")}},
			want: []string{"FieldValueForbidden spec.members[1].roles[0]"},
		},
		"a service account under two names": {
			spec: v1beta1.ProjectSpec{Members: []v1beta1.ProjectMember{
				user("system:serviceaccount:a:b", "viewer"),
				{Subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "a", Name: "b"}, Roles: []string{"viewer"}},
			}},
			want: []string{"FieldValueDuplicate spec.members[1]"},
		},
		"a namespace of another project": {
			spec: v1beta1.ProjectSpec{Namespace: new("kube-system")},
			want: []string{"FieldValueInvalid spec.namespace"},
		},
		"markup in a description": {
			spec: v1beta1.ProjectSpec{Description: new("<b>"), Purpose: new("")},
			want: []string{"FieldValueForbidden spec.description", "FieldValueRequired spec.purpose"},
		},
		"a default that is not allowed": {
			spec: v1beta1.ProjectSpec{Tolerations: &v1beta1.ProjectTolerations{
				Defaults: []v1beta1.Toleration{{Key: "a"}}, Whitelist: []v1beta1.Toleration{{Key: "a", Value: new("b")}},
			}},
			want: []string{"FieldValueForbidden spec.tolerations.defaults[0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			project := &v1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: tc.spec}
			validationtest.Expect(t, core.ValidateProject(project), tc.want...)
		})
	}
}

// Members of a Project from before the limit may stay.
func TestProjectWithManyExtensionRoles(t *testing.T) {
	old := &v1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", ResourceVersion: "1"}}
	for i := range 60 {
		old.Spec.Members = append(old.Spec.Members, v1beta1.ProjectMember{
			Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprint(i)}, Roles: []string{fmt.Sprintf("extension:%d", i)},
		})
	}
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	validationtest.Expect(t, core.ValidateProjectUpdate(labelled, old))
	more := old.DeepCopy()
	more.Spec.Members[0].Roles = append(more.Spec.Members[0].Roles, "extension:more")
	validationtest.Expect(t, core.ValidateProjectUpdate(more, old), "FieldValueTooMany spec.members")
}

func TestControllerDeploymentConversionKeepsEverything(t *testing.T) {
	for name, deployment := range map[string]v1beta1.ControllerDeployment{
		"helm":   {Type: "helm", InjectGardenKubeconfig: new(true)},
		"custom": {Type: "custom"},
	} {
		t.Run(name, func(t *testing.T) {
			if deployment.Type == "helm" {
				deployment.ProviderConfig.Raw = []byte(`{"chart":"QQ==","values":{"a":1}}`)
			} else {
				deployment.ProviderConfig.Raw = []byte(`{"b":2}`)
			}
			deployment.Name = "extension"
			v1, back := &gardencorev1.ControllerDeployment{}, &v1beta1.ControllerDeployment{}
			if err := deployment.ToV1(v1); err != nil {
				t.Fatal(err)
			}
			validationtest.Expect(t, core.ValidateControllerDeployment(v1))
			if err := back.FromV1(v1); err != nil {
				t.Fatal(err)
			}
			if back.Type != deployment.Type || string(back.ProviderConfig.Raw) != string(deployment.ProviderConfig.Raw) {
				t.Errorf("came back as %s %s", back.Type, back.ProviderConfig.Raw)
			}
		})
	}
}

func TestValidatePlant(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.PlantSpec)
		want   []string
	}{
		"a usual plant is valid": {change: func(*v1beta1.PlantSpec) {}},
		"the kubeconfig is needed": {
			change: func(s *v1beta1.PlantSpec) { s.SecretRef.Name = "" },
			want:   []string{"FieldValueRequired spec.secretRef.name"},
		},
		"endpoints are complete and named once": {
			change: func(s *v1beta1.PlantSpec) {
				s.Endpoints = append(s.Endpoints, v1beta1.Endpoint{Name: "grafana"})
			},
			want: []string{"FieldValueRequired spec.endpoints[1].url", "FieldValueRequired spec.endpoints[1].purpose", "FieldValueDuplicate spec.endpoints[1].name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plant := &v1beta1.Plant{
				ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: "garden-dev"},
				Spec: v1beta1.PlantSpec{
					SecretRef: corev1.LocalObjectReference{Name: "elsewhere"},
					Endpoints: []v1beta1.Endpoint{{Name: "grafana", URL: "https://grafana.example.com", Purpose: "monitoring"}},
				},
			}
			tc.change(&plant.Spec)
			validationtest.Expect(t, core.ValidatePlant(plant), tc.want...)
		})
	}
}
