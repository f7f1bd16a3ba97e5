package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestExtensionClasses(t *testing.T) {
	type classes = []extensionsv1alpha1.ExtensionClass
	for name, tc := range map[string]struct {
		file classes
		args []string
		want classes
	}{
		"by default those of a seed":                             {want: classes{"shoot", "seed"}},
		"those of the file":                                      {file: classes{"seed"}, want: classes{"seed"}},
		"those of the flag":                                      {args: []string{"--extension-classes=garden"}, want: classes{"garden"}},
		"the flag takes precedence":                              {file: classes{"seed"}, args: []string{"--extension-classes=shoot,garden"}, want: classes{"shoot", "garden"}},
		"the flag without a class is not valid, as none is left": {file: classes{"seed"}, args: []string{"--extension-classes="}},
	} {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet(Name, pflag.ContinueOnError)
			set := Component().Flags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			config := &providerlocalconfigv1alpha1.ProviderLocalConfiguration{ExtensionClasses: tc.file}
			providerlocalconfigv1alpha1.SetDefaults(config)
			set(config)
			if diff := cmp.Diff(tc.want, config.ExtensionClasses); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
		})
	}
}
