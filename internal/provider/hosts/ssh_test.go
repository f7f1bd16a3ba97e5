package hosts

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

// commands stand in for those that would change this computer. The rest is linked.
var commands = map[string]string{
	"hostname": `echo host-1`, "id": `[ "$1" = -u ] && echo 0`, "sudo": `shift; exec "$@"`, "containerd": `echo containerd github.com/containerd/containerd v2.1.4`,
	"systemctl": `echo "systemctl $*" >>$ROOT/log
case "$1" in
is-active) [ -e $ROOT/active/$3 ] ;;
start) touch $ROOT/active/$3 ;;
disable) rm -f $ROOT/active/$3 ;;
esac`,
	"umount":        `[ ! -e $ROOT/busy ] && sed -i "\\| $2 |d" $ROOT/proc/mounts`,
	"ip":            `rmdir $ROOT/sys/class/net/$3`,
	"iptables-save": `printf '%s\n' '*filter' ':KUBE-FORWARD - [0:0]' '-A INPUT -p tcp --dport 22 -j ACCEPT' '-A FORWARD -j KUBE-FORWARD' COMMIT`, "iptables-restore": `cat >$ROOT/iptables`,
	"ip6tables-save": `:`, "ip6tables-restore": `cat >/dev/null`, "update-ca-certificates": `:`, "swapon": `echo "swapon $*" >>$ROOT/log`,
}

// server is a computer whose root directory is a directory of the test.
type server struct{ root string }

func newServer(t *testing.T) server {
	t.Helper()
	s := server{t.TempDir()}
	for name, content := range commands {
		s.write(t, "bin/"+name, "#!/bin/bash\n"+content+"\n")
	}
	for _, name := range []string{"bash", "cat", "mkdir", "mv", "cp", "rm", "rmdir", "sed", "awk", "sort", "tr", "grep", "nproc", "touch", "timeout", "sleep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(s.root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "enter", fmt.Sprintf("#!/bin/bash\nexec env -i ROOT=%[1]s PATH=%[1]s/bin /bin/bash -c \"$SSH_ORIGINAL_COMMAND\"\n", s.root))
	s.write(t, "proc/meminfo", "MemTotal:       16310012 kB\n")
	s.write(t, "proc/mounts", "/dev/sda1 / ext4 rw 0 0\n")
	for _, file := range []string{"run/systemd/system/x", "sys/fs/cgroup/cgroup.controllers", "opt/cni/bin/loopback", "etc/systemd/system/ssh.service", "active/x", "sys/class/net/eth0/x", "var/lib/containerd/io.containerd.content/x"} {
		s.write(t, file, "")
	}
	return s
}

func (s server) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (s server) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.root, name)) // missing is empty
	return string(content)
}

// key returns a key as files have it: the public one, and the private one.
func key(t *testing.T) (public string, private []byte) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	sshKey, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(sshKey)), pem.EncodeToMemory(block)
}

