package apiserver

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
)

// parse returns the flags of a command line, and sets those of klog back to what they were when the test has ended.
func parse(t *testing.T, args ...string) *flags {
	t.Helper()
	f, set := &flags{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.addTo(set)
	for _, name := range []string{"v", "vmodule"} {
		before := set.Lookup(name).Value.String()
		t.Cleanup(func() {
			if err := f.klog.Set(name, before); err != nil {
				t.Error(err)
			}
		})
	}
	if err := set.Parse(append([]string{"--cluster-identity=garden"}, args...)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "",
		"--cluster-identity=":                 "--cluster-identity: must be set",
		"--max-requests-inflight=-1":          "--max-requests-inflight=-1: must not be negative",
		"--max-mutating-requests-inflight=-1": "--max-mutating-requests-inflight=-1: must not be negative",
		"--goaway-chance=0.02":                "",
		"--goaway-chance=0.03":                "--goaway-chance=0.03: must be between 0 and 0.02",
		"--goaway-chance=-1":                  "--goaway-chance=-1: must be between 0 and 0.02",
		"--goaway-chance=NaN":                 "--goaway-chance=NaN: must be between 0 and 0.02",
		"--log-level=all":                     "--log-level=all: must be one of info, debug, error",
		"--shoot-admin-kubeconfig-max-expiration=1m": "--shoot-admin-kubeconfig-max-expiration=1m0s: must be at least 1h0m0s",
	} {
		t.Run(args, func(t *testing.T) {
			got := ""
			if err := parse(t, strings.Fields(args)...).validate(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("validate() = %q, want %q", got, want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	type limits struct {
		Reads, Writes int
		GoAway        float64
	}
	for name, tc := range map[string]struct {
		args []string
		want limits
	}{
		"default": {want: limits{400, 200, 0}},
		"given": {
			args: []string{"--max-requests-inflight=40", "--max-mutating-requests-inflight=20", "--goaway-chance=0.01"}, want: limits{40, 20, 0.01},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &genericapiserver.Config{}
			parse(t, tc.args...).applyTo(config)
			if diff := cmp.Diff(tc.want, limits{config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight, config.GoawayChance}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerbosity(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"default":         {want: []string{"always"}},
		"debug":           {args: []string{"--log-level=debug"}, want: []string{"always"}},
		"verbose":         {args: []string{"--v=3"}, want: []string{"always", "third"}},
		"this file":       {args: []string{"--vmodule=flags_test=5"}, want: []string{"always", "third", "fifth"}},
		"another file":    {args: []string{"--vmodule=httplog=5"}, want: []string{"always"}},
		"only errors":     {args: []string{"--v=3", "--log-level=error"}},
		"verbose as text": {args: []string{"--v=5", "--log-format=text"}, want: []string{"always", "third", "fifth"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := &bytes.Buffer{}
			klog.SetLogger(parse(t, tc.args...).logger(log))
			t.Cleanup(klog.ClearLogger)
			klog.Info("always")
			klog.V(3).Info("third")
			klog.V(5).Info("fifth")
			var got []string
			for _, message := range []string{"always", "third", "fifth"} {
				if strings.Contains(log.String(), message) {
					got = append(got, message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, log)
			}
		})
	}
}
