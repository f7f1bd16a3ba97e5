package operator

import (
	"testing"

	"github.com/Masterminds/semver/v3"
)

func TestCheckUpgrade(t *testing.T) {
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
		"back to a patch":           {"v1.150.3", "v1.150.2", true},
		"back to a minor version":   {"v1.150.3", "v1.149.9", true},
		"the next major version":    {"v1.150.3", "v2.0.0", true},
		"the last one of a major":   {"v2.0.0", "v1.150.3", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkUpgrade(semver.MustParse(tc.last), semver.MustParse(tc.own))
			if (err != nil) != tc.refused {
				t.Errorf("checkUpgrade(%s, %s) = %v", tc.last, tc.own, err)
			}
		})
	}
}

func TestWebhookHost(t *testing.T) {
	for name, tc := range map[string]struct {
		mode, url, want string
		refused         bool
	}{
		"by default":    {},
		"a service":     {mode: "service", url: "ignored:1"},
		"a URL":         {mode: "url", url: "10.0.0.1:2750", want: "10.0.0.1:2750"},
		"by a service":  {mode: "url-service", url: "host", want: "host"},
		"without a URL": {mode: "url", refused: true},
		"unknown":       {mode: "magic", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := webhookHost(tc.mode, tc.url)
			if got != tc.want || (err != nil) != tc.refused {
				t.Errorf("webhookHost(%q, %q) = %q, %v", tc.mode, tc.url, got, err)
			}
		})
	}
}
