package dnsserver

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func want(name string, typ extensionsv1alpha1.DNSRecordType, values ...string) *extensionsv1alpha1.DNSRecordSpec {
	return &extensionsv1alpha1.DNSRecordSpec{Name: name, RecordType: typ, Values: values}
}

func TestServer(t *testing.T) {
	zones := New([]string{"local.example", "example.org."})
	long := strings.Repeat("x", 300)
	many := want("many.local.example", "A")
	for i := range 100 {
		many.Values = append(many.Values, "10.0.1."+string("0123456789"[i%10])+string("0123456789"[i/10]))
	}
	many.Values = slices.DeleteFunc(many.Values, func(v string) bool { return strings.HasPrefix(v, "10.0.1.0") })
	short := want("short.local.example", "A", "10.0.0.9")
	short.TTL = new(int64(7))
	for caller, spec := range map[string]*extensionsv1alpha1.DNSRecordSpec{
		"a": want("API.local.example", "A", "10.0.0.2", "10.0.0.1"), "a2": want("api.local.example.", "A", "10.0.0.1", "10.0.0.3"),
		"aaaa": want("api.local.example", "AAAA", "fd00::1"), "alias": want("alias.local.example", "CNAME", "api.local.example"),
		"away": want("away.local.example", "CNAME", "www.example.com"), "loop": want("loop.local.example", "CNAME", "loop.local.example"),
		"txt": want("txt.local.example", "TXT", "b", long), "wild": want("*.ingress.local.example", "A", "10.0.0.4"),
		"deep": want("x.deep.ingress.local.example", "A", "10.0.0.5"), "many": many, "short": short,
		"gone": want("gone.local.example", "A", "10.0.0.6"),
	} {
		if errs := zones.Set(caller, spec); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	zones.Remove("gone")
	zones.Remove("never")
	server, err := Listen(t.Context(), "127.0.0.1:0", zones)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for name, tc := range map[string]struct {
		network, name string
		typ           uint16
		code          int
		want          []string
	}{
		"what several want":         {"udp", "api.local.example.", dns.TypeA, dns.RcodeSuccess, []string{"api.local.example. 120 A 10.0.0.1", "api.local.example. 120 A 10.0.0.2", "api.local.example. 120 A 10.0.0.3"}},
		"any case":                  {"tcp", "Api.Local.Example.", dns.TypeAAAA, dns.RcodeSuccess, []string{"api.local.example. 120 AAAA fd00::1"}},
		"a TTL":                     {"udp", "short.local.example.", dns.TypeA, dns.RcodeSuccess, []string{"short.local.example. 7 A 10.0.0.9"}},
		"an alias":                  {"udp", "alias.local.example.", dns.TypeAAAA, dns.RcodeSuccess, []string{"alias.local.example. 120 CNAME api.local.example.", "api.local.example. 120 AAAA fd00::1"}},
		"the alias itself":          {"udp", "alias.local.example.", dns.TypeCNAME, dns.RcodeSuccess, []string{"alias.local.example. 120 CNAME api.local.example."}},
		"an alias of another zone":  {"udp", "away.local.example.", dns.TypeA, dns.RcodeSuccess, []string{"away.local.example. 120 CNAME www.example.com."}},
		"an alias of itself":        {"udp", "loop.local.example.", dns.TypeA, dns.RcodeSuccess, []string{"loop.local.example. 120 CNAME loop.local.example."}},
		"texts":                     {"tcp", "txt.local.example.", dns.TypeTXT, dns.RcodeSuccess, []string{`txt.local.example. 120 TXT "b"`, `txt.local.example. 120 TXT "` + long[:255] + `" "` + long[255:] + `"`}},
		"no record of the type":     {"udp", "short.local.example.", dns.TypeAAAA, dns.RcodeSuccess, nil},
		"only others below":         {"udp", "ingress.local.example.", dns.TypeA, dns.RcodeSuccess, nil},
		"a wildcard":                {"udp", "a.b.ingress.local.example.", dns.TypeA, dns.RcodeSuccess, []string{"a.b.ingress.local.example. 120 A 10.0.0.4"}},
		"not covered by a wildcard": {"udp", "y.deep.ingress.local.example.", dns.TypeA, dns.RcodeNameError, nil},
		"removed":                   {"udp", "gone.local.example.", dns.TypeA, dns.RcodeNameError, nil},
		"an empty zone":             {"udp", "example.org.", dns.TypeA, dns.RcodeSuccess, nil},
		"another zone":              {"udp", "example.com.", dns.TypeA, dns.RcodeRefused, nil},
	} {
		t.Run(name, func(t *testing.T) {
			query := new(dns.Msg).SetQuestion(tc.name, tc.typ)
			response, _, err := (&dns.Client{Net: tc.network}).ExchangeContext(t.Context(), query, server.Address())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, rr := range response.Answer {
				got = append(got, strings.Join(strings.Split(strings.Replace(rr.String(), "\tIN", "", 1), "\t"), " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || response.Rcode != tc.code {
				t.Errorf("answer %s (-want +got):\n%s", dns.RcodeToString[response.Rcode], diff)
			}
		})
	}
	t.Run("what does not fit into a packet", func(t *testing.T) {
		query := new(dns.Msg).SetQuestion("many.local.example.", dns.TypeA)
		response, _, err := new(dns.Client).ExchangeContext(t.Context(), query, server.Address())
		if err != nil || !response.Truncated {
			t.Errorf("over UDP: %v, %v", response, err)
		}
		if response, _, err = (&dns.Client{Net: "tcp"}).ExchangeContext(t.Context(), query, server.Address()); err != nil || len(response.Answer) != len(many.Values) {
			t.Errorf("over TCP: %v, %v", response, err)
		}
	})
}

func TestSetRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		spec *extensionsv1alpha1.DNSRecordSpec
		want []string
	}{
		"another zone":         {want("example.com", "A", "10.0.0.1"), []string{"spec.name"}},
		"no name":              {want("..", "A", "10.0.0.1"), []string{"spec.name", "spec.name"}},
		"no value":             {want("a.example.org", "A"), []string{"spec.values"}},
		"not of the type":      {want("a.example.org", "A", "10.0.0.1", "fd00::1", "b"), []string{"spec.values[1]", "spec.values[2]"}},
		"not of the other one": {want("a.example.org", "AAAA", "10.0.0.1"), []string{"spec.values[0]"}},
		"two aliases":          {want("a.example.org", "CNAME", "b.", "c."), []string{"spec.values"}},
		"no alias":             {want("a.example.org", "CNAME", ".."), []string{"spec.values[0]"}},
		"no type":              {want("a.example.org", "MX", "b"), []string{"spec.values[0]"}},
		"too long":             {&extensionsv1alpha1.DNSRecordSpec{Name: "a.example.org", RecordType: "A", Values: []string{"10.0.0.1"}, TTL: new(int64(-1))}, []string{"spec.ttl"}},
	} {
		t.Run(name, func(t *testing.T) {
			zones := New([]string{"example.org"})
			var got []string
			for _, err := range zones.Set("a", tc.spec) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Set() (-want +got):\n%s", diff)
			}
			if _, exists := zones.Lookup("a.example.org", dns.TypeA); exists {
				t.Error("the name exists")
			}
		})
	}
}
