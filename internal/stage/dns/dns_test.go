package dns

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/stage/usercredential"
)

func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		internal, external *Domain
		want               []string
	}{
		"no domain":        {want: []string{"exposure"}},
		"both":             {internal: &Domain{Provider: "local"}, external: &Domain{Provider: "local"}, want: []string{"dnsrecord-external", "dnsrecord-internal", "exposure"}},
		"unmanaged domain": {internal: &Domain{Provider: "local"}, external: &Domain{Provider: "unmanaged"}, want: []string{"dnsrecord-internal", "exposure"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, task := range Tasks(Inputs{Internal: tc.internal, External: tc.external}) {
				got = append(got, task.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// setAddress sets the address of the gateway of the seed. Empty means that it has none.
func setAddress(t *testing.T, clusters *stagetest.Clusters, address string) {
	t.Helper()
	gateway := &gatewayv1.Gateway{}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "gateway", Name: "gateway"}, gateway); err != nil {
		t.Fatal(err)
	}
	gateway.Status.Addresses = nil
	if address != "" {
		gateway.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: address}}
	}
	if err := clusters.Seed.Update(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
}

func TestDNSRecord(t *testing.T) {
	const ipv4, ipv6 = corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6
	for name, tc := range map[string]struct {
		address  string
		families []corev1beta1.IPFamily
		want     extensionsv1alpha1.DNSRecordType
		stack    string
	}{
		"IPv4":                        {address: "10.0.0.1", families: []corev1beta1.IPFamily{ipv4}, want: "A", stack: "ipv4"},
		"IPv6":                        {address: "2001:db8::1", families: []corev1beta1.IPFamily{ipv6}, want: "AAAA", stack: "ipv6"},
		"host name":                   {address: "gateway.example.com", want: "CNAME", stack: "ipv4"},
		"host name with two families": {address: "gateway.example.com", families: []corev1beta1.IPFamily{ipv4, ipv6}, want: "CNAME", stack: "dual-stack"},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			setAddress(t, clusters, tc.address)
			in := Inputs{Run: clusters.Run(), TTL: new(int64(60)), IPFamilies: tc.families, External: &Domain{
				Name: "crazy-botany.dev.example.com", Provider: "local", Zone: new("zone-1"),
				Credentials: usercredential.Credential{Kind: usercredential.Secret, Data: map[string][]byte{"k": []byte("v")}},
			}}
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), "dnsrecord-external"); err != nil {
				t.Fatal(err)
			}
			record := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "crazy-botany-external"}}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "dnsrecord-crazy-botany-external"}}
			for _, object := range []client.Object{record, secret} {
				if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
			}
			want := extensionsv1alpha1.DNSRecordSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Zone: new("zone-1"), TTL: new(int64(60)),
				SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name},
				Name:      "api.crazy-botany.dev.example.com", RecordType: tc.want, Values: []string{tc.address},
			}
			if diff := cmp.Diff(want, record.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"gardener.cloud/role": "controlplane", "role": "external"}, record.Labels); diff != "" {
				t.Errorf("labels, by which extensions find it (-want +got):\n%s", diff)
			}
			if got := record.Annotations["dns.gardener.cloud/ip-stack"]; got != tc.stack {
				t.Errorf("the IP stack is %q, want %q", got, tc.stack)
			}
			if diff := cmp.Diff(in.External.Credentials.Data, secret.Data); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			// A record that has not changed is not sent to the provider again.
			record.UID = "1"
			if err := clusters.Seed.Update(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			requested := record.Annotations["gardener.cloud/timestamp"]
			for _, ttl := range []int64{60, 120} {
				in.TTL = &ttl
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "dnsrecord-external"); err != nil {
					t.Fatal(err)
				}
				if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
					t.Fatal(err)
				}
				if again := record.Annotations["gardener.cloud/timestamp"] != requested; again != (ttl == 120) {
					t.Errorf("with a TTL of %d, it is reconciled again: %v", ttl, again)
				}
			}
		})
	}
}

// What cannot change in a DNSRecord is changed by another one of the same name.
func TestDNSRecordIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		provider, address string
		replaced          bool
	}{
		"the same":                     {provider: "local", address: "10.0.0.1"},
		"another address":              {provider: "local", address: "10.0.0.2"},
		"a host name":                  {provider: "local", address: "gateway.example.com", replaced: true},
		"an address of another family": {provider: "local", address: "2001:db8::1", replaced: true},
		"another provider":             {provider: "other", address: "10.0.0.1", replaced: true},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			record := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "crazy-botany-external"}}
			deploy := func(provider, address string) {
				t.Helper()
				setAddress(t, clusters, address)
				in := Inputs{Run: clusters.Run(), External: &Domain{Name: "crazy-botany.dev.example.com", Provider: provider}}
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "dnsrecord-external"); err != nil {
					t.Fatal(err)
				}
				if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
					t.Fatal(err)
				}
			}
			deploy("local", "10.0.0.1")
			record.UID = "1" // the client has none
			if err := clusters.Seed.Update(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			deploy(tc.provider, tc.address)
			if replaced := record.UID == ""; replaced != tc.replaced {
				t.Errorf("it was replaced: %v, want %v", replaced, tc.replaced)
			}
			if record.Spec.Type != tc.provider || record.Spec.Values[0] != tc.address {
				t.Errorf("the spec is %+v", record.Spec)
			}
		})
	}
}

