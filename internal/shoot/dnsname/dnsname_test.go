package dnsname

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestClosest(t *testing.T) {
	for name, tc := range map[string]struct {
		domain string
		of     []string
		want   string
	}{
		"below one":              {domain: "a.example.com", of: []string{"example.org", "example.com"}, want: "example.com"},
		"the longest":            {domain: "a.b.example.com", of: []string{"example.com", "b.example.com", "com"}, want: "b.example.com"},
		"itself":                 {domain: "example.com", of: []string{"example.com"}, want: "example.com"},
		"no label of the domain": {domain: "myexample.com", of: []string{"example.com"}},
		"above":                  {domain: "com", of: []string{"example.com"}},
		"empty ones":             {domain: "a.example.com", of: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Closest(tc.domain, tc.of); got != tc.want {
				t.Errorf("Closest() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOfLandscape(t *testing.T) {
	const domain = "a.example.com"
	dns := func(providers ...corev1beta1.DNSProvider) *corev1beta1.DNS {
		return &corev1beta1.DNS{Domain: new(domain), Providers: providers}
	}
	for name, tc := range map[string]struct {
		dns  *corev1beta1.DNS
		want string
	}{
		"none":                    {},
		"without providers":       {dns: dns(), want: domain},
		"without a domain":        {dns: &corev1beta1.DNS{}},
		"unmanaged":               {dns: dns(corev1beta1.DNSProvider{Type: new("unmanaged")})},
		"its own provider":        {dns: dns(corev1beta1.DNSProvider{Type: new("x"), Primary: new(true)})},
		"one that may be its own": {dns: dns(corev1beta1.DNSProvider{Type: new("x")})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfLandscape(tc.dns); got != tc.want {
				t.Errorf("OfLandscape() = %q, want %q", got, tc.want)
			}
		})
	}
}
