// Package hoststest has computers for tests of provider-hosts, each in a directory, with SSH servers.
package hoststest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// commands stand in for those that would change this computer. The rest is linked.
var commands = map[string]string{
	"id": `[ "$1" = -u ] && echo 0`, "sudo": `shift; exec "$@"`, "containerd": `echo containerd github.com/containerd/containerd v2.1.4`,
	"systemctl": `echo "systemctl $*" >>$ROOT/log
case "$1" in
is-active) [ -e $ROOT/active/$3 ] ;;
start) touch $ROOT/active/$3 ;;
disable) rm -f $ROOT/active/$3 ;;
esac`,
	"nft": `case "$1" in
list) cat $ROOT/nft ;;
delete) sed -i "/^table $3 $4\$/d" $ROOT/nft ;;
esac`,
	"umount":        `[ ! -e $ROOT/busy ] && sed -i "\\| $2 |d" $ROOT/proc/mounts`,
	"ip":            `rmdir $ROOT/sys/class/net/$3`,
	"iptables-save": `printf '%s\n' '*filter' ':KUBE-FORWARD - [0:0]' '-A INPUT -p tcp --dport 22 -j ACCEPT' '-A FORWARD -j KUBE-FORWARD' COMMIT`, "iptables-restore": `cat >$ROOT/iptables`,
	"ip6tables-save": `:`, "ip6tables-restore": `cat >/dev/null`, "update-ca-certificates": `:`, "swapon": `echo "swapon $*" >>$ROOT/log`, "swapoff": `:`, "dpkg": `:`,
	// The kernel removes a cgroup with its files, if it has no others in it and its processes have ended.
	"rmdir": `for path in "$@"; do
case "$path" in
$ROOT/sys/fs/cgroup/kubepods*)
  grep -q 1 $ROOT/sys/fs/cgroup/kubepods.slice/cgroup.kill || exit 1
  for entry in "$path"/*; do [ ! -d "$entry" ] || exit 1; done
  rm -rf "$path" ;;
*) /bin/rmdir "$path" ;;
esac
done`,
}

// disks are those of the operator.
const disks = "/dev/sda1 / ext4 rw 0 0\n/dev/sdc /var/lib/kubelet ext4 rw 0 0\n/dev/sdd /var/lib/containerd ext4 rw 0 0\n/dev/sde /var/lib/kubelet-backup ext4 rw 0 0\n"

// Server is a computer whose root directory is a directory of the test.
type Server struct{ Root string }

// New returns a computer that can be a machine.
func New(t *testing.T, hostname string) Server {
	t.Helper()
	s := Server{t.TempDir()}
	for name, content := range commands {
		s.Write(t, "bin/"+name, "#!/bin/bash\n"+content+"\n")
	}
	s.Write(t, "bin/hostname", "#!/bin/bash\necho "+hostname+"\n")
	for _, name := range []string{"bash", "cat", "mkdir", "mv", "cp", "rm", "find", "sed", "awk", "sort", "tr", "grep", "nproc", "touch", "timeout", "sleep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(s.Root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Write(t, "enter", fmt.Sprintf("#!/bin/bash\nexec env -i ROOT=%[1]s PATH=%[1]s/bin /bin/bash -c \"$SSH_ORIGINAL_COMMAND\"\n", s.Root))
	s.Write(t, "proc/meminfo", "MemTotal:       16310012 kB\n")
	s.Write(t, "proc/mounts", disks)
	s.Write(t, "etc/containerd/config.toml", "of the operator")
	s.Write(t, "etc/containerd/conf.d/oom.toml", "of the operator")
	for _, file := range []string{
		"nft", "run/systemd/system/x", "sys/fs/cgroup/cgroup.controllers", "opt/cni/bin/loopback",
		"etc/systemd/system/ssh.service", "active/x", "sys/class/net/eth0/x", "var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db",
		"var/lib/kubelet/lost+found/x", "var/lib/kubelet-backup/x",
	} {
		s.Write(t, file, "")
	}
	return s
}

// Write writes an executable file.
func (s Server) Write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Read reads a file. A missing one is empty.
func (s Server) Read(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.Root, name)) // missing is empty
	return string(content)
}

// Key returns a key as files have it: the public one, and the private one.
func Key(t *testing.T) (public string, private []byte) {
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

// OpenSSH runs a real SSH server for a computer.
func (s Server) OpenSSH(t *testing.T, authorized string, hostKey []byte) (port int) {
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
	s.Write(t, "ssh/authorized_keys", authorized)
	s.Write(t, "ssh/host_key", string(hostKey))
	if err := os.Chmod(filepath.Join(s.Root, "ssh/host_key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Write(t, "ssh/config", fmt.Sprintf(`Port %[1]d
ListenAddress 127.0.0.1
HostKey %[2]s/ssh/host_key
AuthorizedKeysFile %[2]s/ssh/authorized_keys
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
ForceCommand %[2]s/enter
`, port, s.Root))
	cmd := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(s.Root, "ssh/config"))
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

// InProcess is an SSH server of this process for a computer.
func (s Server) InProcess(t *testing.T, authorized string, hostKey []byte) (port int) {
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

func (s Server) serve(conn net.Conn, config *ssh.ServerConfig) {
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
			cmd := exec.Command(filepath.Join(s.Root, "enter"))
			cmd.Env = []string{"SSH_ORIGINAL_COMMAND=" + payload.Command}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
			_ = cmd.Run()
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(cmd.ProcessState.ExitCode())}))
			_ = channel.Close()
		}
	}
}

// BecomeNode leaves what a node leaves.
func (s Server) BecomeNode(t *testing.T) {
	t.Helper()
	for name, content := range map[string]string{
		"active/kubelet.service": "", "etc/systemd/system/kubelet.service": "", "var/lib/kubelet/pods/1/volume/data": "precious", "etc/kubernetes/x": "", "etc/cni/net.d/10-flannel.conflist": "",
		"sys/fs/cgroup/kubepods.slice/cgroup.kill": "", "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cgroup.kill": "",
		"etc/containerd/config.toml": "of Gardener", "etc/containerd/certs.d/example.com/hosts.toml": "of a tenant",
		"nft":         "table ip filter\ntable ip kube-proxy\ntable ip6 flannel-ipv6\n",
		"proc/mounts": disks + "/dev/sdb /var/lib/kubelet/pods/1/volume ext4 rw 0 0\n",
	} {
		s.Write(t, name, content)
	}
	if err := os.MkdirAll(filepath.Join(s.Root, "sys/class/net/cni0"), 0o755); err != nil {
		t.Fatal(err)
	}
}
