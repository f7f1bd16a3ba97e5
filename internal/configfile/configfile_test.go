package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
)

var kind = configfile.Kind[schedulerconfigv1alpha1.SchedulerConfiguration]{
	AddToScheme: schedulerconfigv1alpha1.AddToScheme,
	Validate: func(config *schedulerconfigv1alpha1.SchedulerConfiguration) field.ErrorList {
		if config.LogLevel == "loud" {
			return field.ErrorList{field.NotSupported(field.NewPath("logLevel"), config.LogLevel, []string{"info"})}
		}
		return nil
	},
}

const header = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"

func TestReadSetsDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(header+"logLevel: debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := kind.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.LogLevel != "debug" || config.LogFormat != "json" || config.Schedulers.Shoot.ConcurrentSyncs != 5 {
		t.Errorf("unexpected configuration: %+v", config)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"an unknown key, naming its path": {header + "schedulers:\n  shoot:\n    concurrentSync: 3\n", `unknown field "schedulers.shoot.concurrentSync"`},
		"a duplicate key":                 {header + "logLevel: info\nlogLevel: debug\n", `key "logLevel" already set`},
		"a value of the wrong type":       {header + "schedulers:\n  shoot:\n    concurrentSyncs: many\n", "concurrentSyncs"},
		"another kind":                    {"apiVersion: v1\nkind: Pod\n", "unexpected kind Pod of v1"},
		"a file without a kind":           {"logLevel: info\n", "Kind"},
		"an invalid value":                {header + "logLevel: loud\n", `logLevel: Unsupported value: "loud"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kind.Decode([]byte(tc.content))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}

func TestReadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(header+"nonsense: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kind.Read(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error does not name the file: %v", err)
	}
	if _, err := kind.Read(""); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("the error does not name the flag: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(header))
	f.Add([]byte("{}"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = kind.Decode(data) // whatever is in the file, it is an error, not a panic
	})
}
