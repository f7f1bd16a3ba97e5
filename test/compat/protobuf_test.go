package compat

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What a generated.proto consists of: messages, and their fields with label, type and number.
var (
	protoMessage = regexp.MustCompile(`^message (\w+) \{`)
	protoField   = regexp.MustCompile(`^  (?:(optional|repeated) )?(map<[^>]+>|\S+) (\w+) = (\d+);`)
)

// readProto parses a generated.proto into message -> field -> "NUMBER LABEL TYPE", as in protobuf.yaml.
func readProto(t *testing.T, pkg string) map[string]map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "api", filepath.FromSlash(pkg), "generated.proto"))
	if err != nil {
		t.Fatal(err)
	}
	out, message := map[string]map[string]string{}, ""
	for _, line := range strings.Split(string(data), "\n") {
		if m := protoMessage.FindStringSubmatch(line); m != nil {
			message = m[1]
			out[message] = map[string]string{}
		} else if m := protoField.FindStringSubmatch(line); m != nil {
			value := m[4]
			if m[1] != "" {
				value += " " + m[1]
			}
			out[message][m[3]] = value + " " + strings.ReplaceAll(strings.TrimPrefix(m[2], "."), " .", " ")
		}
	}
	return out
}

// TestProtobufNumbers compares the generated messages with the numbers and types that clients use. Names of messages and
// packages do not travel, but fields are compared by message, so that a difference is easy to find.
func TestProtobufNumbers(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "protobuf.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Packages map[string]map[string]map[string]string `json:"packages"`
	}
	if err := yaml.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	// Messages that nothing refers to: they never travel.
	unused := map[string]string{"ShootKubeconfigRotation": "the static token kubeconfig is gone, and its status field with it"}
	// What the documents have beyond the facts, with the numbers it had.
	more := map[string]string{"KubeAPIServerConfig.oidcConfig": "5 optional OIDCConfig"}

	home := regexp.MustCompile(`gardener\.cloud\.gardener\.api\.(\w+)\.(\w+)\.`)
	for _, g := range groups {
		if g.protobuf == "" {
			continue
		}
		t.Run(g.pkg, func(t *testing.T) {
			got := readProto(t, g.pkg)
			var messages, fields int
			for message, want := range facts.Packages[g.protobuf] {
				have, ok := got[message]
				if !ok {
					if unused[message] == "" {
						t.Errorf("message %s is missing", message)
					}
					continue
				}
				messages++
				for field, value := range want {
					fields++
					if got := home.ReplaceAllString(have[field], "github.com.gardener.gardener.pkg.apis.$1.$2."); got != value {
						t.Errorf("%s.%s is %q instead of %q", message, field, got, value)
					}
					delete(have, field)
				}
				for field, value := range have {
					if more[message+"."+field] != value {
						t.Errorf("%s.%s = %s is extra", message, field, value)
					}
				}
			}
			t.Logf("%d messages with %d fields have the expected numbers and types", messages, fields)
		})
	}
}

// TestProtobufIsGenerated makes sure that every registered kind can be marshalled in protobuf where the group has it.
func TestProtobufIsGenerated(t *testing.T) {
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal([]byte) error
	}
	want := reflect.TypeFor[message]()
	for _, g := range groups {
		if !g.hasProtobuf() {
			continue
		}
		for kind, typ := range g.kinds() {
			if !reflect.PointerTo(typ).Implements(want) {
				t.Errorf("%s %s has no generated protobuf code", g.pkg, kind)
			}
		}
	}
}
