package certificate

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/operator/webhook/configuration"
)

// bundle returns the CA bundle in the webhook configurations.
func bundle(t *testing.T, c client.Client) []byte {
	t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: configuration.Name}, config); err != nil {
		t.Fatal(err)
	}
	return config.Webhooks[0].ClientConfig.CABundle
}

// trusted checks that the API server trusts what a server serves at a time.
func trusted(t *testing.T, s *Server, ca []byte, host string, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	pair, err := s.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now}); err != nil {
		t.Errorf("at %s: %v", now, err)
	}
}

func TestRenewal(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakePassiveClock(start)
	c := fake.NewClientBuilder().Build()
	leader, other := NewServer(Values{RuntimeAPI: c, Clock: clk}), NewServer(Values{RuntimeAPI: c, Clock: clk})
	if _, err := leader.GetCertificate(nil); err == nil {
		t.Error("there is a certificate before it was obtained")
	}
	for _, s := range []*Server{leader, other} {
		if err := s.Obtain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := leader.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	const host = "gardener-operator.garden.svc"
	first := bundle(t, c)
	trusted(t, leader, first, host, start)
	trusted(t, other, first, host, start)

	// For two months: whatever replica is asked, with the last bundle, before and after it was renewed.
	renewed, last := 0, first
	for now := start; now.Before(start.Add(60 * 24 * time.Hour)); now = now.Add(checkAgain) {
		clk.SetTime(now)
		trusted(t, other, last, host, now)
		if err := leader.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		ca := bundle(t, c)
		trusted(t, leader, last, host, now) // the API server may not have the new one yet
		trusted(t, leader, ca, host, now)
		trusted(t, other, ca, host, now)
		if err := other.load(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		trusted(t, other, ca, host, now)
		if !bytes.Equal(ca, last) {
			renewed++
		}
		last = ca
	}
	if renewed != 4 { // twice each time: with the new one, and without the old one
		t.Errorf("the CA bundle has changed %d times in two months, want 4", renewed)
	}
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 5 {
		t.Errorf("%d Secrets are left", len(list.Items))
	}
}

// A process that was away for so long that the CA has expired, or is about to, serves what API servers trust as soon as it is back.
func TestRenewalAfterAnAbsence(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, away := range map[string]time.Duration{"expired for a day": validity + 24*time.Hour, "expires in an hour": validity - time.Hour} {
		t.Run(name, func(t *testing.T) {
			clk, c := clocktesting.NewFakePassiveClock(start), fake.NewClientBuilder().Build()
			if err := NewServer(Values{RuntimeAPI: c, Clock: clk}).Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			back := start.Add(away)
			clk.SetTime(back)
			s := NewServer(Values{RuntimeAPI: c, Clock: clk})
			if err := s.Obtain(t.Context()); err != nil {
				t.Fatal(err)
			}
			for now := back; now.Before(back.Add(3 * 24 * time.Hour)); now = now.Add(checkAgain) {
				clk.SetTime(now)
				if err := s.Apply(t.Context()); err != nil {
					t.Fatal(err)
				}
				trusted(t, s, bundle(t, c), "gardener-operator.garden.svc", now)
				trusted(t, s, bundle(t, c), "gardener-operator.garden.svc", now.Add(checkAgain)) // until it is checked again
			}
		})
	}
}

func TestHosts(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Now())
	for host, name := range map[string]string{"": "gardener-operator.garden.svc", "10.0.0.1:2750": "10.0.0.1", "host.example:2750": "host.example", "[::1]:1": "::1"} {
		c := fake.NewClientBuilder().Build()
		s := NewServer(Values{RuntimeAPI: c, Host: host, Clock: clk})
		if err := s.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		trusted(t, s, bundle(t, c), name, clk.Now())
	}
}
