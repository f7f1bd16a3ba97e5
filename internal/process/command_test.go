package process_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

type (
	config    = schedulerconfigv1alpha1.SchedulerConfiguration
	component = process.Component[config]
)

const header = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"

// example is a component that does what a test adds to it.
func example(wire func(context.Context, *process.Process, *config) error) component {
	return component{
		Name:   "example",
		Short:  "Do nothing",
		Config: configfile.Kind[config]{AddToScheme: schedulerconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateScheduler},
		Settings: func(c *config) process.Settings {
			return process.Settings{
				Client: *c.ClientConnection, LeaderElection: c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		WithoutEffect: map[featuregate.Feature]bool{"Former": false},
		Features: map[featuregate.Feature]featuregate.FeatureSpec{
			"Fast":  {Default: false, PreRelease: featuregate.Alpha},
			"Solid": {Default: true, PreRelease: featuregate.GA, LockToDefault: true},
		},
		Wire: wire,
	}
}

func TestCommandPrintsOneLinePerMistake(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		args    []string
		want    []string
	}{
		"no file": {
			want: []string{"error: no configuration file is given; name it with --config"},
		},
		"an unknown flag": {
			args: []string{"--verbose"},
			want: []string{"error: unknown flag: --verbose"},
		},
		"bad values": {
			content: "logLevel: loud\nlogFormat: prose\n",
			want: []string{
				"error: several things are wrong:",
				`- logLevel: Unsupported value: "loud": supported values: "info", "debug", "error"`,
				`- logFormat: Unsupported value: "prose": supported values: "json", "text"`,
			},
		},
		"a bad flag": {
			content: "logFormat: text\n",
			args:    []string{"--log-level=loud"},
			want:    []string{`error: logLevel: Unsupported value: "loud": supported values: "info", "debug", "error"`},
		},
		"bad feature gates": {
			content: "featureGates:\n  Fast: true\n  Solid: false\n  Unheard: true\n  Former: false\n",
			want: []string{
				"error: several things are wrong:",
				"- featureGates[Solid]: Invalid value: false: cannot set feature gate Solid to false, feature is locked to true",
				"- featureGates[Unheard]: Invalid value: true: unrecognized feature gate: Unheard",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if tc.content != "" {
				file := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(file, []byte(header+tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config="+file)
			}
			var output bytes.Buffer
			c := example(nil)
			c.Flags = func(flags *pflag.FlagSet) func(*config) {
				level := flags.String("log-level", "", "log level")
				return func(c *config) {
					if *level != "" {
						c.LogLevel = *level
					}
				}
			}
			cmd := c.Command()
			cmd.SetArgs(args)
			cmd.SetErr(&output)
			if err := cmd.ExecuteContext(t.Context()); err == nil {
				t.Error("the command succeeded")
			}
			if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSpace(output.String()), "\n")); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogger(t *testing.T) {
	for name, tc := range map[string]struct {
		level, format string
		want          []string
	}{
		"info leaves out details":  {"info", "json", []string{`"msg":"changed"`, `"msg":"failed"`}},
		"debug has everything":     {"debug", "json", []string{`"msg":"detail"`, `"msg":"changed"`, `"msg":"failed"`}},
		"error has errors only":    {"error", "json", []string{`"msg":"failed"`}},
		"text has tabs in between": {"info", "text", []string{"\tINFO\tchanged\t", "\tERROR\tfailed\t"}},
	} {
		t.Run(name, func(t *testing.T) {
			var output bytes.Buffer
			log := process.NewLogger(&output, tc.level, tc.format)
			log.V(1).Info("detail", "key", "value")
			log.Info("changed", "key", "value")
			log.Error(context.Canceled, "failed", "key", "value")
			lines := strings.Split(strings.TrimSpace(output.String()), "\n")
			if len(lines) != len(tc.want) {
				t.Fatalf("want %d lines, got:\n%s", len(tc.want), &output)
			}
			for i, want := range tc.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d is %s, want %s in it", i, lines[i], want)
				}
			}
		})
	}
}
