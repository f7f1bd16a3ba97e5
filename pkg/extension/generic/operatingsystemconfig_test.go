package generic

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/test/golden"
)

func inline(path string, data string, mode uint32, plain bool) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Permissions: &mode, Content: extensionsv1alpha1.FileContent{
		TransmitUnencoded: &plain, Inline: &extensionsv1alpha1.FileContentInline{Data: data},
	}}
}

// data returns the data of a Secret, or nil if there is none.
func data(t *testing.T, c client.Client, namespace, name string) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil
	}
	out := map[string]string{}
	for key, value := range secret.Data {
		out[key] = string(value)
	}
	return out
}

// The script is run with another root, and a systemctl that only prints its arguments.
func TestUserData(t *testing.T) {
	root := t.TempDir()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"k": []byte("from a secret\n")}}
	a := &OperatingSystemConfig{Owner: "test", Client: fake.NewClientBuilder().WithObjects(secret).Build()}
	osc := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pool"}}
	osc.Spec.Purpose = extensionsv1alpha1.OperatingSystemConfigPurposeProvision
	files := map[string]string{
		"/a/token": "<<TOKEN>>", "/a/two lines": "one\nEND_OF_FILE\n", "/a/it's": "$(exit 1) `exit 1` 'x' \"y\"", "/a/none": "", "/a/secret": "from a secret\n", "/a/b64": "decoded",
	}
	osc.Spec.Files = []extensionsv1alpha1.File{
		inline("/a/token", files["/a/token"], 0o600, true), inline("/a/two lines", files["/a/two lines"], 0o755, true),
		inline("/a/it's", files["/a/it's"], 0o644, false), inline("/a/none", "", 0o644, false),
		{Path: "/a/secret", Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "s", DataKey: "k"}}},
		{Path: "/a/b64", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: "ZGVjb2RlZA=="}}},
	}
	osc.Spec.Units = []extensionsv1alpha1.Unit{
		{Name: "agent.service", Content: new("[Service]\nExecStart=/bin/agent\n"), DropIns: []extensionsv1alpha1.DropIn{{Name: "10-x.conf", Content: "[Unit]\n"}}},
		{Name: "old.service", Enable: new(false), Command: new(extensionsv1alpha1.CommandStop)},
	}
	if err := a.Reconcile(t.Context(), osc, nil); err != nil {
		t.Fatal(err)
	}
	if ref := osc.Status.CloudConfig.SecretRef; ref.Namespace != "ns" || ref.Name != "osc-result-pool" {
		t.Errorf("the user data is in %v", ref)
	}
	script := data(t, a.Client, "ns", "osc-result-pool")["cloud_config"]
	golden.Text(t, "userdata.sh", script)
	if !strings.Contains(script, "<<TOKEN>>") {
		t.Error("the placeholders are not readable")
	}

	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"'/a", "'/etc"} {
		script = strings.ReplaceAll(script, dir, "'"+root+dir[1:])
	}
	for range 2 { // the second run changes nothing
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
		cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		want := "daemon-reload\nenable agent.service\ndisable old.service\nstop old.service\nrestart --no-block agent.service\n"
		if err != nil || string(out) != want {
			t.Fatalf("the output is %q, %v", out, err)
		}
	}
	files["/etc/systemd/system/agent.service"] = "[Service]\nExecStart=/bin/agent\n"
	files["/etc/systemd/system/agent.service.d/10-x.conf"] = "[Unit]\n"
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "a/token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token is %v, %v", info, err)
	}
	if err := a.Delete(t.Context(), osc, nil); err != nil || data(t, a.Client, "ns", "osc-result-pool") != nil {
		t.Errorf("the user data is left (%v)", err)
	}
}

func TestUserDataRefuses(t *testing.T) {
	a := &OperatingSystemConfig{Owner: "test", Client: fake.NewClientBuilder().Build()}
	for name, file := range map[string]extensionsv1alpha1.File{
		"from an image":     {Path: "/a", Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: "i"}}},
		"without a content": {Path: "/a"},
		"somewhere":         inline("a", "", 0o644, false),
		"no base64":         {Path: "/a", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: "?"}}},
	} {
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		osc.Spec.Purpose, osc.Spec.Files = extensionsv1alpha1.OperatingSystemConfigPurposeProvision, []extensionsv1alpha1.File{file}
		if codes := errorcode.Of(a.Reconcile(t.Context(), osc, nil)); len(codes) != 1 || codes[0] != corev1beta1.ErrorConfigurationProblem {
			t.Errorf("a file %s: %v", name, codes)
		}
	}
}
