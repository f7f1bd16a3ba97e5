package main

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed excluded.yaml
var excludedYAML []byte

// exclusion excludes conformance tests, with the reason.
type exclusion struct {
	// Tests is a regular expression that their names match.
	Tests string `json:"tests"`
	Why   string `json:"why"`

	pattern *regexp.Regexp
}

func readExclusions() ([]exclusion, error) { return parseExclusions(excludedYAML) }

func parseExclusions(data []byte) ([]exclusion, error) {
	var excluded []exclusion
	if err := yaml.UnmarshalStrict(data, &excluded); err != nil {
		return nil, fmt.Errorf("excluded.yaml: %w", err)
	}
	for i := range excluded {
		e := &excluded[i]
		if e.Tests == "" || e.Why == "" {
			return nil, fmt.Errorf("excluded.yaml: entry %d needs both tests and why", i)
		}
		var err error
		if e.pattern, err = regexp.Compile(e.Tests); err != nil {
			return nil, fmt.Errorf("excluded.yaml: entry %d: %w", i, err)
		}
	}
	return excluded, nil
}

// result is the result of the conformance tests.
type result struct {
	all, passed, unfocused int
	seconds                float64
	failed                 []string
	skipped, excluded      map[string][]string // names by the reason
	stale                  []string            // exclusions that no test matches
}

// readJUnit reads the report of e2e.test, which has all tests, also those that it did not run.
func readJUnit(file string, excluded []exclusion) (result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return result{}, fmt.Errorf("read the report: %w", err)
	}
	return parseJUnit(data, excluded)
}

func parseJUnit(data []byte, excluded []exclusion) (result, error) {
	var report struct {
		Suites []struct {
			Seconds float64 `xml:"time,attr"`
			Cases   []struct {
				Name    string `xml:"name,attr"`
				Status  string `xml:"status,attr"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return result{}, fmt.Errorf("read the report: %w", err)
	}
	r := result{skipped: map[string][]string{}, excluded: map[string][]string{}}
	matched := make([]bool, len(excluded))
	for _, suite := range report.Suites {
		r.seconds += suite.Seconds
		for _, c := range suite.Cases {
			name, isTest := strings.CutPrefix(c.Name, "[It] ")
			if !isTest { // a step before or after all tests
				if c.Status != "passed" {
					r.failed = append(r.failed, c.Name)
				}
				continue
			}
			if !strings.Contains(name, "[Conformance]") {
				continue
			}
			r.all++
			at := slices.IndexFunc(excluded, func(e exclusion) bool { return e.pattern.MatchString(name) })
			if at >= 0 {
				matched[at] = true
			}
			switch {
			case c.Status == "passed":
				r.passed++
			case c.Skipped == nil:
				r.failed = append(r.failed, name)
			case strings.HasPrefix(c.Skipped.Message, "skipped - "):
				why := strings.TrimPrefix(c.Skipped.Message, "skipped - ")
				r.skipped[why] = append(r.skipped[why], name)
			case at >= 0:
				r.excluded[excluded[at].Why] = append(r.excluded[excluded[at].Why], name)
			default:
				r.unfocused++
			}
		}
	}
	for i, e := range excluded {
		if !matched[i] {
			r.stale = append(r.stale, e.Tests)
		}
	}
	return r, nil
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d of %d conformance tests passed in %.0f s, %d failed\n", r.passed, r.all, r.seconds, len(r.failed))
	for _, name := range r.failed {
		fmt.Fprintf(w, "  %s\n", name)
	}
	printReasons(w, "skipped themselves", r.skipped)
	printReasons(w, "are excluded", r.excluded)
	if r.unfocused > 0 {
		fmt.Fprintf(w, "%d do not match -focus\n", r.unfocused)
	}
}

func printReasons(w io.Writer, what string, names map[string][]string) {
	total := 0
	for _, of := range names {
		total += len(of)
	}
	if total == 0 {
		return
	}
	fmt.Fprintf(w, "%d %s\n", total, what)
	for _, why := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(w, "  %d: %s\n", len(names[why]), why)
	}
}

// check returns what is wrong with a successful run: an exclusion that matches no test, or no test that ran.
func (r result) check() error {
	if len(r.stale) > 0 {
		return fmt.Errorf("excluded.yaml: no conformance test matches %q; remove the entries", r.stale)
	}
	if r.passed+len(r.failed) == 0 {
		return fmt.Errorf("no test ran; is there one that matches -focus?")
	}
	return nil
}
