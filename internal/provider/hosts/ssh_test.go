package hosts

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/internal/provider/hosts/hoststest"
)

func TestSSH(t *testing.T) {
	for name, listen := range map[string]func(hoststest.Server, *testing.T, string, []byte) int{
		"OpenSSH": hoststest.Server.OpenSSH, "in this process": hoststest.Server.InProcess,
	} {
		t.Run(name, func(t *testing.T) {
			s := hoststest.New(t, "host-1")
			authorized, private := hoststest.Key(t)
			pinned, hostKey := hoststest.Key(t)
			h := host("host-1")
			h.Spec.Address, h.Spec.Port, h.Spec.HostKey = "127.0.0.1", int32(listen(s, t, authorized, hostKey)), pinned
			if who, err := user.Current(); err != nil {
				t.Fatal(err)
			} else {
				h.Spec.User = who.Username
			}
			testMachine(t, s, h, private)
			t.Run("another key of the server is refused", func(t *testing.T) {
				other := h.DeepCopy()
				other.Spec.HostKey, _ = hoststest.Key(t)
				if _, err := runBySSH(t.Context(), other, private, "exit 0", nil); !errors.Is(err, errUntrusted) {
					t.Errorf("the error is %v", err)
				}
			})
			t.Run("another key of the user is refused", func(t *testing.T) {
				_, other := hoststest.Key(t)
				if _, err := runBySSH(t.Context(), h, other, "exit 0", nil); err == nil {
					t.Error("there is no error")
				}
			})
			t.Run("of an output, the beginning is kept", func(t *testing.T) {
				out, err := runBySSH(t.Context(), h, private, "for i in {1..20000}; do echo 0123456789; done", nil)
				if err != nil || len(out) != mostOutput {
					t.Errorf("%d bytes are kept (%v)", len(out), err)
				}
			})
			t.Run("a script that does not end is given up", func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := runBySSH(ctx, h, private, "sleep 60", nil); err == nil {
					t.Error("there is no error")
				}
			})
		})
	}
}

// testMachine has a computer become a machine and cleans it.
func testMachine(t *testing.T, s hoststest.Server, h *hostsv1alpha1.Host, private []byte) {
	run := func(script, stdin string, args ...string) (string, error) {
		return runBySSH(t.Context(), h, private, script, []byte(stdin), args...)
	}
	problems := func() []string {
		t.Helper()
		out, err := run(checkScript, "")
		if err != nil {
			t.Fatal(err)
		}
		return parse(h, out)
	}
	if found := problems(); len(found) > 0 || h.Status.Capacity.Memory().Value() != 16310012<<10 {
		t.Fatalf("problems %q, capacity %v", found, h.Status.Capacity)
	}
	for range 2 { // after a crash, it is run again
		if _, err := run(provisionScript, "echo 'I am' \"a machine\"\n", "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Read("var/lib/gardener-host/user-data"); got != "echo 'I am' \"a machine\"\n" {
		t.Errorf("user data is %q", got)
	}
	if unit := s.Read("etc/systemd/system/gardener-user-data.service"); !strings.Contains(unit, "ExecStart=/bin/bash /var/lib/gardener-host/user-data\n") {
		t.Errorf("the unit is\n%s", unit)
	}
	var exit *exitError
	if _, err := run(provisionScript, "", "uid-2"); !errors.As(err, &exit) {
		t.Errorf("another machine was created on it: %v", err)
	}
	if _, err := run(cleanScript, "", "uid-2"); !errors.As(err, &exit) || s.Read("var/lib/gardener-host/claim") != "uid-1" {
		t.Errorf("the machine of another claim was cleaned: %v", err)
	}

	if _, err := run(prologue, ""); err != nil {
		t.Error(err)
	}
	if unit := s.Read("etc/systemd/system/gardener-swapoff.service"); !strings.Contains(unit, "Before=kubelet.service\n") || !strings.Contains(s.Read("log"), "systemctl enable gardener-swapoff.service\n") {
		t.Errorf("swap is on after a reboot: the unit is\n%s", unit)
	}
	s.BecomeNode(t)
	mounts := s.Read("proc/mounts")
	left := problems()
	for _, want := range []string{
		"kubelet.service is active", "/var/lib/kubelet/pods exists", "/etc/kubernetes exists", "/etc/cni/net.d/10-flannel.conflist exists", "the network interface cni0 exists",
		"/var/lib/kubelet/pods/1/volume is mounted", "/var/lib/gardener-host exists", "/sys/fs/cgroup/kubepods.slice exists",
		"the nftables table ip kube-proxy exists",
	} {
		if !slices.Contains(left, want) {
			t.Errorf("%q is not found: %q", want, left)
		}
	}
	// What cannot be unmounted may be a directory of the host: nothing is removed.
	s.Write(t, "busy", "")
	if _, err := run(cleanScript, "", "uid-1"); !errors.As(err, &exit) || s.Read("var/lib/kubelet/pods/1/volume/data") != "precious" {
		t.Errorf("removed below a mount: %v", err)
	}
	if err := os.Remove(filepath.Join(s.Root, "busy")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := run(cleanScript, "", "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	if left := problems(); len(left) > 0 {
		t.Errorf("after cleaning: %q", left)
	}
	if got := s.Read("proc/mounts"); got+"/dev/sdb /var/lib/kubelet/pods/1/volume ext4 rw 0 0\n" != mounts {
		t.Errorf("disks of the operator are unmounted: %s", got)
	}
	if _, err := os.Stat(filepath.Join(s.Root, "var/lib/kubelet-backup/x")); err != nil {
		t.Errorf("a directory of the operator: %v", err)
	}
	if s.Read("etc/systemd/system/gardener-swapoff.service") != "" || !strings.Contains(s.Read("log"), "systemctl stop kubepods.slice\n") {
		t.Error("a unit is left")
	}
	if rules := s.Read("iptables"); rules != "*filter\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n" {
		t.Errorf("rules are %q", rules)
	}
	if tables := s.Read("nft"); tables != "table ip filter\n" {
		t.Errorf("tables of nftables are %q", tables)
	}
	for file, want := range map[string]string{"config.toml": "of the operator", "conf.d/oom.toml": "of the operator", "certs.d/example.com/hosts.toml": ""} {
		if got := s.Read("etc/containerd/" + file); got != want {
			t.Errorf("%s of containerd is %q, want %q", file, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Root, "etc/systemd/system/ssh.service")); err != nil {
		t.Errorf("units of the host are removed: %v", err)
	}
}
