package landscape

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gardener.cloud/gardener/landscape/host"
)

func TestPlan(t *testing.T) {
	one := []Cluster{{Name: "runtime", Version: "v1.36.3", Machines: []Machine{{"runtime-0", 0, 0}}}}
	two := append(slices.Clone(one), Cluster{Name: "local-2", Number: 1, Version: "v1.36.3", Machines: []Machine{{"local-2-0", 1, 0}}, Seed: true})
	three := []Cluster{{Name: "runtime", Version: "v1.36.3", Machines: []Machine{{"runtime-0", 0, 0}, {"runtime-1", 1, 0}, {"runtime-2", 2, 0}}}}
	machines := func(zones ...int) []Cluster {
		cluster := Cluster{Name: "runtime", Version: "v1.36.3"}
		for i, zone := range zones {
			cluster.Machines = append(cluster.Machines, Machine{fmt.Sprintf("runtime-%d", i), i, zone})
		}
		return []Cluster{cluster}
	}
	zoned := func(machines, zones int) UpOptions {
		return UpOptions{Cluster: "runtime", Machines: machines, Zones: zones}
	}
	for name, tc := range map[string]struct {
		have        []Cluster
		options     UpOptions
		want        []Cluster
		wantRemoved []Machine
		wantError   string
	}{
		"a new landscape has a runtime cluster of one machine": {options: UpOptions{Cluster: "runtime"}, want: one},
		"nothing asked, nothing changed":                       {have: three, options: UpOptions{Cluster: "runtime"}, want: three},
		"more machines":                                        {have: one, options: UpOptions{Cluster: "runtime", Machines: 3}, want: three},
		"fewer machines: the last ones go": {
			have: three, options: UpOptions{Cluster: "runtime", Machines: 1}, want: one,
			wantRemoved: []Machine{{"runtime-1", 1, 0}, {"runtime-2", 2, 0}},
		},
		"a second cluster gets numbers of its own": {
			have: one, options: UpOptions{Cluster: "seed2", Machines: 1, Version: "v1.35.4"},
			want: append(one[:1:1], Cluster{Name: "seed2", Number: 1, Version: "v1.35.4", Machines: []Machine{{"seed2-0", 1, 0}}}),
		},
		"a second cluster first brings the runtime cluster": {
			options: UpOptions{Cluster: "seed2"},
			want: []Cluster{
				one[0],
				{Name: "seed2", Number: 1, Version: "v1.36.3", Machines: []Machine{{"seed2-0", 1, 0}}},
			},
		},
		"a second seed is a cluster of its own": {
			have: one, options: UpOptions{Cluster: "runtime", Seeds: 2},
			want: append(one[:1:1], Cluster{Name: "local-2", Number: 1, Version: "v1.36.3", Machines: []Machine{{"local-2-0", 1, 0}}, Seed: true}),
		},
		"further seeds get numbers that are free": {
			have:    append(one[:1:1], Cluster{Name: "other", Number: 1, Version: "v1.35.4", Machines: []Machine{{"other-0", 1, 0}}}),
			options: UpOptions{Cluster: "runtime", Seeds: 3},
			want: append(
				one[:1:1], Cluster{Name: "other", Number: 1, Version: "v1.35.4", Machines: []Machine{{"other-0", 1, 0}}},
				Cluster{Name: "local-2", Number: 2, Version: "v1.36.3", Machines: []Machine{{"local-2-0", 2, 0}}, Seed: true},
				Cluster{Name: "local-3", Number: 3, Version: "v1.36.3", Machines: []Machine{{"local-3-0", 3, 0}}, Seed: true},
			),
		},
		"seeds stay":                        {have: two, options: UpOptions{Cluster: "runtime"}, want: two},
		"as many seeds as there are":        {have: two, options: UpOptions{Cluster: "runtime", Seeds: 2}, want: two},
		"fewer seeds":                       {have: two, options: UpOptions{Cluster: "runtime", Seeds: 1}, wantError: "has 2 seeds, which may have shoots, and cannot have 1"},
		"more seeds than there is room for": {have: one, options: UpOptions{Cluster: "runtime", Seeds: 8}, wantError: "room for 7 clusters"},
		"a version cannot be changed": {
			have: one, options: UpOptions{Cluster: "runtime", Version: "v1.35.4"},
			wantError: `cluster "runtime" runs Kubernetes v1.36.3, which cannot be changed to v1.35.4`,
		},
		"machines in three zones":                          {options: zoned(3, 3), want: machines(0, 1, 2)},
		"more machines than zones":                         {options: zoned(5, 3), want: machines(0, 1, 2, 0, 1)},
		"zones for machines that there are":                {have: machines(0, 0, 0), options: zoned(5, 3), want: machines(0, 0, 0, 1, 2)},
		"more machines for the zones that there are":       {have: machines(0, 0, 1), options: zoned(4, 0), want: machines(0, 0, 1, 1)},
		"fewer machines, and one is left in each zone":     {have: machines(0, 1, 0), options: zoned(2, 0), want: machines(0, 1), wantRemoved: []Machine{{"runtime-2", 2, 0}}},
		"as many zones as there are":                       {have: machines(0, 1), options: zoned(0, 2), want: machines(0, 1)},
		"more zones than machines":                         {options: zoned(2, 3), wantError: `each of 3 zones needs a machine, and machines keep their zone: cluster "runtime" needs --machines 3 or more, not 2`},
		"more zones, and no machine for them":              {have: machines(0, 0, 0), options: zoned(0, 3), wantError: "needs --machines 5 or more, not 3"},
		"fewer machines than would leave one in each zone": {have: machines(0, 0, 1), options: zoned(2, 0), wantError: "needs --machines 3 or more, not 2"},
		"fewer zones": {have: machines(0, 1), options: zoned(0, 1), wantError: `cluster "runtime" has 2 zones, in which volumes may be, and cannot have 1`},
		"a new cluster has zones, the runtime cluster has not": {
			have: one, options: UpOptions{Cluster: "seed2", Machines: 2, Zones: 2},
			want: append(one[:1:1], Cluster{Name: "seed2", Number: 1, Version: "v1.36.3", Machines: []Machine{{"seed2-0", 1, 0}, {"seed2-1", 2, 1}}}),
		},
		"too many machines":       {options: UpOptions{Cluster: "runtime", Machines: 101}, wantError: "between 1 and 100, not 101"},
		"an invalid name":         {have: one, options: UpOptions{Cluster: "Seed_2"}, wantError: `invalid cluster name "Seed_2"`},
		"the name of the garden":  {have: one, options: UpOptions{Cluster: "garden"}, wantError: `cluster "garden" is the garden itself`},
		"a negative number":       {have: one, options: UpOptions{Cluster: "runtime", Machines: -1}, wantError: "not -1"},
		"a version it already is": {have: one, options: UpOptions{Cluster: "runtime", Version: "v1.36.3"}, want: one},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Landscape{Name: "test", state: state{Clusters: tc.have}}
			got, removed, err := l.plan(tc.options, "v1.36.3")
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error = %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantRemoved, removed); diff != "" {
				t.Errorf("removed machines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHostResolvers(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"those of the host":                    {files: map[string]string{"/etc/resolv.conf": "search x\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n"}, want: []string{"192.0.2.1", "192.0.2.2"}},
		"those behind a resolver on the host":  {files: map[string]string{"/etc/resolv.conf": "nameserver 127.0.0.53\n", "/run/systemd/resolve/resolv.conf": "nameserver 192.0.2.1\n"}, want: []string{"192.0.2.1"}},
		"none":                                 {files: map[string]string{"/etc/resolv.conf": "# empty\n"}},
		"IPv6 has no way out of the landscape": {files: map[string]string{"/etc/resolv.conf": "nameserver 2001:db8::1\nnameserver 192.0.2.1\n"}, want: []string{"192.0.2.1"}},
		"invalid addresses are ignored":        {files: map[string]string{"/etc/resolv.conf": "nameserver\nnameserver example\n"}},
		"missing files":                        {},
	} {
		t.Run(name, func(t *testing.T) {
			got := hostResolvers(func(path string) ([]byte, error) {
				if content, ok := tc.files[path]; ok {
					return []byte(content), nil
				}
				return nil, os.ErrNotExist
			})
			var want []netip.Addr
			for _, addr := range tc.want {
				want = append(want, netip.MustParseAddr(addr))
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("hostResolvers() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCorefile(t *testing.T) {
	l := &Landscape{Name: "test", state: state{Clusters: []Cluster{{Name: "runtime", Machines: []Machine{{"runtime-0", 0, 0}}}}}}
	alone := l.corefile(nil)
	for _, want := range []string{"172.30.0.1 registry.local.gardener.cloud\n", "172.30.0.2 runtime-0\n", "NXDOMAIN", "bind 172.30.0.1\n"} {
		if !strings.Contains(alone, want) {
			t.Errorf("without resolvers it lacks %q:\n%s", want, alone)
		}
	}
	if got := l.corefile([]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}); !strings.Contains(got, "forward . 192.0.2.1 192.0.2.2 {") || strings.Contains(got, "NXDOMAIN") {
		t.Errorf("with resolvers it is:\n%s", got)
	}
	l.state.Hosts = 1
	for _, want := range []string{"172.30.0.101 host-0\n", "local.gardener.cloud:53 {\n", "forward . 172.30.0.2:30053 {\n"} {
		if got := l.corefile(nil); !strings.Contains(got, want) || strings.Contains(alone, want) {
			t.Errorf("with hosts it lacks %q, or without has it:\n%s", want, got)
		}
	}
}

func TestPushTarget(t *testing.T) {
	l := &Landscape{Name: "test"}
	const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for reference, want := range map[string]string{
		"registry.k8s.io/kube-proxy:v1.36.3": "172.30.0.1:5000/registry.k8s.io/kube-proxy:v1.36.3",
		"nginx":                              "172.30.0.1:5000/docker.io/library/nginx:latest",
		"docker.io/library/registry:3.1.2":   "172.30.0.1:5000/docker.io/library/registry:3.1.2",
		"quay.io/a/b@" + digest:              "172.30.0.1:5000/quay.io/a/b@" + digest,
	} {
		got, err := l.pushTarget(reference)
		if err != nil || got.Name() != want {
			t.Errorf("pushTarget(%q) = %v, %v, want %s", reference, got, err, want)
		}
	}
	if _, err := l.pushTarget("Not An Image"); err == nil {
		t.Error("a malformed reference is accepted")
	}
	if got := tagOf("localhost:5000/etcd:3.6.8-0"); got != "3.6.8-0" {
		t.Errorf("tagOf() = %q", got)
	}
}

// No two clusters of a landscape share a network, and none touches the landscape's own subnets.
func TestClusterNetworks(t *testing.T) {
	seen := map[string]int{}
	for number := range 7 {
		c := Cluster{Number: number}
		for _, network := range []string{c.pods().String(), c.services().String()} {
			if other, ok := seen[network]; ok {
				t.Errorf("%s belongs to clusters %d and %d", network, other, number)
			}
			seen[network] = number
		}
		if !c.services().Contains(c.localDNS()) || c.localDNS() == c.dns() {
			t.Errorf("address %s for the names of clusters is not in %s or not its own", c.localDNS(), c.services())
		}
		if !c.services().Contains(c.dns()) {
			t.Errorf("DNS address %s is not in %s", c.dns(), c.services())
		}
	}
	if c := (Cluster{}); c.pods().String() != "10.1.0.0/16" || c.services().String() != "10.2.0.0/16" {
		t.Errorf("the runtime cluster has %s and %s", c.pods(), c.services())
	}
}

func TestOpen(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"", "Local", "a_b", "-a", "a-", strings.Repeat("a", 21), "a/b"} {
		if _, err := Open(root, name); err == nil {
			t.Errorf("name %q is accepted", name)
		}
	}
	l, err := Open(root, "test")
	if err != nil {
		t.Fatal(err)
	}
	if l.Exists() {
		t.Error("a landscape exists that was never brought up")
	}
	if _, err := l.Cluster("runtime"); err == nil || !strings.Contains(err.Error(), "make up NAME=test") {
		t.Errorf("error = %v, want the command that fixes it", err)
	}
	l.state = state{Index: 4, Clusters: []Cluster{{Name: "runtime", Version: "v1.36.3", Machines: []Machine{{"runtime-0", 0, 0}}}}}
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(root, "test")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.state, again.state); diff != "" {
		t.Errorf("state after a restart (-want +got):\n%s", diff)
	}
	if _, err := again.Cluster("seed2"); err == nil || !strings.Contains(err.Error(), `no cluster "seed2", but: runtime`) {
		t.Errorf("error = %v", err)
	}
	// A landscape whose state is damaged must still come down.
	if err := os.WriteFile(filepath.Join(root, "test", "landscape.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken, err := Open(root, "test")
	if err != nil {
		t.Fatalf("a damaged landscape cannot be opened to take it down: %v", err)
	}
	var damaged *DamagedError
	if _, err := broken.Cluster("runtime"); !errors.As(err, &damaged) {
		t.Errorf("error = %v, want a DamagedError", err)
	}
}

func TestRenderMachine(t *testing.T) {
	l := &Landscape{Name: "test"}
	script, err := render("userdata.sh.tmpl", map[string]any{"Mirrors": l.mirrors(), "Registry": l.registryAddress(), "Verb": "init"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"[host.\"http://172.30.0.1:5000/v2/registry.k8s.io\"]", `server = "https://registry-1.docker.io"`,
		`server = "http://172.30.0.1:5000"`, "kubeadm init --config",
		"rm -rf /var/lib/etcd/*", // kubeadm refuses a directory that an interrupted reset left
	} {
		if !strings.Contains(string(script), want) {
			t.Errorf("user data lacks %q", want)
		}
	}
	l.Dir = t.TempDir()
	cluster := Cluster{Name: "runtime", Version: "v1.36.3", Machines: []Machine{{"runtime-0", 0, 0}, {"runtime-1", 1, 2}}}
	if err := l.writeKubeadmConfig(cluster, cluster.Machines[1], "", map[string]any{"CAHash": "", "Token": "", "Timeout": kubeadmWait}); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(l.userDataDir("runtime-1"), "kubeadm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(config), `"topology.kubernetes.io/region=local,topology.kubernetes.io/zone=2"`) {
		t.Errorf("a node does not have the labels of its region and zone:\n%s", config)
	}
	if !strings.Contains(string(config), "tlsBootstrap: 4m0s") {
		t.Errorf("kubeadm does not wait as long as it should:\n%s", config)
	}
	if _, err := render("kubeadm-init.yaml.tmpl", map[string]any{"Name": "x"}); err == nil {
		t.Error("a template with missing values renders")
	}
}

func TestTimeoutFactor(t *testing.T) {
	for factor, want := range map[int]string{0: "not done after 1µs", 5: "not done after 5µs"} {
		u := &upRun{timeoutFactor: UpOptions{TimeoutFactor: factor}.withDefaults().TimeoutFactor}
		ctx, cancel := u.limit(t.Context(), time.Microsecond)
		defer cancel()
		<-ctx.Done()
		if err := context.Cause(ctx); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("factor %d: %v, want %s", factor, err, want)
		}
	}
}

func TestChooseIndex(t *testing.T) {
	for name, tc := range map[string]struct {
		index     int
		owners    map[string]owner
		want      int
		wantError string
	}{
		"it keeps the one it has": {index: 3, owners: map[string]owner{"other": {Dir: "/a/other", Index: 0}}, want: 3},
		"it runs":                 {index: 3, owners: map[string]owner{"test": {Dir: "/a/test", Index: 3}}, want: 3},
		"its name runs elsewhere": {
			index: -1, owners: map[string]owner{"test": {Dir: "/gone/.landscape/test", Index: 3}},
			wantError: "take that one down with: bin/landscape down --name test --dir /gone/.landscape",
		},
		"another has taken it": {index: 3, owners: map[string]owner{"other": {Dir: "/a/other", Index: 3}}, wantError: "made with subnet 172.30.3.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Landscape{Name: "test", Dir: "/a/test", state: state{Index: tc.index}}
			got, err := l.chooseIndex(tc.owners)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error = %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("chooseIndex() = %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}

// When the mounts of a machine cannot be removed, its directory stays: the mounts may contain data of the host.
func TestRemoveMounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "machine")
	file := filepath.Join(dir, "mounted", "file")
	if err := host.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	busy := errors.New("busy")
	if err := removeMounted(dir, func(...string) error { return busy }); !errors.Is(err, busy) {
		t.Errorf("error = %v, want %v", err, busy)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file was deleted through a mount: %v", err)
	}
	if err := removeMounted(dir, func(...string) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// After a reboot, another landscape may run with the index of one that does not.
func TestDownLeavesLinkOfOther(t *testing.T) {
	l := &Landscape{Name: "test", Dir: "/a/test", state: state{Index: 0}}
	if !l.hasLink(map[string]owner{"test": {Dir: "/a/test", Index: 0}, "other": {Dir: "/a/other", Index: 1}}) {
		t.Error("the link of the landscape itself stays")
	}
	if l.hasLink(map[string]owner{"other": {Dir: "/a/other", Index: 0}}) {
		t.Error("the link of another landscape goes")
	}
}

// Mounts are found by their real paths, also those of a checkout that was reached through a symbolic link.
func TestOpenThroughLink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	l, err := Open(filepath.Join(dir, "link", "not", "there"), "test")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "real", "not", "there", "test"); l.Dir != want {
		t.Errorf("Dir = %s, want %s", l.Dir, want)
	}
}
