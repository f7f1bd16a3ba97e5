package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The help has every component with a description.
func TestHelp(t *testing.T) {
	var out strings.Builder
	if err := help(&out); err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(out.String(), "\nComponents:\n")
	var names []string
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			t.Errorf("%q has no description", line)
			continue
		}
		names = append(names, fields[0])
	}
	if !slices.IsSorted(names) || len(names) != len(commands) {
		t.Errorf("the help lists %v, want all %d components in order", names, len(commands))
	}
}

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		argv []string
		want string
		args []string
	}{
		"the first argument":  {[]string{"/bin/gardener", "gardenlet", "--help"}, "gardenlet", []string{"--help"}},
		"by its name":         {[]string{"/bin/gardenlet", "--config=c"}, "gardenlet", []string{"--config=c"}},
		"nothing":             {[]string{"gardener"}, "", nil},
		"a flag":              {[]string{"gardener", "-h"}, "-h", []string{}},
		"an unknown one":      {[]string{"gardener", "gardenlett", "x"}, "gardenlett", []string{"x"}},
		"help of a component": {[]string{"gardenlet", "help"}, "gardenlet", []string{"help"}},
	} {
		t.Run(name, func(t *testing.T) {
			component, args := choose(tc.argv)
			if component != tc.want {
				t.Errorf("choose() = %q, want %q", component, tc.want)
			}
			if diff := cmp.Diff(tc.args, args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}
