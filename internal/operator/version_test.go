package operator

import "testing"

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