// Each wait names what is missing.
func TestDNSRecordFails(t *testing.T) {
	for name, tc := range map[string]struct {
		address, kind, want string
	}{
		"gateway without an address":       {kind: usercredential.Secret, want: `Gateway gateway/gateway has no address yet`},
		"WorkloadIdentity without a token": {address: "10.0.0.1", kind: usercredential.WorkloadIdentity, want: `Secret "dnsrecord-crazy-botany-internal" has no token of its WorkloadIdentity yet`},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			setAddress(t, clusters, tc.address)
			in := Inputs{Run: clusters.Run(), Internal: &Domain{Name: "a.example.com", Provider: "local", Credentials: usercredential.Credential{Kind: tc.kind}}}
			err := stagetest.RunTaskUntilIdle(t, Tasks(in), "dnsrecord-internal")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			records := &extensionsv1alpha1.DNSRecordList{}
			if err := clusters.Seed.List(t.Context(), records); err != nil || len(records.Items) > 0 {
				t.Errorf("%d DNSRecords exist (%v)", len(records.Items), err)
			}
		})
	}
}

func TestExposure(t *testing.T) {
	clusters := stagetest.New(t)
	in := Inputs{Run: clusters.Run(), Hosts: []string{"api.b.example.com", "api.a.example.com"}}
	for range 2 {
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), "exposure"); err != nil {
			t.Fatal(err)
		}
		route := &gatewayv1.TLSRoute{}
		if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "kube-apiserver"}, route); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]gatewayv1.Hostname{"api.a.example.com", "api.b.example.com"}, route.Spec.Hostnames); diff != "" {
			t.Errorf("host names (-want +got):\n%s", diff)
		}
	}
}

// A shoot with an ExposureClass has the route and the address of the gateway of its handler.
func TestGatewayOfHandler(t *testing.T) {
	clusters := stagetest.New(t)
	key := client.ObjectKey{Namespace: "istio-ingress-handler-internet", Name: "gateway"}
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	gateway.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: "192.0.2.1"}}
	if err := clusters.Seed.Create(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	in := Inputs{Run: clusters.Run(), Gateway: key, Hosts: []string{"api.a.example.com"}, Internal: &Domain{Name: "a.example.com", Provider: "local"}}
	for _, task := range []string{"exposure", "dnsrecord-internal"} {
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), task); err != nil {
			t.Fatal(err)
		}
	}
	route, record := &gatewayv1.TLSRoute{}, &extensionsv1alpha1.DNSRecord{}
	if err := errors.Join(
		clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "kube-apiserver"}, route),
		clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "crazy-botany-internal"}, record),
	); err != nil {
		t.Fatal(err)
	}
	if parent := route.Spec.ParentRefs[0]; string(*parent.Namespace) != key.Namespace || string(parent.Name) != key.Name {
		t.Errorf("the route is that of Gateway %s/%s", *parent.Namespace, parent.Name)
	}
	if diff := cmp.Diff([]string{"192.0.2.1"}, record.Spec.Values); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// A DNSRecord that has not changed is reconciled if a task of the Shoot requests it, and only that one.
func TestRecordsAreReconciledWhenNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Inputs)
		want   map[string]bool
	}{
		"nothing has changed":           {func(*Inputs) {}, map[string]bool{"internal": false, "external": false}},
		"the internal one is requested": {func(in *Inputs) { in.InternalRequested = true }, map[string]bool{"internal": true, "external": false}},
		"the external one is requested": {func(in *Inputs) { in.ExternalRequested = true }, map[string]bool{"internal": false, "external": true}},
		"the TTL has changed":           {func(in *Inputs) { in.TTL = new(int64(60)) }, map[string]bool{"internal": true, "external": true}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := Inputs{Run: clusters.Run(), Internal: &Domain{Name: "i.example.com", Provider: "local"}, External: &Domain{Name: "e.example.com", Provider: "local"}}
			before := map[string]string{}
			reconcile := func(record string) *extensionsv1alpha1.DNSRecord {
				t.Helper()
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "dnsrecord-"+record); err != nil {
					t.Fatal(err)
				}
				obj := in.Run.DNSRecord(record)
				if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
					t.Fatal(err)
				}
				return obj
			}
			for record := range tc.want {
				obj := reconcile(record)
				obj.UID = "1" // the fake of an API server sets none
				if err := clusters.Seed.Update(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
				before[record] = obj.Annotations[constants.GardenerTimestamp]
			}
			tc.change(&in)
			got := map[string]bool{}
			for record := range tc.want {
				got[record] = reconcile(record).Annotations[constants.GardenerTimestamp] != before[record]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reconciled records (-want +got):\n%s", diff)
			}
		})
	}
}

// Records of a hibernated cluster are deleted, also that of a domain which it no longer has, and if there are none.
func TestDeletion(t *testing.T) {
	clusters := stagetest.New(t)
	run := clusters.Run()
	external := run.DNSRecord("external")
	if err := clusters.Seed.Create(t.Context(), external); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"dnsrecord-external-gone", "dnsrecord-internal-gone"} {
		if err := stagetest.RunTask(t.Context(), t, Deletion(run), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(external), external); !apierrors.IsNotFound(err) {
		t.Errorf("the external DNSRecord still exists (%v)", err)
	}
}
