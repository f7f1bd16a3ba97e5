package core_test

import (
	"testing"

	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestFailureToleranceUpdate(t *testing.T) {
	const (
		none = v1beta1.FailureToleranceType("")
		node = v1beta1.FailureToleranceTypeNode
		zone = v1beta1.FailureToleranceTypeZone

		wrongType      = "FieldValueInvalid spec.controlPlane.highAvailability.failureTolerance.type"
		forbiddenType  = "FieldValueForbidden spec.controlPlane.highAvailability.failureTolerance.type"
		forbiddenZones = "FieldValueForbidden spec.controlPlane.zones"
		wrongZones     = "FieldValueInvalid spec.controlPlane.zones"
	)
	controlPlane := func(tolerance v1beta1.FailureToleranceType, zones []string) *v1beta1.ControlPlane {
		c := &v1beta1.ControlPlane{Zones: zones}
		if tolerance != none {
			c.HighAvailability = &v1beta1.HighAvailability{FailureTolerance: v1beta1.FailureTolerance{Type: tolerance}}
		}
		return c
	}
	for name, tc := range map[string]struct {
		before, after             v1beta1.FailureToleranceType
		zonesBefore, zonesAfter   []string
		hibernates, wasHibernated bool
		want                      []string
	}{
		"from none to node":                     {before: none, after: node},
		"from none to zone":                     {before: none, after: zone},
		"from node to zone":                     {before: node, after: zone},
		"from zone to node":                     {before: zone, after: node},
		"from node to none":                     {before: node, after: none, want: []string{wrongType}},
		"from zone to none":                     {before: zone, after: none, want: []string{wrongType}},
		"while it is to be hibernated":          {before: node, after: zone, hibernates: true, want: []string{forbiddenType}},
		"while it wakes up":                     {before: zone, after: node, wasHibernated: true, want: []string{forbiddenType}},
		"from none, while it is hibernated":     {before: none, after: node, hibernates: true, wasHibernated: true, want: []string{forbiddenType}},
		"unchanged, while it is hibernated":     {before: node, after: node, hibernates: true, wasHibernated: true},
		"zones are added with zone":             {before: node, after: zone, zonesBefore: []string{"b"}, zonesAfter: []string{"a", "b", "c"}},
		"zones are removed with node":           {before: zone, after: node, zonesBefore: []string{"a", "b", "c"}, zonesAfter: []string{"b"}},
		"another zone with node":                {before: zone, after: node, zonesBefore: []string{"a", "b", "c"}, zonesAfter: []string{"d"}, want: []string{forbiddenZones}},
		"other zones with zone":                 {before: node, after: zone, zonesBefore: []string{"d"}, zonesAfter: []string{"a", "b", "c"}, want: []string{forbiddenZones}},
		"zones where none were chosen":          {before: node, after: zone, zonesAfter: []string{"a", "b", "c"}, want: []string{forbiddenZones}},
		"zones with the same type":              {before: node, after: node, zonesBefore: []string{"a"}, zonesAfter: []string{"b"}, want: []string{forbiddenZones}},
		"three zones are needed with zone":      {before: node, after: zone, zonesBefore: []string{"a"}, zonesAfter: []string{"a"}, want: []string{wrongZones}},
		"another order with the same tolerance": {before: zone, after: zone, zonesBefore: []string{"a", "b", "c"}, zonesAfter: []string{"b", "a", "c"}, want: []string{forbiddenZones}},
	} {
		t.Run(name, func(t *testing.T) {
			old := shoot()
			old.Spec.ControlPlane, old.Status.Hibernated = controlPlane(tc.before, tc.zonesBefore), tc.wasHibernated
			s := old.DeepCopy()
			s.Spec.ControlPlane = controlPlane(tc.after, tc.zonesAfter)
			s.Spec.Hibernation = &v1beta1.Hibernation{Enabled: &tc.hibernates}
			validationtest.Expect(t, core.ValidateShootUpdate(s, old, options), tc.want...)
		})
	}
}
