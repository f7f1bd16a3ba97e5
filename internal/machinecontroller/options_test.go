package machinecontroller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"the least":  {[]string{"--namespace=n"}, nil},
		"everything": {[]string{"--namespace=n", "--control-kubeconfig=inClusterConfig", "--machine-drain-timeout=1h", "--node-conditions=A,B", "--safety-up=0"}, nil},
		"mistakes": {
			[]string{"--provider=x", "--machine-health-timeout=0s", "--concurrent-syncs=0", "--log-level=loud", "--safety-up=-1"},
			[]string{
				"--concurrent-syncs must be above zero", "--log-level must be one of info, debug, error", "--machine-health-timeout must be above zero",
				"--namespace must be set to the namespace of the Machines", `--provider "x" is not supported; supported is: local`, "--safety-up must not be below zero",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := o.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhaseValue(t *testing.T) {
	for phase, want := range map[machinev1alpha1.MachinePhase]float64{
		machinev1alpha1.MachineTerminating: -4, machinev1alpha1.MachineCrashLoopBackOff: -1, machinev1alpha1.MachinePending: 0, machinev1alpha1.MachineRunning: 2, "": 0,
	} {
		if got := phaseValue(phase); got != want {
			t.Errorf("%q is %v, want %v", phase, got, want)
		}
	}
}
