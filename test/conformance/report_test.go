package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseJUnit(t *testing.T) {
	const report = `<testsuites><testsuite time="61.5">
<testcase name="[SynchronizedBeforeSuite]" status="passed"/>
<testcase name="[ReportAfterSuite] report" status="failed"><failure>no room</failure></testcase>
<testcase name="[It] Pods run [Conformance]" status="passed"/>
<testcase name="[It] Pods end [Conformance]" status="failed"><failure>it did not</failure></testcase>
<testcase name="[It] Pods wait [Conformance]" status="timedout"><error>too long</error></testcase>
<testcase name="[It] Pods move [Conformance]" status="skipped"><skipped message="skipped - needs 2 nodes"></skipped></testcase>
<testcase name="[It] Pods sing [Conformance]" status="skipped"><skipped message="skipped"></skipped></testcase>
<testcase name="[It] Pods dance [Conformance]" status="skipped"><skipped message="skipped"></skipped></testcase>
<testcase name="[It] Pods dance" status="skipped"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`
	excluded, err := parseExclusions([]byte("- {tests: Pods (sing|hum), why: no voice}\n- {tests: Pods fly, why: no wings}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseJUnit([]byte(report), excluded)
	if err != nil {
		t.Fatal(err)
	}
	want := result{
		all: 6, passed: 1, unfocused: 1, seconds: 61.5,
		failed:   []string{"[ReportAfterSuite] report", "Pods end [Conformance]", "Pods wait [Conformance]"},
		skipped:  map[string][]string{"needs 2 nodes": {"Pods move [Conformance]"}},
		excluded: map[string][]string{"no voice": {"Pods sing [Conformance]"}},
		stale:    []string{"Pods fly"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("parseJUnit() (-want +got):\n%s", diff)
	}
}

func TestExclusions(t *testing.T) {
	if _, err := readExclusions(); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"no reason":       "- {tests: x}",
		"no tests":        "- {why: x}",
		"bad pattern":     "- {tests: '(', why: x}",
		"unknown key":     "- {tests: x, why: x, until: x}",
		"not a list":      "tests: x",
		"bad indentation": "- tests: x\n why: x",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseExclusions([]byte(text)); err == nil {
				t.Errorf("parseExclusions() = %v, want an error", got)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		result result
		want   string
	}{
		"fine":            {result: result{passed: 1}},
		"nothing ran":     {result: result{}, want: "no test ran"},
		"stale exclusion": {result: result{passed: 1, stale: []string{"x"}}, want: `no conformance test matches ["x"]`},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.result.check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("check() = %v, want %q", err, tc.want)
			}
		})
	}
}
