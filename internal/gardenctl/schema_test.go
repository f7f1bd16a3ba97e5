package gardenctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gardener.cloud/gardener/internal/apiserver/openapi"
)

// The directory and the names of files are what kubeconform and editors are given.
func TestSchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "schemas")
	run := func(options Options) (int, string, string) {
		var out, errOut bytes.Buffer
		options.Program, options.Out, options.ErrOut = Name, &out, &errOut
		return Run(t.Context(), options, []string{"schema", dir}), out.String(), errOut.String()
	}
	if code, _, errOut := run(Options{}); code != 1 || !strings.Contains(errOut, "without the definitions") {
		t.Errorf("without definitions: exit code %d, error %q", code, errOut)
	}
	code, out, errOut := run(Options{Definitions: openapi.GetOpenAPIDefinitions})
	if code != 0 || out != dir+"\n" {
		t.Fatalf("exit code %d, output %q, error %q", code, out, errOut)
	}
	for _, file := range []string{"core.gardener.cloud/shoot_v1beta1.json", "operator.gardener.cloud/garden_v1alpha1.json", "openapi/apis/core.gardener.cloud/v1beta1.json"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !json.Valid(data) {
			t.Errorf("%s is no JSON: %v", file, err)
		}
	}
}