// openSSH runs a real SSH server for a computer.
func openSSH(t *testing.T, s server, authorized string, hostKey []byte) (port int) {
	t.Helper()
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("the package openssh-server is not installed")
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	s.write(t, "ssh/authorized_keys", authorized)
	s.write(t, "ssh/host_key", string(hostKey))
	if err := os.Chmod(filepath.Join(s.root, "ssh/host_key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, "ssh/config", fmt.Sprintf(`Port %[1]d
ListenAddress 127.0.0.1
HostKey %[2]s/ssh/host_key
AuthorizedKeysFile %[2]s/ssh/authorized_keys
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
ForceCommand %[2]s/enter
`, port, s.root))
	cmd := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(s.root, "ssh/config"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 200)
	if n, err := stderr.Read(line); err != nil || !strings.Contains(string(line[:n]), "Server listening") {
		t.Fatalf("sshd says %q (%v)", line[:n], err)
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return port
}

// inProcess is an SSH server of this process for a computer.
func inProcess(t *testing.T, s server, authorized string, hostKey []byte) (port int) {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
		if string(ssh.MarshalAuthorizedKey(offered)) != authorized {
			return nil, errors.New("another key")
		}
		return &ssh.Permissions{}, nil
	}}
	signer, err := ssh.ParsePrivateKey(hostKey)
	if err != nil {
		t.Fatal(err)
	}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn, config)
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func (s server) serve(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			var payload struct{ Command string }
			if request.Type != "exec" || ssh.Unmarshal(request.Payload, &payload) != nil {
				_ = request.Reply(false, nil)
				continue
			}
			_ = request.Reply(true, nil)
			cmd := exec.Command(filepath.Join(s.root, "enter"))
			cmd.Env = []string{"SSH_ORIGINAL_COMMAND=" + payload.Command}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
			_ = cmd.Run()
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(cmd.ProcessState.ExitCode())}))
			_ = channel.Close()
		}
	}
}

func TestSSH(t *testing.T) {
	for name, listen := range map[string]func(*testing.T, server, string, []byte) int{"OpenSSH": openSSH, "in this process": inProcess} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			authorized, private := key(t)
			pinned, hostKey := key(t)
			h := host("host-1")
			h.Spec.Address, h.Spec.Port, h.Spec.HostKey = "127.0.0.1", int32(listen(t, s, authorized, hostKey)), pinned
			if who, err := user.Current(); err != nil {
				t.Fatal(err)
			} else {
				h.Spec.User = who.Username
			}
			testMachine(t, s, h, private)
			t.Run("another key of the server is refused", func(t *testing.T) {
				other := h.DeepCopy()
				other.Spec.HostKey, _ = key(t)
				if _, err := runBySSH(t.Context(), other, private, "exit 0", nil); !errors.Is(err, errUntrusted) {
					t.Errorf("the error is %v", err)
				}
			})
			t.Run("another key of the user is refused", func(t *testing.T) {
				_, other := key(t)
				if _, err := runBySSH(t.Context(), h, other, "exit 0", nil); err == nil {
					t.Error("there is no error")
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
func testMachine(t *testing.T, s server, h *hostsv1alpha1.Host, private []byte) {
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
	if got := s.read("var/lib/gardener-host/user-data"); got != "echo 'I am' \"a machine\"\n" {
		t.Errorf("user data is %q", got)
	}
	if unit := s.read("etc/systemd/system/gardener-user-data.service"); !strings.Contains(unit, "ExecStart=/bin/bash /var/lib/gardener-host/user-data\n") {
		t.Errorf("the unit is\n%s", unit)
	}
	var exit *exitError
	if _, err := run(provisionScript, "", "uid-2"); !errors.As(err, &exit) {
		t.Errorf("another machine was created on it: %v", err)
	}
	if _, err := run(cleanScript, "", "uid-2"); !errors.As(err, &exit) || s.read("var/lib/gardener-host/claim") != "uid-1" {
		t.Errorf("the machine of another claim was cleaned: %v", err)
	}

	s.becomeNode(t)
	left := problems()
	for _, want := range []string{
		"kubelet.service is active", "/var/lib/kubelet exists", "/etc/kubernetes exists", "/etc/cni/net.d/10-flannel.conflist exists", "the network interface cni0 exists",
		"/var/lib/kubelet/pods/1/volume is mounted", "/var/lib/gardener-host exists", "/sys/fs/cgroup/kubepods.slice exists",
	} {
		if !slices.Contains(left, want) {
			t.Errorf("%q is not found: %q", want, left)
		}
	}
	// What cannot be unmounted may be a directory of the host: nothing is removed.
	s.write(t, "busy", "")
	if _, err := run(cleanScript, "", "uid-1"); !errors.As(err, &exit) || s.read("var/lib/kubelet/pods/1/volume/data") != "precious" {
		t.Errorf("removed below a mount: %v", err)
	}
	if err := os.Remove(filepath.Join(s.root, "busy")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := run(cleanScript, "", "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	// The kernel removes a cgroup whose processes have ended.
	if s.read("sys/fs/cgroup/kubepods.slice/cgroup.kill") != "1\n" {
		t.Error("containers were not killed")
	}
	if err := os.RemoveAll(filepath.Join(s.root, "sys/fs/cgroup/kubepods.slice")); err != nil {
		t.Fatal(err)
	}
	if left := problems(); len(left) > 0 {
		t.Errorf("after cleaning: %q", left)
	}
	if rules := s.read("iptables"); rules != "*filter\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n" {
		t.Errorf("rules are %q", rules)
	}
	if config := s.read("etc/containerd/config.toml"); config != "of the operator" {
		t.Errorf("the configuration of containerd is %q", config)
	}
	if _, err := os.Stat(filepath.Join(s.root, "etc/systemd/system/ssh.service")); err != nil {
		t.Errorf("units of the host are removed: %v", err)
	}
}

// becomeNode leaves what a node leaves.
func (s server) becomeNode(t *testing.T) {
	t.Helper()
	for name, content := range map[string]string{
		"active/kubelet.service": "", "etc/systemd/system/kubelet.service": "", "var/lib/kubelet/pods/1/volume/data": "precious", "etc/kubernetes/x": "", "etc/cni/net.d/10-flannel.conflist": "",
		"sys/fs/cgroup/kubepods.slice/cgroup.kill": "", "var/lib/gardener-node-agent/containerd-base.toml": "of the operator", "etc/containerd/config.toml": "of Gardener",
		"var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db": "",
		"proc/mounts": "/dev/sda1 / ext4 rw 0 0\n/dev/sdb /var/lib/kubelet/pods/1/volume ext4 rw 0 0\n",
	} {
		s.write(t, name, content)
	}
	if err := os.MkdirAll(filepath.Join(s.root, "sys/class/net/cni0"), 0o755); err != nil {
		t.Fatal(err)
	}
}
