package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/pkg/flow"
)

// The first reconciliation of a Garden does not fail because kube-proxy does not know the pod of the webhook yet that was deployed a moment ago. What an
// extension reports is not tried again within the run.
func TestWebhookThatWasJustDeployed(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New(`failed calling webhook "validation.extensions.gardener.cloud": dial tcp 10.4.0.7:443: connect: connection refused`))
	for name, tc := range map[string]struct {
		err   error
		fails int
		tries int
		ok    bool
	}{
		"it is reached after some seconds": {err: fmt.Errorf("write BackupBucket: %w", refused), fails: 3, tries: 4, ok: true},
		"it is never reached":              {err: refused, fails: 100, tries: 5},
		"an error of the extension":        {err: errors.New("the account does not exist"), fails: 1, tries: 1},
		"another error of the API server":  {err: apierrors.NewInternalError(errors.New("no leader")), fails: 1, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				f, err := flow.New("test", awaitExtension(time.Minute, "backup-bucket", "Waiting", func(context.Context) error {
					if tries++; tries > tc.fails {
						return nil
					}
					return tc.err
				}))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Run(t.Context(), flow.Options{}); (err == nil) != tc.ok || tries != tc.tries {
					t.Errorf("error %v after %d tries, want %d", err, tries, tc.tries)
				}
			})
		})
	}
}

