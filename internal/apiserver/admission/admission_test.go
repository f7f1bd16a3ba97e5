package admission_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gardener.cloud/gardener/internal/apiserver/admission"
)

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"none":                       {},
		"a known plugin":             {flags: []string{"--disable-admission-plugins=ResourceQuota,ControllerRegistrationResources"}},
		"one that is off by default": {flags: []string{"--enable-admission-plugins=MutatingAdmissionPolicy"}},
		"an unknown plugin":          {flags: []string{"--enable-admission-plugins=Nonsense"}, want: `"Nonsense" is unknown`},
		"on and off":                 {flags: []string{"--enable-admission-plugins=ResourceQuota", "--disable-admission-plugins=ResourceQuota"}, want: "overlapped"},
	} {
		t.Run(name, func(t *testing.T) {
			options := admission.NewOptions()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(tc.flags); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, err := range options.Validate() {
				got = append(got, err.Error())
			}
			if text := strings.Join(got, "; "); (text == "") != (tc.want == "") || !strings.Contains(text, tc.want) {
				t.Errorf("the flags %v give %q, want %q", tc.flags, text, tc.want)
			}
		})
	}
	if order := admission.NewOptions().RecommendedPluginOrder; order[0] != "QuantityValidator" || order[len(order)-1] != "ResourceQuota" {
		t.Errorf("the order is %v", order)
	}
}
