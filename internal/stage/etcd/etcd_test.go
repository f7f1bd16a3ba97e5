package etcd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	component "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/validation/druid"
)

// What a seed says of volumes is for new Etcds. The API server would reject a change of existing ones, and then of every shoot of the seed.
func TestDeployVolumes(t *testing.T) {
	type volume struct{ Class, Capacity, Template string }
	existing := func(class *string, capacity *resource.Quantity, template *string) *druidv1alpha1.Etcd {
		return &druidv1alpha1.Etcd{Spec: druidv1alpha1.EtcdSpec{StorageClass: class, StorageCapacity: capacity, VolumeClaimTemplate: template}}
	}
	for name, tc := range map[string]struct {
		existing     *druidv1alpha1.Etcd
		minimum      *resource.Quantity
		storageClass string
		want         volume
	}{
		"new":                        {want: volume{"", "10Gi", "etcd-main"}},
		"new, a larger minimum":      {minimum: new(resource.MustParse("25Gi")), storageClass: "fast", want: volume{"fast", "25Gi", "etcd-main"}},
		"new, a smaller minimum":     {minimum: new(resource.MustParse("5Gi")), want: volume{"", "10Gi", "etcd-main"}},
		"existing, a larger minimum": {existing: existing(nil, new(resource.MustParse("10Gi")), new("etcd-main")), minimum: new(resource.MustParse("25Gi")), want: volume{"", "10Gi", "etcd-main"}},
		"existing, larger than the minimum": {
			existing: existing(new("slow"), new(resource.MustParse("30Gi")), new("etcd-main")), minimum: new(resource.MustParse("25Gi")), storageClass: "slow",
			want: volume{"slow", "30Gi", "etcd-main"},
		},
		"existing, another class": {existing: existing(new("slow"), new(resource.MustParse("10Gi")), new("data")), storageClass: "fast", want: volume{"slow", "10Gi", "data"}},
		"existing, a class is added": {
			existing: existing(nil, new(resource.MustParse("10Gi")), new("etcd-main")), storageClass: "fast", want: volume{"", "10Gi", "etcd-main"},
		},
		"existing, the class is removed": {existing: existing(new("slow"), new(resource.MustParse("10Gi")), new("etcd-main")), want: volume{"slow", "10Gi", "etcd-main"}},
		"existing, with defaults":        {existing: existing(nil, nil, nil), minimum: new(resource.MustParse("25Gi")), storageClass: "fast"},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			key := client.ObjectKey{Namespace: stagetest.Namespace, Name: component.Name(instance.Shoot, component.Main)}
			if tc.existing != nil {
				tc.existing.Namespace, tc.existing.Name = key.Namespace, key.Name
				if err := clusters.Seed.Create(t.Context(), tc.existing); err != nil {
					t.Fatal(err)
				}
			}
			in := Inputs{Run: clusters.Run(), Values: func(role component.Role, replicas int32) (component.Values, error) {
				return component.Values{Namespace: key.Namespace, Role: role, Replicas: replicas, StorageClass: tc.storageClass, MinimumStorage: tc.minimum}, nil
			}}
			if err := Deploy(in, component.Main, 1)(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := &druidv1alpha1.Etcd{}
			if err := clusters.Seed.Get(t.Context(), key, after); err != nil {
				t.Fatal(err)
			}
			got := volume{Class: ptr.Deref(after.Spec.StorageClass, ""), Template: ptr.Deref(after.Spec.VolumeClaimTemplate, "")}
			if capacity := after.Spec.StorageCapacity; capacity != nil {
				got.Capacity = capacity.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			if after.Spec.Etcd.Quota == nil {
				t.Error("the rest of the spec is not applied")
			}
			if tc.existing != nil {
				for _, err := range druid.ValidateEtcdUpdate(after, tc.existing) {
					if err.Field == "spec.storageClass" || err.Field == "spec.volumeClaimTemplate" {
						t.Errorf("the change is refused: %v", err)
					}
				}
			}
		})
	}
}

// An etcd serves its clients while its members are replaced, one after the other. A change is done when all of them have it.
func TestHealthy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*druidv1alpha1.EtcdStatus)
		want   string
		// serves is whether it serves its clients.
		serves bool
	}{
		"ready":                      {change: func(*druidv1alpha1.EtcdStatus) {}, serves: true},
		"an older etcd-druid":        {change: func(s *druidv1alpha1.EtcdStatus) { s.Conditions = nil }, serves: true},
		"the change is not observed": {change: func(s *druidv1alpha1.EtcdStatus) { *s.ObservedGeneration-- }, want: `Etcd "etcd-main": etcd-druid has not observed its last change`},
		"in error": {change: func(s *druidv1alpha1.EtcdStatus) {
			s.LastErrors = []druidv1alpha1.LastError{{Description: "x"}}
		}, want: `Etcd "etcd-main": x`},
		"not ready": {change: func(s *druidv1alpha1.EtcdStatus) { s.Ready = new(false) }, want: `Etcd "etcd-main": 2 of 3 members are ready`},
		"not updated": {change: func(s *druidv1alpha1.EtcdStatus) {
			s.Conditions[0].Status, s.Conditions[0].Message = druidv1alpha1.ConditionFalse, "1 of 3 pods are updated"
		}, want: `Etcd "etcd-main": 1 of 3 pods are updated`, serves: true},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := &druidv1alpha1.Etcd{}
			etcd.Name, etcd.Generation, etcd.Spec.Replicas = "etcd-main", 2, 3
			etcd.Status = druidv1alpha1.EtcdStatus{
				ObservedGeneration: new(int64(2)), Ready: new(true), ReadyReplicas: 2,
				Conditions: []druidv1alpha1.Condition{{Type: druidv1alpha1.ConditionTypeAllMembersUpdated, Status: druidv1alpha1.ConditionTrue}},
			}
			tc.change(&etcd.Status)
			got := ""
			if err := Healthy(etcd); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Healthy() = %q, want %q", got, tc.want)
			}
			if err := Serves(etcd); (err == nil) != tc.serves {
				t.Errorf("Serves() = %v", err)
			}
		})
	}
}