func TestRecords(t *testing.T) {
	providers := &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{
		{Name: "first", Type: "local", SecretRef: corev1.LocalObjectReference{Name: "a"}},
		{Name: "second", Type: "remote", SecretRef: corev1.LocalObjectReference{Name: "b"}},
	}}
	discovery := func(domain *operatorv1alpha1.DNSDomain) func(*operatorv1alpha1.Garden) {
		return func(g *operatorv1alpha1.Garden) {
			g.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{Domain: domain}
		}
	}
	plain := map[string]string{
		"api-garden-example-com-local": "api.garden.example.com", "gardener-garden-example-com-local": "gardener.garden.example.com",
		"wildcard-ingress-example-com-local": "*.ingress.example.com",
	}
	and := func(name, host string) map[string]string {
		all := map[string]string{name: host}
		for k, v := range plain {
			all[k] = v
		}
		return all
	}
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Garden)
		want   map[string]string
		err    string
	}{
		"without providers":             {change: func(g *operatorv1alpha1.Garden) { g.Spec.DNS = nil }, want: map[string]string{}},
		"the first provider by default": {change: func(*operatorv1alpha1.Garden) {}, want: plain},
		"another provider": {change: func(g *operatorv1alpha1.Garden) {
			g.Spec.VirtualCluster.DNS.Domains[0].Provider = new("second")
		}, want: map[string]string{
			"api-garden-example-com-remote": "api.garden.example.com", "gardener-garden-example-com-remote": "gardener.garden.example.com",
			"wildcard-ingress-example-com-local": "*.ingress.example.com",
		}},
		"a second domain, in another DNS service": {change: func(g *operatorv1alpha1.Garden) {
			g.Spec.VirtualCluster.DNS.Domains = append(g.Spec.VirtualCluster.DNS.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com", Provider: new("second")})
		}, want: map[string]string{
			"api-garden-example-com-local": "api.garden.example.com", "gardener-garden-example-com-local": "gardener.garden.example.com",
			"api-second-example-com-remote": "api.second.example.com", "gardener-second-example-com-remote": "gardener.second.example.com",
			"wildcard-ingress-example-com-local": "*.ingress.example.com",
		}},
		"the default domain of gardener-discovery-server": {change: discovery(nil), want: plain},
		"a domain of gardener-discovery-server that the wildcard covers": {
			change: discovery(&operatorv1alpha1.DNSDomain{Name: "d.ingress.example.com"}), want: plain,
		},
		"a domain of gardener-discovery-server two levels below": {
			change: discovery(&operatorv1alpha1.DNSDomain{Name: "d.e.ingress.example.com"}), want: and("d-e-ingress-example-com-local", "d.e.ingress.example.com"),
		},
		"another domain of gardener-discovery-server": {
			change: discovery(&operatorv1alpha1.DNSDomain{Name: "d.example.com", Provider: new("second")}), want: and("d-example-com-remote", "d.example.com"),
		},
		"an unknown provider": {
			change: discovery(&operatorv1alpha1.DNSDomain{Name: "d.example.com", Provider: new("third")}),
			err:    `domain "d.example.com" names DNS provider "third", which is not in spec.dns.providers`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			garden := plainGarden()
			garden.Spec.DNS = providers
			tc.change(garden)
			list, err := records(garden)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, r := range list {
				got[r.name()] = r.host
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// The gateway routes the names of all domains, and those for which the kube-apiserver has another certificate.
func TestExposure(t *testing.T) {
	garden := plainGarden()
	v := &garden.Spec.VirtualCluster
	v.DNS.Domains = append(v.DNS.Domains, operatorv1alpha1.DNSDomain{Name: "second.example.com"})
	v.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{SNI: &operatorv1alpha1.SNI{DomainPatterns: []string{"kube.example.org", "*.kube.example.org"}}}
	s, err := newLandscape(t).observe(t.Context(), garden)
	if err != nil {
		t.Fatal(err)
	}
	route := s.exposure()[0].(*gatewayv1.TLSRoute)
	if diff := cmp.Diff([]gatewayv1.Hostname{
		"*.kube.example.org", "api.garden.example.com", "api.second.example.com", "gardener.garden.example.com", "gardener.second.example.com", "kube.example.org",
	}, route.Spec.Hostnames); diff != "" {
		t.Errorf("names of the route (-want +got):\n%s", diff)
	}
}

// A DNSRecord has the address of the gateway, and the configuration and the Secret of its provider. Those of former domains are deleted, others stay.
func TestDNSRecords(t *testing.T) {
	l := newLandscape(t)
	garden := plainGarden()
	garden.Spec.DNS = &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{{Type: "local", SecretRef: corev1.LocalObjectReference{Name: "dns"}}}}
	garden.Spec.RuntimeCluster.Networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}
	record := func(name string, labels map[string]string) *extensionsv1alpha1.DNSRecord {
		return &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: labels}}
	}
	create(t, l.runtime, record("api-former-local", map[string]string{"origin": "gardener-operator"}), record("of-a-user", nil))
	s, err := l.observe(t.Context(), garden)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range s.dnsRecordTasks() {
		if err := task.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list := &extensionsv1alpha1.DNSRecordList{}
	if err := l.runtime.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	got := map[string]extensionsv1alpha1.DNSRecordSpec{}
	for _, r := range list.Items {
		got[r.Name] = r.Spec
		if stack := r.Annotations["dns.gardener.cloud/ip-stack"]; r.Name != "of-a-user" && stack != "dual-stack" {
			t.Errorf("%s has the IP stack %q", r.Name, stack)
		}
	}
	want := map[string]extensionsv1alpha1.DNSRecordSpec{"of-a-user": {}}
	for name, host := range map[string]string{
		"api-garden-example-com-local": "api.garden.example.com", "gardener-garden-example-com-local": "gardener.garden.example.com",
		"wildcard-ingress-example-com-local": "*.ingress.example.com",
	} {
		want[name] = extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local", Class: new(extensionsv1alpha1.ExtensionClassGarden)},
			SecretRef:   corev1.SecretReference{Namespace: "garden", Name: "dns"},
			Name:        host, RecordType: extensionsv1alpha1.DNSRecordTypeA, Values: []string{"10.0.0.1"}, TTL: new(int64(120)),
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DNSRecords (-want +got):\n%s", diff)
	}
}

// With other credentials in the same Secret, bucket and entry are reconciled: etcd uses a copy. Without a change they are not.
func TestBackupCredentials(t *testing.T) {
	l := newLandscape(t)
	garden := plainGarden()
	garden.Spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{
		Provider: "local", SecretRef: corev1.LocalObjectReference{Name: "backup"},
	}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"key": []byte("old")}}
	create(t, l.runtime, secret)
	requested := func() [2]string {
		t.Helper()
		s, err := l.observe(t.Context(), garden)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range s.backupTasks() {
			if err := task.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var times [2]string
		for i, object := range []client.Object{s.bucket(), s.entry()} {
			if err := l.runtime.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			object.SetUID("uid") // a fake cluster gives none
			if err := l.runtime.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			times[i] = object.GetAnnotations()[constants.GardenerTimestamp]
		}
		return times
	}
	first := requested()
	if second := requested(); second != first {
		t.Errorf("reconciled without a change: %v, before %v", second, first)
	}
	secret.Data["key"] = []byte("new")
	if err := l.runtime.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if third := requested(); third[0] == first[0] || third[1] == first[1] {
		t.Errorf("not reconciled with other credentials: %v, before %v", third, first)
	} else {
		first = third
	}
	// The extension may have to renew credentials that it has generated.
	l.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(13 * time.Hour))
	if fourth := requested(); fourth[0] == first[0] || fourth[1] != first[1] {
		t.Errorf("after half a day, reconciled are %v, before %v; want only the bucket", fourth, first)
	}
}
