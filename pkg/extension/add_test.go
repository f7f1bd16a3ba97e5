package extension

import (
	"testing"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestResponsible(t *testing.T) {
	const shoot, seed, garden = extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed, extensionsv1alpha1.ExtensionClassGarden
	for name, tc := range map[string]struct {
		classes []extensionsv1alpha1.ExtensionClass
		typ     string
		class   *extensionsv1alpha1.ExtensionClass
		want    bool
	}{
		"no class is shoot":                    {[]extensionsv1alpha1.ExtensionClass{shoot, seed}, "local", nil, true},
		"class shoot":                          {[]extensionsv1alpha1.ExtensionClass{shoot, seed}, "local", new(shoot), true},
		"class seed":                           {[]extensionsv1alpha1.ExtensionClass{shoot, seed}, "local", new(seed), true},
		"another class":                        {[]extensionsv1alpha1.ExtensionClass{shoot, seed}, "local", new(garden), false},
		"another type":                         {[]extensionsv1alpha1.ExtensionClass{shoot, seed}, "aws", nil, false},
		"class garden":                         {[]extensionsv1alpha1.ExtensionClass{garden}, "local", new(garden), true},
		"no class, for the garden":             {[]extensionsv1alpha1.ExtensionClass{garden}, "local", nil, false},
		"class seed, for the garden":           {[]extensionsv1alpha1.ExtensionClass{garden}, "local", new(seed), false},
		"another type, for the garden":         {[]extensionsv1alpha1.ExtensionClass{garden}, "aws", new(garden), false},
		"an unknown class is that of no shoot": {[]extensionsv1alpha1.ExtensionClass{shoot}, "local", new(extensionsv1alpha1.ExtensionClass("x")), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler[*extensionsv1alpha1.DNSRecord]{Options: Options[*extensionsv1alpha1.DNSRecord]{Types: []string{"local"}, Classes: tc.classes}}
			record := &extensionsv1alpha1.DNSRecord{}
			record.Spec.Type, record.Spec.Class = tc.typ, tc.class
			if got := r.responsible(record); got != tc.want {
				t.Errorf("responsible() is %t", got)
			}
		})
	}
}
