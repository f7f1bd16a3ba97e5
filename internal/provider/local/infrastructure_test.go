package local

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/extension"
)

func newInfrastructure() *extensionsv1alpha1.Infrastructure {
	return &extensionsv1alpha1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crazy"},
		Spec:       extensionsv1alpha1.InfrastructureSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: Type}, SecretRef: credentials},
	}
}

// ofSeed is the Cluster of a shoot.
func ofSeed() *extension.Cluster {
	return &extension.Cluster{
		Seed: &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Networks: corev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16", Nodes: new("172.30.0.0/24")}}},
	}
}

func TestNodesOfInfrastructure(t *testing.T) {
	reported := &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{"10.1.0.0/16"}}
	other := target{place: place{Server: "https://other.example"}}
	named := func(nodes string) target { return target{place: other.place, nodes: nodes} }
	for name, tc := range map[string]struct {
		asked   *string
		before  *extensionsv1alpha1.InfrastructureStatusNetworking
		state   []string
		at      target
		want    string
		refused string
	}{
		"no nodes":             {at: target{inSeed: true}, want: "10.1.0.0/16"},
		"those that there are": {asked: new("10.1.0.0/16"), at: target{inSeed: true}, want: "10.1.0.0/16"},
		"other nodes": {
			asked: new("10.0.0.0/16"), at: target{inSeed: true},
			refused: `spec.networking.nodes: Invalid value: "10.0.0.0/16": leave it out: machines are pods of the seed, whose network is 10.1.0.0/16`,
		},
		"other nodes, and there are machines":        {asked: new("10.0.0.0/16"), before: reported, want: "10.1.0.0/16"},
		"other nodes, in another cluster":            {asked: new("10.0.0.0/16"), at: other, want: "10.0.0.0/16"},
		"the cluster of the seed, with a kubeconfig": {at: target{place: other.place, inSeed: true, nodes: "10.9.0.0/16"}, want: "10.1.0.0/16"},
		"no nodes, in another cluster": {
			at: other,
			refused: `spec.networking.nodes: Required value: machines are pods of another cluster than the seed's: name their network here, or in the key "nodes" ` +
				`of the credentials`,
		},
		"no nodes, in another cluster, and there are machines": {before: reported, at: other, want: "10.1.0.0/16"},
		"those of the credentials":                             {at: named("10.9.0.0/16"), want: "10.9.0.0/16"},
		"other ones than those of the credentials":             {asked: new("10.0.0.0/16"), at: named("10.9.0.0/16"), want: "10.0.0.0/16"},
		"credentials with the network of the seed's pods": {
			at: named("10.1.9.0/24"), refused: `credentials: data[nodes]: Invalid value: "10.1.9.0/24": must not overlap with pods of the seed (10.1.0.0/16)`,
		},
		"credentials without a network": {
			at: named("10.9.0.0"), refused: `credentials: data[nodes]: Invalid value: "10.9.0.0": must be a network in CIDR notation, such as 10.0.0.0/8`,
		},
		"those of the seed that it came from":        {asked: new("10.0.0.0/16"), state: []string{"10.0.0.0/16"}, at: other, want: "10.0.0.0/16"},
		"those of the former seed, not in the Shoot": {state: []string{"10.0.0.0/16"}, want: "10.0.0.0/16"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &extension.Cluster{
				Seed:  &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Networks: corev1beta1.SeedNetworks{Pods: "10.1.0.0/16"}}},
				Shoot: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Networking: &corev1beta1.Networking{Nodes: tc.asked}}},
			}
			infrastructure := newInfrastructure()
			infrastructure.Status.Networking = tc.before
			got, err := nodesOf(infrastructure, &infrastructureState{Nodes: tc.state}, cluster, &tc.at)
			if tc.refused != "" {
				if err == nil || err.Error() != tc.refused || !isConfigurationProblem(err) {
					t.Errorf("nodesOf() is %v, want %s", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// A dual-stack shoot has IPv6 ranges that stay, also when it becomes dual-stack later.
func TestIPv6OfInfrastructure(t *testing.T) {
	families := []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}
	cluster := ofSeed()
	cluster.Shoot = &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Networking: &corev1beta1.Networking{
		IPFamilies: families[:1], Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16"),
	}}}
	a, infrastructure := infrastructuresIn(newSeed(t, "")), newInfrastructure()
	infrastructure.UID = "1"
	reconcile := func() error { return a.Reconcile(t.Context(), infrastructure, cluster) }
	if err := reconcile(); err != nil || len(infrastructure.Status.Networking.Pods) > 0 {
		t.Fatalf("with one family: %v, %v", infrastructure.Status.Networking, err)
	}
	cluster.Shoot.Spec.Networking.IPFamilies = families
	if err := reconcile(); err == nil || !strings.HasPrefix(err.Error(), "spec.networking.ipFamilies[1]: ") || !isConfigurationProblem(err) {
		t.Errorf("without a network of machines: %v", err)
	}
	a.config.IPv6Network = "fd00:10::/32"
	if err := reconcile(); err != nil {
		t.Fatal(err)
	}
	want := &extensionsv1alpha1.InfrastructureStatusNetworking{
		Nodes: []string{"10.1.0.0/16", "fd00:10::/32"},
		Pods:  []string{"10.3.0.0/16", "fd6b:86b2:73ff::/52"}, Services: []string{"10.4.0.0/16", "fd6b:86b2:73ff:ffff::/108"},
	}
	if diff := cmp.Diff(want, infrastructure.Status.Networking); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	infrastructure.UID, a.config.IPv6Network = "2", "" // it has moved to another seed
	if err := reconcile(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, infrastructure.Status.Networking); diff != "" {
		t.Errorf("networks after a move (-want +got):\n%s", diff)
	}
}

