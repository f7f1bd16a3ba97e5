package host

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFreeIndex(t *testing.T) {
	all := map[int]bool{}
	for i := range MaxLandscapes {
		all[i] = true
	}
	for name, tc := range map[string]struct {
		taken     map[int]bool
		used      []string
		want      int
		wantError string
	}{
		"the first landscape gets the first subnet":        {want: 0},
		"an index of another landscape is passed over":     {taken: map[int]bool{0: true, 1: true}, want: 2},
		"a subnet that the host routes is passed over":     {used: []string{"172.30.0.0/23"}, want: 2},
		"a part of a subnet is enough to pass over it":     {used: []string{"172.30.0.240/28"}, want: 1},
		"other networks do not matter":                     {used: []string{"192.168.0.0/16", "172.31.0.0/16"}, want: 0},
		"an error says where to look when nothing is left": {used: []string{"172.16.0.0/12"}, wantError: "ip route"},
		"other landscapes may have everything":             {taken: all, wantError: "no free subnet"},
	} {
		t.Run(name, func(t *testing.T) {
			var used []netip.Prefix
			for _, prefix := range tc.used {
				used = append(used, netip.MustParsePrefix(prefix))
			}
			got, err := freeIndex(tc.taken, used)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error = %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("freeIndex() = %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}

// All addresses of a landscape lie in its subnet and none is given out twice.
func TestNetworkAddresses(t *testing.T) {
	n := Network{Landscape: "a", Index: 3}
	seen := map[netip.Addr]string{}
	add := func(what string, addr netip.Addr) {
		t.Helper()
		if !n.Subnet().Contains(addr) {
			t.Errorf("%s: %s is not in %s", what, addr, n.Subnet())
		}
		if other, ok := seen[addr]; ok {
			t.Errorf("%s: %s is also %s", what, addr, other)
		}
		seen[addr] = what
	}
	subnetIPv6 := n.machineIPv6(0).Masked()
	if other := (Network{Index: 4}).machineIPv6(0); subnetIPv6.Overlaps(other) {
		t.Errorf("%s of another landscape is in %s", other, subnetIPv6)
	}
	for i := range MaxMachines {
		prefix := n.machineIPv6(i)
		if prefix.Masked() != subnetIPv6 || seen[prefix.Addr()] != "" {
			t.Errorf("%s is not in %s, or given out twice", prefix, subnetIPv6)
		}
		seen[prefix.Addr()] = "machine"
	}
	add("gateway", n.Gateway())
	add("host", n.Host())
	for i := range MaxMachines {
		add("machine", n.Machine(i))
	}
	for i := range MaxClusters {
		pool := n.Pool(i)
		for addr := pool.Addr(); pool.Contains(addr); addr = addr.Next() {
			add("pool", addr)
		}
	}
	if len(n.hostLink()) > 15 {
		t.Errorf("interface name %q is too long for the kernel", n.hostLink())
	}
}

func TestNetworks(t *testing.T) {
	all := Networks()
	for index := range MaxLandscapes {
		if subnet := (Network{Index: index}).Subnet(); !all.Contains(subnet.Addr()) || !all.Contains(Network{Index: index}.Host()) {
			t.Errorf("%s is not in %s", subnet, all)
		}
	}
	if outside := (Network{Index: MaxLandscapes}).Host(); all.Contains(outside) {
		t.Errorf("%s, which no landscape has, is in %s", outside, all)
	}
}

func TestMountsBelow(t *testing.T) {
	const mountinfo = `22 1 0:20 / / rw - ext4 /dev/vda rw
30 22 0:30 / /data/x rw - tmpfs tmpfs rw
31 30 0:31 / /data/x/inner rw - tmpfs tmpfs rw
32 22 0:32 / /data/xy rw - tmpfs tmpfs rw
33 22 0:33 / /data/with\040space/m rw - tmpfs tmpfs rw
34 22 0:34 / /data/x rw - tmpfs tmpfs rw
`
	got := mountsBelow([]byte(mountinfo), []string{"/data/x", "/data/with space"})
	want := []string{"/data/x", "/data/with space/m", "/data/x/inner", "/data/x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mountsBelow() (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	root, file := t.TempDir(), filepath.Join(t.TempDir(), "before.json")
	s := Settings{File: file, Root: root}
	set := func(key, value string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(s.path(key)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(key), []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("net.ipv4.ip_forward", "0")
	set("fs.inotify.max_user_instances", "128")
	set("fs.inotify.max_user_watches", "1048576")
	set("kernel.panic", "1")

	if err := s.Apply(); err != nil {
		t.Fatal(err)
	}
	values := func() map[string]string {
		got := map[string]string{}
		for _, key := range []string{"net.ipv4.ip_forward", "fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "kernel.panic"} {
			got[key] = s.read(key)
		}
		return got
	}
	if diff := cmp.Diff(map[string]string{
		"net.ipv4.ip_forward": "1", "fs.inotify.max_user_instances": "2048",
		"fs.inotify.max_user_watches": "1048576", // It was high enough.
		"kernel.panic":                "1",
	}, values()); diff != "" {
		t.Errorf("after Apply() (-want +got):\n%s", diff)
	}

	set("kernel.panic", "10") // as a kubelet does
	if err := s.Apply(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{
		"net.ipv4.ip_forward": "0", "fs.inotify.max_user_instances": "128", "fs.inotify.max_user_watches": "1048576", "kernel.panic": "1",
	}, values()); diff != "" {
		t.Errorf("after Restore() (-want +got):\n%s", diff)
	}
	if err := s.Restore(); err != nil {
		t.Errorf("a second Restore() fails: %v", err)
	}
}

func TestAwaitPath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "socket")
	found := make(chan error, 1)
	go func() { found <- AwaitPath(t.Context(), path) }()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Error(err)
	}

	reason := errors.New("timed out")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, reason)
	defer cancel()
	if err := AwaitPath(ctx, filepath.Join(dir, "never")); !errors.Is(err, reason) {
		t.Errorf("error = %v, want %v", err, reason)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file")
	for _, content := range []string{"first", "second"} {
		if err := WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("content = %q, %v, want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v, %v: a temporary file was left", entries, err)
	}
}

func TestPreflightChecks(t *testing.T) {
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	loadable := file("nodev\ttmpfs\n")
	load := func(string) error { return os.WriteFile(loadable, []byte("nodev\toverlay\n"), 0o644) }
	noModule := func(string) error { return errors.New("no such module") }
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"overlay is there":     {err: checkFilesystems(file("nodev\ttmpfs\nnodev\toverlay\n"), nil)},
		"overlay is a module":  {err: checkFilesystems(loadable, load)},
		"overlay is missing":   {err: checkFilesystems(file("nodev\ttmpfs\n\text4\n"), func(string) error { return nil }), want: "modprobe overlay"},
		"overlay cannot load":  {err: checkFilesystems(file("\text4\n"), noModule), want: "no such module"},
		"memory is enough":     {err: checkMemory(file("MemTotal: 1 kB\nMemAvailable:    8388608 kB\n"), 5<<30)},
		"memory is too small":  {err: checkMemory(file("MemAvailable:    4194304 kB\n"), 5<<30), want: "4.0 GiB of memory are available and 5 GiB are needed"},
		"memory is just right": {err: checkMemory(file("MemAvailable:    2097152 kB\n"), 2<<30)},
		"no such file":         {err: checkMemory("/nonexistent", 0), want: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" && tc.err != nil || tc.want != "" && (tc.err == nil || !strings.Contains(tc.err.Error(), tc.want)) {
				t.Errorf("error = %v, want one with %q", tc.err, tc.want)
			}
		})
	}
}

func TestParseRollup(t *testing.T) {
	got := parseRollup([]byte("00400000-7fff [rollup]\nRss:                2048 kB\nPss:                1024 kB\nPss_Dirty: 5 kB\n"))
	if diff := cmp.Diff(Memory{Processes: 1, Resident: 2 << 20, Proportional: 1 << 20}, got); diff != "" {
		t.Errorf("parseRollup() (-want +got):\n%s", diff)
	}
	for argument, want := range map[string]string{"/usr/local/bin/kubelet": "kubelet", "sshd: root@pts/0": "sshd", "/lib/systemd/systemd": "systemd"} {
		if got := processName(argument); got != want {
			t.Errorf("processName(%q) = %q, want %q", argument, got, want)
		}
	}
}
