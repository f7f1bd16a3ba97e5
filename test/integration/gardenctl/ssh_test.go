package gardenctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// fakeSSH records its arguments and the files of its configuration, and ends when the test has read its pipe.
const fakeSSH = `#!/bin/sh -eu
dir=$(dirname "$2")
cp "$dir"/config "$dir"/bastion "$dir"/node "$OUT/"
echo "$@" > "$OUT/args"
echo "$dir" > "$OUT/dir"
echo running > "$OUT/pipe"
echo "of the node"
exit "$(cat "$OUT/code")"
`

// testSSH runs ssh through a Bastion that the test makes ready, as a gardenlet does.
func testSSH(t *testing.T, u *user) {
	garden, err := client.NewWithWatch(u.Config, client.Options{Scheme: u.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(out, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("ssh", fakeSSH, 0o700)
	t.Setenv("PATH", out+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("OUT", out)

	u.fails(t, "has no nodes with SSH access", "ssh", "10.250.0.4", "--shoot", "first")
	u.create(t, builder.Shoot("nodes", builder.On("one"), builder.Window, builder.Workers(1)))
	u.operated(t, "nodes", corev1beta1.LastOperationStateSucceeded, 100)
	u.fails(t, `read the key for nodes in Secret "garden-dev/nodes.ssh-keypair"`, "ssh", "10.250.0.4", "--shoot", "nodes")
	u.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "nodes.ssh-keypair"}, Data: map[string][]byte{"id_rsa": []byte("key of nodes")},
	})
	u.fails(t, "name the one that you connect from with --cidr", "ssh", "10.250.0.4", "--shoot", "nodes")
	u.fails(t, `not "here"`, "ssh", "10.250.0.4", "--shoot", "nodes", "--cidr=here")

	for name, tc := range map[string]struct {
		ends, want string
		code       int
	}{
		"a connection":            {ends: "0", want: "of the node\n"},
		"a connection that fails": {ends: "255", want: "of the node\n", code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			write("code", tc.ends, 0o600)
			_ = os.Remove(filepath.Join(out, "pipe"))
			if err := syscall.Mkfifo(filepath.Join(out, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			type result struct {
				out, errOut string
				code        int
			}
			end := make(chan result, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() {
				o, e, code := u.run(ctx, "ssh", "10.250.0.4", "--shoot", "nodes", "--cidr=203.0.113.7/24", "--heartbeat=10ms", "--", "uname", "-a")
				end <- result{o, e, code}
			}()
			bastion := awaitBastion(t, garden)
			if spec := bastion.Spec; spec.ShootRef.Name != "nodes" || len(spec.Ingress) != 1 || spec.Ingress[0].IPBlock.CIDR != "203.0.113.0/24" {
				t.Errorf("spec is %+v", spec)
			}
			env.EditStatus(t, garden, bastion, func(b *operationsv1alpha1.Bastion) {
				b.Status.LastHeartbeatTimestamp = new(metav1.NewTime(time.Now().Add(-1000 * time.Hour)))
				b.Status.Ingress = &corev1.LoadBalancerIngress{IP: "198.51.100.1"}
				b.Status.Conditions = []corev1beta1.Condition{{
					Type: operationsv1alpha1.BastionReady, Status: corev1beta1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
				}}
			})
			// The fake waits for a reader: until then, it is kept alive.
			env.Await(t, garden, bastion, func(b *operationsv1alpha1.Bastion) error {
				if last := b.Status.LastHeartbeatTimestamp; last == nil || time.Since(last.Time) > 100*time.Hour {
					return fmt.Errorf("the last heartbeat was at %v", last)
				}
				return nil
			})
			pipe, err := os.Open(filepath.Join(out, "pipe"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(pipe)
			_ = pipe.Close()
			got := <-end
			if got.out != tc.want || got.code != tc.code {
				t.Errorf("exit code %d, output %q, want %d, %q; stderr:\n%s", got.code, got.out, tc.code, tc.want, got.errOut)
			}
			env.AwaitGone(t, garden, bastion)
			checkSSH(t, out, bastion)
		})
	}
	t.Run("an interrupted program deletes the bastion", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan int, 1)
		go func() {
			_, _, code := u.run(ctx, "ssh", "10.250.0.4", "--shoot", "nodes", "--cidr=203.0.113.7/32")
			end <- code
		}()
		bastion := awaitBastion(t, garden)
		cancel()
		if code := <-end; code != 130 {
			t.Errorf("exit code %d, want 130", code)
		}
		env.AwaitGone(t, garden, bastion)
	})
	u.must(t, "delete", "shoot", "nodes", "--yes", "--wait")
}

// awaitBastion waits for the only Bastion.
func awaitBastion(t *testing.T, garden client.WithWatch) *operationsv1alpha1.Bastion {
	t.Helper()
	var bastion *operationsv1alpha1.Bastion
	env.AwaitList(t, garden, func(found []*operationsv1alpha1.Bastion) error {
		if len(found) != 1 {
			return fmt.Errorf("there are %d Bastions", len(found))
		}
		bastion = found[0].DeepCopy()
		return nil
	})
	return bastion
}

// checkSSH checks what ssh got: hosts and keys, of which that for the bastion fits its Bastion, and nothing is left of them.
func checkSSH(t *testing.T, out string, bastion *operationsv1alpha1.Bastion) {
	t.Helper()
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	dir := strings.TrimSpace(read("dir"))
	if want := fmt.Sprintf("-F %s/config node uname -a\n", dir); read("args") != want {
		t.Errorf("arguments of ssh are %q, want %q", read("args"), want)
	}
	for _, want := range []string{"HostName 198.51.100.1\n", "HostName 10.250.0.4\n", "ProxyJump bastion\n", "User gardener\n"} {
		if !strings.Contains(read("config"), want) {
			t.Errorf("configuration of ssh has no %q:\n%s", want, read("config"))
		}
	}
	if read("node") != "key of nodes" {
		t.Errorf("the key for nodes is %q", read("node"))
	}
	private, err := ssh.ParsePrivateKey([]byte(read("bastion")))
	if err != nil {
		t.Fatal(err)
	}
	if public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(private.PublicKey()))); public != bastion.Spec.SSHPublicKey {
		t.Errorf("the key for the bastion is that of %q, want %q", public, bastion.Spec.SSHPublicKey)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the keys are still in %q: %v", dir, err)
	}
}