// An IPv6 network in credentials, which may have been written before they were checked or without the webhook, is checked like one in the spec of a Shoot.
func TestIPv6NodesOfCredentials(t *testing.T) {
	for nodes, refused := range map[string]string{
		"fd00:9::/32": "", "10.9.0.0/16": "must be an IPv4 network", "x": "must be a network in CIDR notation",
		"fd00:1:2::/48": "must not overlap with pods of the seed", "::/0": "must not overlap with pods of the seed", "fd80::/9": "must not overlap with the network of the VPN",
	} {
		a, state := &infrastructures{}, &infrastructureState{Nodes: []string{"10.9.0.0/16"}}
		err := a.addIPv6(newInfrastructure(), state, &target{nodesIPv6: nodes}, &corev1beta1.SeedNetworks{Pods: "fd00:1::/32", Services: "fd00:2::/108"})
		if refused == "" && err == nil {
			continue
		}
		if refused == "" || err == nil || !strings.Contains(err.Error(), refused) || !isConfigurationProblem(err) {
			t.Errorf("%q: %v, want an error with %q", nodes, err, refused)
		}
	}
}

// Machines in another cluster have what the credentials name.
func TestNodesOfCredentials(t *testing.T) {
	for nodes, valid := range map[string]bool{
		"": true, "10.9.0.0/16": true, "10.9.0.0/16,fd00:10::/32": true,
		"fd00:10::/32": false, "10.9.0.0/16,": false, ",fd00:10::/32": false, "10.9.0.0/16,10.8.0.0/16": false, "10.9.0.0/16,fd00:10::/32,fd00:11::/32": false,
	} {
		err := checkSecret(t.Context(), &corev1.Secret{Data: map[string][]byte{"nodes": []byte(nodes)}}, nil)
		if (err == nil) != valid {
			t.Errorf("%q: %v", nodes, err)
		}
	}
}

// The namespace of the machines is deleted with the shoot.
func TestInfrastructure(t *testing.T) {
	seed := newSeed(t, "")
	a, infrastructure := infrastructuresIn(seed), newInfrastructure()
	if err := a.Reconcile(t.Context(), infrastructure, ofSeed()); err != nil {
		t.Fatal(err)
	}
	machines := &corev1.Namespace{}
	key := client.ObjectKey{Name: "infra-shoot--dev--crazy"}
	if err := seed.Get(t.Context(), key, machines); err != nil || machines.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("namespace %v, %v", machines, err)
	}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: key.Name, Name: "machines"}, &networkingv1.NetworkPolicy{}); err != nil {
		t.Error(err)
	}
	if got := string(infrastructure.Status.State.Raw); got != `{"nodes":["10.1.0.0/16"],"place":{"uid":"seed"}}` {
		t.Errorf("state is %s", got)
	}
	waits(t, a.Delete(t.Context(), infrastructure, nil), `Namespace "infra-shoot--dev--crazy" is being deleted`)
	if err := a.Delete(t.Context(), infrastructure, nil); err != nil {
		t.Error(err)
	}
	if err := seed.Get(t.Context(), key, machines); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace still exists: %v", err)
	}
	if err := a.Reconcile(t.Context(), infrastructure, nil); err == nil {
		t.Error("it is reconciled without the networks of the seed, and machines might reach them")
	}
}

func TestInvalidKubeconfig(t *testing.T) {
	seed := newSeed(t, "kind: Config\nusers: [{name: a, user: {exec: {command: sh, apiVersion: v1}}}]")
	a := infrastructuresIn(seed)
	a.connect = connectTo(seed.Scheme(), destination.Host)
	for name, err := range map[string]error{
		"reconcile": a.Reconcile(t.Context(), newInfrastructure(), ofSeed()), "delete": a.Delete(t.Context(), newInfrastructure(), nil),
	} {
		if !isConfigurationProblem(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.ForceDelete(t.Context(), newInfrastructure(), nil); err != nil {
		t.Errorf("force-delete: %v", err)
	}
}
