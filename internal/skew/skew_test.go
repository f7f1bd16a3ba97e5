package skew

import (
	"testing"

	"github.com/Masterminds/semver/v3"
)

func TestFollow(t *testing.T) {
	for name, tc := range map[string]struct {
		last, own string
		refused   bool
	}{
		"the same":                  {"v1.150.0", "v1.150.0", false},
		"another build of the same": {"v1.150.0-dev", "v1.150.0-abc", false},
		"a release after a build":   {"v1.150.0-dev", "v1.150.0", false},
		"a patch":                   {"v1.150.0", "v1.150.3", false},
		"the next minor version":    {"v1.150.3", "v1.151.0", false},
		"skips a minor version":     {"v1.150.3", "v1.152.0", true},
		"back to a patch":           {"v1.150.3", "v1.150.2", false},
		"back to a minor version":   {"v1.150.3", "v1.149.9", true},
		"the next major version":    {"v1.150.3", "v2.0.0", true},
		"the last one of a major":   {"v2.0.0", "v1.150.3", true},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, Follow(semver.MustParse(tc.last), semver.MustParse(tc.own)), tc.refused)
		})
	}
}

func TestSame(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"two builds":            {"v1.150.0-dev", "1.150.0+abc", true},
		"another patch":         {"v1.150.0", "v1.150.1", false},
		"another minor version": {"v1.150.0", "v1.149.0", false},
		"another major version": {"v1.150.0", "v2.150.0", false},
		"a build without one":   {"v1.150.0", "", true},
		"a chart without one":   {"latest", "v1.150.0", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Same(tc.a, tc.b); got != tc.want {
				t.Errorf("Same() = %t", got)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	for name, tc := range map[string]struct {
		last, next string
		refused    bool
	}{
		"the same":                {"v1.150.0", "v1.150.0", false},
		"back to a patch":         {"v1.150.3", "v1.150.2", false},
		"skips a minor version":   {"v1.148.3", "v1.150.0", false},
		"back to a minor version": {"v1.150.3", "v1.149.9", true},
		"back to a major version": {"v2.0.0", "v1.150.3", true},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, Replace(semver.MustParse(tc.last), semver.MustParse(tc.next)), tc.refused)
		})
	}
}

func TestAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		garden, own   string
		refused, late bool
	}{
		"the same":                 {garden: "v1.150.0-dev", own: "v1.150.0"},
		"a later patch":            {garden: "v1.150.0", own: "v1.150.1"},
		"an earlier patch":         {garden: "v1.150.9", own: "v1.150.1"},
		"a later minor version":    {garden: "v1.150.9", own: "v1.151.0", refused: true},
		"a later major version":    {garden: "v1.150.9", own: "v2.0.0", refused: true},
		"the minor before":         {garden: "v1.151.0", own: "v1.150.4"},
		"two minors before":        {garden: "v1.152.0", own: "v1.150.4", late: true},
		"an earlier major version": {garden: "v2.0.0", own: "v1.150.4", late: true},
	} {
		t.Run(name, func(t *testing.T) {
			garden, own := semver.MustParse(tc.garden), semver.MustParse(tc.own)
			check(t, Agent(garden, own), tc.refused)
			check(t, Late(garden, own), tc.late)
		})
	}
}

func check(t *testing.T, err error, refused bool) {
	t.Helper()
	if (err != nil) != refused {
		t.Errorf("got %v, want an error: %t", err, refused)
	}
}
