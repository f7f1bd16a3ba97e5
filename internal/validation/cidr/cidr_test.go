package cidr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gardener.cloud/gardener/internal/validation/cidr"
)

func paths(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, string(err.Type)+" "+err.Field)
	}
	return out
}

func TestValidate(t *testing.T) {
	path := field.NewPath("networks")
	for name, tc := range map[string]struct {
		values                    []string
		valid, disjoint, families []string
	}{
		"nothing":                          {},
		"one network":                      {values: []string{"10.0.0.0/8"}},
		"two families":                     {values: []string{"10.0.0.0/8", "2001:db8::/32"}},
		"bits beyond the mask":             {values: []string{"10.0.0.1/8"}, valid: []string{"FieldValueInvalid networks[0]"}},
		"a long IPv6 address":              {values: []string{"2001:db8:0::/32"}, valid: []string{"FieldValueInvalid networks[0]"}},
		"no network":                       {values: []string{"ten"}, valid: []string{"FieldValueInvalid networks[0]"}},
		"an address without a mask":        {values: []string{"10.0.0.0"}, valid: []string{"FieldValueInvalid networks[0]"}},
		"overlap, same family":             {values: []string{"10.0.0.0/8", "10.1.0.0/16"}, disjoint: []string{"FieldValueInvalid networks[1]"}, families: []string{"FieldValueInvalid networks"}},
		"disjoint, same family":            {values: []string{"10.0.0.0/16", "10.1.0.0/16"}, families: []string{"FieldValueInvalid networks"}},
		"three networks":                   {values: []string{"10.0.0.0/16", "2001:db8::/32", "10.1.0.0/16"}, families: []string{"FieldValueTooMany networks"}},
		"what is no network is left alone": {values: []string{"ten", "10.0.0.0/8"}, valid: []string{"FieldValueInvalid networks[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			list := cidr.List(path, tc.values)
			if diff := cmp.Diff(tc.valid, paths(cidr.Validate(list...))); diff != "" {
				t.Errorf("Validate() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.disjoint, paths(cidr.ValidateDisjoint(list...))); diff != "" {
				t.Errorf("ValidateDisjoint() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.families, paths(cidr.ValidateFamilies(path, tc.values))); diff != "" {
				t.Errorf("ValidateFamilies() (-want +got):\n%s", diff)
			}
		})
	}
}
