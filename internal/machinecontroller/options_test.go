package machinecontroller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// flagged are the options of either process.
type flagged interface {
	AddFlags(*pflag.FlagSet)
	Validate() error
}

// TestOptions has the flags that gardenlets and extensions of the original set, too.
func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		options flagged
		args    []string
		want    []string
	}{
		"generic: the least": {NewOptions(), []string{"--namespace=n"}, nil},
		"generic: those of the original's gardenlet": {NewOptions(), []string{
			"--control-kubeconfig=inClusterConfig", "--machine-safety-overshooting-period=1m", "--namespace=n", "--port=10258", "--safety-up=2", "--safety-down=1",
			"--target-kubeconfig=/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig", "--concurrent-syncs=30", "--kube-api-qps=150",
			"--kube-api-burst=200", "--v=3",
		}, nil},
		"generic: mistakes": {
			NewOptions(),
			[]string{"--concurrent-syncs=0", "--log-level=loud", "--safety-up=-1", "--leader-elect-renew-deadline=1h"},
			[]string{
				"--concurrent-syncs must be above zero", "--leader-elect-renew-deadline must be below --leader-elect-lease-duration",
				"--log-level must be one of info, debug, error", "--namespace must be set to the namespace of the Machines", "--safety-up must not be below zero",
			},
		},
		"provider: those of the original's extensions": {NewProviderOptions(), []string{
			"--control-kubeconfig=inClusterConfig", "--namespace=n", "--port=10259",
			"--target-kubeconfig=/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig", "--machine-creation-timeout=20m",
			"--machine-drain-timeout=2h", "--machine-health-timeout=10m", "--machine-safety-apiserver-statuscheck-timeout=30s",
			"--machine-safety-apiserver-statuscheck-period=1m", "--machine-safety-orphan-vms-period=30m", "--kube-api-qps=100", "--kube-api-burst=200",
			"--v=3", "--node-conditions=A,B",
		}, nil},
		"provider: mistakes": {
			NewProviderOptions(),
			[]string{"--namespace=n", "--machine-health-timeout=0s", "--machine-max-evict-retries=-1", "--machine-max-parallel-replacements=0"},
			[]string{
				"--machine-health-timeout must be above zero", "--machine-max-evict-retries must not be below zero",
				"--machine-max-parallel-replacements must be above zero",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			tc.options.AddFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := tc.options.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSettings: the two processes of a pod have a Lease and a port each, where their probes are, too.
func TestSettings(t *testing.T) {
	generic, provider := NewOptions(), NewProviderOptions()
	generic.Verbosity = 4
	for name, tc := range map[string]struct {
		options *Common
		lease   string
		port    int
		level   string
	}{
		"generic": {&generic.Common, "machine-controller-manager", 10258, "debug"}, "provider": {&provider.Common, "machine-controller", 10259, "info"},
	} {
		s := tc.options.settings()
		if s.LeaderElection.ResourceName != tc.lease || s.Metrics.Port != tc.port || s.Health.Port != tc.port || s.LogLevel != tc.level {
			t.Errorf("%s: Lease %s, metrics at %d, probes at %d, log level %s", name, s.LeaderElection.ResourceName, s.Metrics.Port, s.Health.Port, s.LogLevel)
		}
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
