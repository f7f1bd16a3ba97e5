package addon

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/test/golden"
)

func values() Values {
	v := Values{
		Images: map[string]string{},
		Pods:   []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, DNS: netip.MustParseAddr("10.2.0.10"), DNSReplicas: 1, Pool: netip.MustParsePrefix("172.30.0.128/28"),
		LocalDNS: []netip.AddrPort{netip.MustParseAddrPort("10.2.0.53:53")}, APIServer: netip.MustParseAddrPort("172.30.0.2:6443"),
	}
	for _, product := range Products() {
		v.Images[product] = "registry.example/" + product + ":v1"
	}
	return v
}

func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

// In a cluster with several zones, DNS is in two of them.
func TestDNSOfZones(t *testing.T) {
	v := values()
	v.DNSReplicas = 2
	objects, err := coreDNS(v)
	if err != nil {
		t.Fatal(err)
	}
	deployment, ok := objects[len(objects)-1].(*appsv1.Deployment)
	if !ok || *deployment.Spec.Replicas != 2 {
		t.Fatalf("the last object is %T, or has not two pods", objects[len(objects)-1])
	}
	want := []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: deployment.Spec.Selector, MinDomains: new(int32(2)),
	}}
	if diff := cmp.Diff(want, deployment.Spec.Template.Spec.TopologySpreadConstraints); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}

func TestObjectsNeedsImages(t *testing.T) {
	for _, product := range Products() {
		v := values()
		delete(v.Images, product)
		if _, err := Objects(v); err == nil {
			t.Errorf("without an image of %q there is no error", product)
		}
	}
}

// Each server is asked for what those before it do not know, and the last one's answer is final.
func TestLocalZone(t *testing.T) {
	const want = `local.gardener.cloud:8053 {
    errors
    forward . 10.2.0.53:53 {
        max_concurrent 1000
        next NXDOMAIN
    }
    forward . 172.30.0.3:30053 {
        max_concurrent 1000
    }
}
`
	got := zone(LocalZone, netip.MustParseAddrPort("10.2.0.53:53"), netip.MustParseAddrPort("172.30.0.3:30053"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("zone (-want +got):\n%s", diff)
	}
}
