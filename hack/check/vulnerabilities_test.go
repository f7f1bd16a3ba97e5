package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCalledVulnerabilities(t *testing.T) {
	const output = `{"config": {"scanner_name": "govulncheck"}}
{"osv": {"id": "GO-2026-0001"}}
{"finding": {"osv": "GO-2026-0001", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/a", "version": "v1.1.0"}]}}
{"finding": {"osv": "GO-2026-0001", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/a", "version": "v1.1.0", "package": "example.com/a/b"}]}}
{"finding": {"osv": "GO-2026-0002", "fixed_version": "v1.2.0", "trace": [
  {"module": "example.com/a", "version": "v1.1.0", "package": "example.com/a/b", "function": "Parse"},
  {"module": "gardener.cloud/gardener", "package": "gardener.cloud/gardener/x", "function": "Run"}]}}
{"finding": {"osv": "GO-2026-0002", "trace": [{"module": "example.com/a", "version": "v1.1.0", "package": "example.com/a/b", "function": "Other"}]}}
`
	got, err := calledVulnerabilities(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"GO-2026-0002": "example.com/a/b.Parse of example.com/a@v1.1.0, called by gardener.cloud/gardener/x.Run; fixed in v1.2.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calledVulnerabilities() (-want +got):\n%s", diff)
	}
}

func TestCompareVulnerabilities(t *testing.T) {
	found := map[string]string{"GO-1": "a.B", "GO-2": "c.D"}
	list := []accepted{{ID: "GO-2", Reason: "constant arguments"}, {ID: "GO-3", Reason: "was in use"}}
	want := "GO-1: a.B\nhack/check/vulnerabilities.yaml: GO-3 is not found any more: remove it"
	if diff := cmp.Diff(want, text(compareVulnerabilities(found, list))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if err := compareVulnerabilities(map[string]string{"GO-2": "c.D"}, list[:1]); err != nil {
		t.Errorf("an accepted vulnerability is reported: %v", err)
	}
}

func TestReadAccepted(t *testing.T) {
	if _, err := readAccepted("vulnerabilities.yaml"); err != nil {
		t.Error(err)
	}
	for content, want := range map[string]string{
		"accepted: [{id: GO-1}]":                          "accepted[0]: id and reason are required",
		"accepted: [{id: GO-1, reason: x, until: never}]": `unknown field "until"`,
	} {
		file := filepath.Join(t.TempDir(), "accepted.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readAccepted(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readAccepted(%q): %v", content, err)
		}
	}
}

// A step that could not run says so, and does not look like a success.
func TestSkippedStep(t *testing.T) {
	var out bytes.Buffer
	failed := runSteps(t.Context(), &out, nil, []step{
		{name: "scan", run: func(context.Context, *tree) error { return &skippedError{"no database"} }},
	}, 1)
	if len(failed) > 0 || !strings.HasPrefix(out.String(), "SKIPPED  scan (") || !strings.HasSuffix(out.String(), ")\n      no database\n") {
		t.Errorf("failed: %v; output:\n%s", failed, out.String())
	}
}
