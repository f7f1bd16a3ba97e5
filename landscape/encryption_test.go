package landscape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
)

// The first start of a kube-apiserver encrypts already, and what it is configured with stays until the state changes.
func TestEncryptionOfANewCluster(t *testing.T) {
	cluster := Cluster{Name: "runtime", Version: "v1.36.3", Machines: []Machine{{Name: "runtime-0"}}}
	l := &Landscape{Name: "test", Dir: t.TempDir(), state: state{Clusters: []Cluster{cluster}}}
	created, err := l.encryptionState(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.saveEncryptionState(cluster, created); err != nil {
		t.Fatal(err)
	}
	path, err := l.writeEncryptionConfig(cluster, created.Keys)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.writeKubeadmConfig(cluster, cluster.Machines[0], "v3.6.8", map[string]any{"Encryption": path, "Timeout": kubeadmWait}); err != nil {
		t.Fatal(err)
	}
	kubeadm, err := os.ReadFile(filepath.Join(l.userDataDir("runtime-0"), "kubeadm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"{name: encryption-provider-config, value: " + path + "}", "hostPath: /etc/machine/encryption, mountPath: /etc/machine/encryption, readOnly: true",
		"{name: audit-policy-file, value: /etc/machine/audit-policy.yaml}", "{name: audit-log-path, value: /var/log/kubernetes/audit/audit.log}",
	} {
		if !strings.Contains(string(kubeadm), want) {
			t.Errorf("the configuration of kubeadm lacks %q:\n%s", want, kubeadm)
		}
	}
	// The machine mounts the directory of its user data at /etc/machine.
	policy, err := os.ReadFile(filepath.Join(l.userDataDir("runtime-0"), "audit-policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if errs := apiserverconfig.AuditPolicy(string(policy)); len(errs) > 0 {
		t.Errorf("the audit policy is invalid: %v", errs.ToAggregate())
	}
	config := filepath.Join(l.userDataDir("runtime-0"), strings.TrimPrefix(path, "/etc/machine/"))
	for _, file := range []string{config, l.encryptionFile(cluster)} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v", file, err, info.Mode())
		}
	}
	again, err := l.encryptionState(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created.Keys, again.Keys); diff != "" {
		t.Errorf("the second run has other keys (-first +second):\n%s", diff)
	}
}

func TestDueRotation(t *testing.T) {
	settled := func(age time.Duration) encryption.State {
		state := encryption.NewState(time.Now().Add(-age))
		state.Rewritten = true
		return state
	}
	for name, tc := range map[string]struct {
		state     encryption.State
		requested bool
		want      bool
	}{
		"a young key stays":              {state: settled(time.Hour)},
		"an old key is rotated":          {state: settled(91 * 24 * time.Hour), want: true},
		"it is requested":                {state: settled(time.Hour), requested: true, want: true},
		"nothing is encrypted with it":   {state: encryption.NewState(time.Now()), requested: true},
		"a rotation goes on as it began": {state: settled(time.Hour).Rotate(time.Now()), requested: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &upRun{rotateKeys: tc.requested}
			got := u.dueRotation(tc.state)
			if got.Rotating != tc.want {
				t.Errorf("dueRotation() = %+v", got)
			}
			if tc.state.Rotating && got.Keys[1].Name != tc.state.Keys[1].Name {
				t.Error("the new key was replaced by another one")
			}
		})
	}
}
