package operatingsystemconfig

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/systemd/fake"
	"gardener.cloud/gardener/pkg/containerd"
)

// machine is a machine, with the reconciler that applies configurations to it.
type machine struct {
	*reconciler
	t       *testing.T
	systemd *fake.Systemd
	images  []string // that files were extracted from
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, systemd: &fake.Systemd{}}
	m.reconciler = &reconciler{Values: Values{
		Root: rootfs.Dir(t.TempDir()), Systemd: m.systemd, Hostname: "me",
		PrepareKubelet: func() error { return nil }, TidyKubelet: func() error { return nil },
		Probe: func(context.Context, rootfs.Dir, string, extensionsv1alpha1.RegistryHost) error { return nil },
		Extract: func(_ context.Context, root rootfs.Dir, image string, files []imagefile.File, replace func() error) error {
			m.images = append(m.images, image)
			if err := replace(); err != nil {
				return err
			}
			for _, file := range files {
				if err := root.Write(file.Path, []byte(file.InImage+" of "+image), file.Mode); err != nil {
					return err
				}
			}
			return nil
		},
	}}
	// The user data and the first start of the agent wrote these.
	m.write("/etc/systemd/system/"+nodeagentconfigv1alpha1.UnitName, "agent")
	m.write("/etc/agent", "agent")
	return m
}

// apply applies a configuration as Reconcile does.
func (m *machine) apply(osc *extensionsv1alpha1.OperatingSystemConfig) (applied, error) {
	m.t.Helper()
	before, _, err := LastApplied(m.Root)
	if err != nil {
		m.t.Fatal(err)
	}
	raw, err := yaml.Marshal(osc)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.reconciler.apply(m.t.Context(), applying{osc: osc.DeepCopy(), before: before, raw: raw})
}

func (m *machine) mustApply(osc *extensionsv1alpha1.OperatingSystemConfig) applied {
	m.t.Helper()
	done, err := m.apply(osc)
	if err != nil {
		m.t.Fatal(err)
	}
	return done
}

// files are the contents of all files of the machine, without the agent's own state.
func (m *machine) files() map[string]string {
	m.t.Helper()
	files := map[string]string{}
	root := string(m.Root)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, root)
		data, err := os.ReadFile(path)
		if !strings.HasPrefix(name, nodeagentconfigv1alpha1.BaseDir) {
			files[name] = string(data)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return files
}

func inline(path, data string) file {
	return file{Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: data}}}
}

func inImage(path, image string) file {
	return file{Path: path, Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: image, FilePathInImage: "/bin/x"}}}
}

// example has a unit of the operating system with a drop-in, a unit with files of both kinds, and one that is stopped and disabled.
func example() *extensionsv1alpha1.OperatingSystemConfig {
	return &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
		Units: []unit{
			{Name: "system.service", DropIns: []extensionsv1alpha1.DropIn{{Name: "10.conf", Content: "drop-in"}}},
			{Name: "app.service", Content: new("app"), FilePaths: []string{"/etc/app", "/opt/bin/app"}},
			{Name: "off.service", Content: new("off"), Enable: new(false), Command: new(extensionsv1alpha1.CommandStop)},
			{Name: nodeagentconfigv1alpha1.UnitName, Content: new("agent"), FilePaths: []string{"/etc/agent"}},
		},
		Files: []file{inline("/etc/app", "config"), inImage("/opt/bin/app", "app:1"), inline("/etc/other", "other"), inline("/etc/agent", "agent")},
	}}
}

func TestApply(t *testing.T) {
	first := map[string]string{
		"/etc/systemd/system/system.service.d/10.conf": "drop-in", "/etc/systemd/system/app.service": "app", "/etc/systemd/system/off.service": "off",
		"/etc/systemd/system/" + nodeagentconfigv1alpha1.UnitName: "agent",
		"/etc/app": "config", "/opt/bin/app": "/bin/x of app:1", "/etc/other": "other", "/etc/agent": "agent",
	}
	without := func(path ...string) map[string]string {
		files := map[string]string{}
		for name, content := range first {
			files[name] = content
		}
		for _, path := range path {
			delete(files, path)
		}
		return files
	}
	with := func(path, content string) map[string]string {
		files := without()
		files[path] = content
		return files
	}
	type osc = extensionsv1alpha1.OperatingSystemConfig
	for name, tc := range map[string]struct {
		tamper  func(*machine) // with the machine, after the first configuration
		change  func(*osc)
		files   map[string]string
		starts  map[string]int // beyond those of the first configuration
		images  []string
		self    bool
		running []string // units
		stopped []string // units, which are disabled, too
	}{
		"nothing": {files: first, running: []string{"system.service", "app.service"}, stopped: []string{"off.service"}},
		"a file that a unit uses": {
			change: func(o *osc) { o.Spec.Files[0] = inline("/etc/app", "new") }, files: with("/etc/app", "new"), starts: map[string]int{"app.service": 1},
		},
		"a file that no unit uses": {change: func(o *osc) { o.Spec.Files[2] = inline("/etc/other", "new") }, files: with("/etc/other", "new")},
		"permissions":              {change: func(o *osc) { o.Spec.Files[0].Permissions = new(uint32(0o600)) }, files: first, starts: map[string]int{"app.service": 1}},
		"another image": {
			change: func(o *osc) { o.Spec.Files[1] = inImage("/opt/bin/app", "app:2") }, files: with("/opt/bin/app", "/bin/x of app:2"),
			starts: map[string]int{"app.service": 1}, images: []string{"app:2"},
		},
		"a drop-in": {
			change: func(o *osc) { o.Spec.Units[0].DropIns[0].Content = "new" },
			files:  with("/etc/systemd/system/system.service.d/10.conf", "new"), starts: map[string]int{"system.service": 1},
		},
		"a drop-in is removed": {
			change: func(o *osc) { o.Spec.Units[0].DropIns = nil }, files: without("/etc/systemd/system/system.service.d/10.conf"),
			starts: map[string]int{"system.service": 1},
		},
		"a unit of the operating system is removed": {
			change: func(o *osc) { o.Spec.Units = o.Spec.Units[1:] }, files: without("/etc/systemd/system/system.service.d/10.conf"),
			starts: map[string]int{"system.service": 1}, running: []string{"system.service"},
		},
		"a unit and its files are removed": {
			change: func(o *osc) {
				o.Spec.Units = append(o.Spec.Units[:1:1], o.Spec.Units[2:]...)
				o.Spec.Files = o.Spec.Files[2:]
			},
			files: without("/etc/systemd/system/app.service", "/etc/app", "/opt/bin/app"), stopped: []string{"app.service"},
		},
		"a unit is started and enabled": {
			change: func(o *osc) {
				o.Spec.Units[2].Command, o.Spec.Units[2].Enable = new(extensionsv1alpha1.CommandStart), nil
			},
			files: first, starts: map[string]int{"off.service": 1}, running: []string{"off.service"},
		},
		"the agent's own file": {change: func(o *osc) { o.Spec.Files[3] = inline("/etc/agent", "new") }, files: with("/etc/agent", "new"), self: true},
		"a file was changed on the machine": {
			tamper: func(m *machine) { m.write("/etc/app", "mine") }, files: first, starts: map[string]int{"app.service": 1},
		},
		"a binary was removed from the machine": {
			tamper: func(m *machine) { m.remove("/opt/bin/app") }, files: first, starts: map[string]int{"app.service": 1}, images: []string{"app:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if done := m.mustApply(example()); done.self {
				t.Error("a new agent is to restart")
			}
			if diff := cmp.Diff(map[string]int{"system.service": 1, "app.service": 1}, m.systemd.Starts()); diff != "" {
				t.Fatalf("starts by the first configuration (-want +got):\n%s", diff)
			}
			m.images = nil
			if tc.tamper != nil {
				tc.tamper(m)
			}
			next := example()
			if tc.change != nil {
				tc.change(next)
			}
			if done := m.mustApply(next); done.self != tc.self {
				t.Errorf("the agent is to restart: %v", done.self)
			}
			m.outdated = false // it has restarted
			if diff := cmp.Diff(tc.files, m.files()); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			starts := map[string]int{"system.service": 1, "app.service": 1}
			for unit, more := range tc.starts {
				starts[unit] += more
			}
			if diff := cmp.Diff(starts, m.systemd.Starts()); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.images, m.images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			for _, unit := range tc.running {
				if u := m.systemd.Unit(unit); !u.Running {
					t.Errorf("unit %s is %+v", unit, u)
				}
			}
			for _, unit := range tc.stopped {
				if u := m.systemd.Unit(unit); u.Running || u.Enabled {
					t.Errorf("unit %s is %+v", unit, u)
				}
			}
			// A steady state changes nothing.
			reloads, starts := m.systemd.Reloads(), m.systemd.Starts()
			m.images = nil
			if done := m.mustApply(next); done.self || m.systemd.Reloads() != reloads || m.images != nil {
				t.Errorf("a second pass changed something: %+v", done)
			}
			if diff := cmp.Diff(starts, m.systemd.Starts()); diff != "" {
				t.Errorf("starts by a second pass (-want +got):\n%s", diff)
			}
		})
	}
}

func (m *machine) write(path, data string) {
	if err := m.Root.Write(path, []byte(data), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) remove(path string) {
	if err := m.Root.Remove(path); err != nil {
		m.t.Fatal(err)
	}
}

func TestUnitThatDidNotStartIsRestartedByTheNextPass(t *testing.T) {
	m, broken := newMachine(t), errors.New("broken")
	m.mustApply(example())
	m.systemd.Set("app.service", func(u *fake.Unit) { u.Fails = broken })
	next := example()
	next.Spec.Files[0] = inline("/etc/app", "new")
	if _, err := m.apply(next); !errors.Is(err, broken) {
		t.Fatalf("error is %v", err)
	}
	m.systemd.Set("app.service", func(u *fake.Unit) { u.Fails = nil })
	m.mustApply(next) // all files are up to date
	if diff := cmp.Diff(map[string]int{"system.service": 1, "app.service": 2}, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if m.Root.Exists(pendingFile) {
		t.Error("units are still to be restarted")
	}
}

func TestUnitThatKeepsFailingDoesNotRestartOthers(t *testing.T) {
	m, broken := newMachine(t), errors.New("broken")
	m.systemd.Set("system.service", func(u *fake.Unit) { u.Fails = broken })
	for range 3 {
		if _, err := m.apply(example()); !errors.Is(err, broken) {
			t.Fatalf("error is %v", err)
		}
	}
	if diff := cmp.Diff(map[string]int{"app.service": 1}, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"app:1"}, m.images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestFilesOfAConfigurationThatFailedAreRemoved(t *testing.T) {
	m, broken := newMachine(t), errors.New("broken")
	m.mustApply(example())
	files := m.files()
	m.systemd.Set("new.service", func(u *fake.Unit) { u.Fails = broken })
	failing := example()
	failing.Spec.Files = append(failing.Spec.Files, inline("/etc/new", "new"))
	failing.Spec.Units = append(failing.Spec.Units, unit{Name: "new.service", Content: new("new"), FilePaths: []string{"/etc/new"}})
	failing.Spec.Units[0].DropIns = append(failing.Spec.Units[0].DropIns, extensionsv1alpha1.DropIn{Name: "20.conf"})
	if _, err := m.apply(failing); !errors.Is(err, broken) {
		t.Fatalf("error is %v", err)
	}
	m.mustApply(example())
	if diff := cmp.Diff(files, m.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if u := m.systemd.Unit("new.service"); u.Running || u.Enabled {
		t.Errorf("unit is %+v", u)
	}
}

func TestUnitThatTheMachineDoesNotHaveIsForgotten(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	files, starts := m.files(), m.systemd.Starts()
	m.systemd.Set("none.service", func(u *fake.Unit) { u.Missing = true })
	mistaken := example()
	mistaken.Spec.Units[0].Name = "none.service"
	if _, err := m.apply(mistaken); err == nil {
		t.Fatal("a unit in the configuration that does not exist is no error")
	}
	m.mustApply(example())
	if diff := cmp.Diff(files, m.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	starts["system.service"] += 2 // without its drop-in, and with it
	if diff := cmp.Diff(starts, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if m.Root.Exists(pendingFile) {
		t.Error("units are still to be restarted")
	}
}

func TestMaskedUnitIsSkipped(t *testing.T) {
	m := newMachine(t)
	m.systemd.Set("system.service", func(u *fake.Unit) { u.Masked = true })
	m.mustApply(example())
	if u := m.systemd.Unit("system.service"); u.Running || u.Enabled {
		t.Errorf("unit is %+v", u)
	}
}

func TestAgentIsNotExtractedAgainOnANewMachine(t *testing.T) {
	m := newMachine(t)
	m.write(nodeagentconfigv1alpha1.PathBinary, "agent")
	m.write("/var/lib/gardener-node-agent/installed-image", "gardener:1\n")
	osc := example()
	agent := inImage(nodeagentconfigv1alpha1.PathBinary, "gardener:1")
	agent.Permissions, agent.Content.ImageRef.FilePathInImage = new(uint32(0o755)), "/usr/local/bin/gardener"
	osc.Spec.Files = append(osc.Spec.Files, agent)
	m.mustApply(osc)
	if diff := cmp.Diff([]string{"app:1"}, m.images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestContainerd(t *testing.T) {
	m := newMachine(t)
	m.write(containerdConfig, "version = 3\noom_score = -1\n")
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{
		Name: extensionsv1alpha1.CRINameContainerD, CgroupDriver: new(extensionsv1alpha1.CgroupDriverSystemd),
		Containerd: &extensionsv1alpha1.ContainerdConfig{SandboxImage: "pause:1", Registries: []extensionsv1alpha1.RegistryConfig{
			{Upstream: "a.example.com", Hosts: []extensionsv1alpha1.RegistryHost{{URL: "http://mirror"}}},
			{Upstream: "b.example.com", Hosts: []extensionsv1alpha1.RegistryHost{{URL: "http://ready"}, {URL: "http://late", CACerts: []string{"/etc/ca"}}}, ReadinessProbe: new(true)},
		}},
	}
	osc.Spec.Files = []file{inline("/etc/ca", "CA")}
	ready := errors.New("not ready")
	m.Probe = func(_ context.Context, root rootfs.Dir, registry string, mirror extensionsv1alpha1.RegistryHost) error {
		if registry != "b.example.com" {
			t.Errorf("a mirror of %s is probed", registry)
		}
		if mirror.URL != "http://late" {
			return nil
		}
		if !root.Exists(mirror.CACerts[0]) {
			t.Error("its CA certificate is missing")
		}
		return ready
	}
	if diff := cmp.Diff([]string{"b.example.com"}, m.mustApply(osc).unready); diff != "" {
		t.Errorf("mirrors that are not ready (-want +got):\n%s", diff)
	}
	if !m.Root.Exists(containerd.HostsPath("a.example.com")) || m.Root.Exists(containerd.HostsPath("b.example.com")) {
		t.Errorf("files are %v", m.files())
	}
	ready = nil
	m.mustApply(osc)
	if diff := cmp.Diff(map[string]int{"containerd.service": 1}, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	config := m.files()[containerdConfig]
	// The temporary root has no cgroup v2, which systemd's driver needs.
	if !strings.Contains(config, "SystemdCgroup = false") || !strings.Contains(config, "oom_score = -1") || !strings.Contains(config, `sandbox = "pause:1"`) {
		t.Errorf("containerd's configuration is\n%s", config)
	}
	m.write("/sys/fs/cgroup/cgroup.controllers", "cpu")
	osc.Spec.CRIConfig.Containerd.SandboxImage = "pause:2"
	osc.Spec.CRIConfig.Containerd.Registries = osc.Spec.CRIConfig.Containerd.Registries[1:]
	m.mustApply(osc)
	config = m.files()[containerdConfig]
	if !strings.Contains(config, "SystemdCgroup = true") || !strings.Contains(config, "oom_score = -1") || strings.Contains(config, "pause:1") {
		t.Errorf("containerd's configuration is\n%s", config)
	}
	if m.Root.Exists("/etc/containerd/certs.d/a.example.com") || !m.Root.Exists(containerd.HostsPath("b.example.com")) {
		t.Errorf("files are %v", m.files())
	}
	if diff := cmp.Diff(map[string]int{"containerd.service": 2}, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

// Without that, no pod of gVisor starts: containerd searches for its shim in PATH.
func TestContainerdFindsRuntimesOfExtensions(t *testing.T) {
	const dropIn = "/etc/systemd/system/containerd.service.d/30-env_config.conf"
	m := newMachine(t)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD}
	osc.Spec.Units = []unit{{Name: "containerd.service", Command: new(extensionsv1alpha1.CommandStart), Enable: new(true)}}
	m.mustApply(osc)
	want := "[Service]\nEnvironment=\"PATH=/var/bin/containerruntimes:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
	if got := m.files()[dropIn]; got != want || !m.Root.Exists("/var/bin/containerruntimes") {
		t.Errorf("the drop-in is %q, want %q", got, want)
	}
	// A machine of an earlier version gets it, too.
	if err := m.Root.Remove(dropIn); err != nil {
		t.Fatal(err)
	}
	m.mustApply(osc)
	m.mustApply(osc)
	if starts := m.systemd.Starts()["containerd.service"]; starts != 2 || !m.Root.Exists(dropIn) {
		t.Errorf("containerd has started %d times, want 2", starts)
	}
	osc.Status.ExtensionUnits = []unit{{Name: "containerd.service", DropIns: []extensionsv1alpha1.DropIn{{Name: "30-env_config.conf", Content: "own"}}}}
	m.mustApply(osc)
	if got := m.files()[dropIn]; got != "own" {
		t.Errorf("the drop-in of an extension became %q", got)
	}
	osc.Status, osc.Spec.CRIConfig = extensionsv1alpha1.OperatingSystemConfigStatus{}, nil
	m.mustApply(osc)
	if m.Root.Exists(dropIn) {
		t.Error("the drop-in is left without containerd")
	}
}

// The installer of gVisor appends its runtime to the file once, and not again when it is gone.
func TestRuntimesOfInstallersStay(t *testing.T) {
	const own = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.image]\nruntime_type = 'image'\n"
	m := newMachine(t)
	m.write(containerdConfig, own)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD, Containerd: &extensionsv1alpha1.ContainerdConfig{
		Plugins: []extensionsv1alpha1.PluginConfig{{
			Path: []string{"io.containerd.grpc.v1.cri", "containerd", "runtimes", "fromosc"}, Values: &apiextensionsv1.JSON{Raw: []byte(`{"runtime_type":"osc"}`)},
		}},
	}}
	m.mustApply(osc)
	written := m.files()[containerdConfig]
	for name, plugin := range map[string]string{"containerd 1": "io.containerd.grpc.v1.cri", "containerd 2": "io.containerd.cri.v1.runtime"} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			m.write(containerdConfig, written+"[plugins.'"+plugin+"'.containerd.runtimes.runsc]\nruntime_type = 'io.containerd.runsc.v1'\n"+
				"[plugins.'"+plugin+"'.containerd.runtimes.runsc.options]\nTypeUrl = 'u'\n")
			m.mustApply(osc)
			with := m.files()[containerdConfig]
			const want = "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runsc]\nruntime_type = \"io.containerd.runsc.v1\"\n" +
				"[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runsc.options]\nTypeUrl = \"u\"\n"
			if !strings.Contains(with, want) || !strings.Contains(with, "runtimes.image]") || !strings.Contains(with, "runtimes.fromosc]") {
				t.Errorf("containerd's configuration is\n%s", with)
			}
			starts := m.systemd.Starts()["containerd.service"]
			m.mustApply(osc)
			if more := m.systemd.Starts()["containerd.service"] - starts; more != 0 || m.files()[containerdConfig] != with {
				t.Errorf("another pass restarted containerd %d times; its configuration is\n%s", more, m.files()[containerdConfig])
			}
		})
	}
	m.t = t
	// What configurations have no longer does not stay, nor do changes of runtimes that the agent configures.
	m.write(containerdConfig, strings.ReplaceAll(m.files()[containerdConfig], "io.containerd.runc.v2", "changed"))
	osc.Spec.CRIConfig.Containerd.Plugins = nil
	m.mustApply(osc)
	for range 2 {
		config := m.files()[containerdConfig]
		if strings.Contains(config, "fromosc") || strings.Contains(config, "changed") || !strings.Contains(config, "runtimes.runsc]") {
			t.Errorf("containerd's configuration is\n%s", config)
		}
		m.mustApply(osc)
	}
	osc.Spec.CRIConfig.Containerd.Plugins = []extensionsv1alpha1.PluginConfig{{
		Path: []string{"io.containerd.grpc.v1.cri", "containerd", "runtimes", "runsc"}, Op: new(extensionsv1alpha1.RemovePluginPathOperation),
	}}
	m.mustApply(osc)
	if config := m.files()[containerdConfig]; strings.Contains(config, "runsc") {
		t.Errorf("a runtime that the configuration removes is left:\n%s", config)
	}
	m.write(containerdConfig, "=")
	m.mustApply(osc)
	if config := m.files()[containerdConfig]; !strings.Contains(config, "runtimes.image]") {
		t.Errorf("a file that containerd cannot read became\n%s", config)
	}
}

// crash applies a configuration and expects a panic, which stands for a process that is killed.
func (m *machine) crash(osc *extensionsv1alpha1.OperatingSystemConfig) {
	m.t.Helper()
	defer func() {
		if recover() == nil {
			m.t.Fatal("the pass did not reach the point where it is to crash")
		}
	}()
	_, _ = m.apply(osc)
}

// crashing is a systemd whose client crashes when it restarts a unit.
type crashing struct {
	*fake.Systemd
	unit string
}

func (c crashing) Restart(ctx context.Context, unit string) error {
	if unit == c.unit {
		panic("crash")
	}
	return c.Systemd.Restart(ctx, unit)
}

func TestUnitIsStartedByTheNextPassAfterACrash(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	extract := m.Extract
	m.Extract = func(context.Context, rootfs.Dir, string, []imagefile.File, func() error) error { panic("crash") }
	next := example()
	next.Spec.Units[2].Command, next.Spec.Units[2].Enable = nil, nil
	next.Spec.Files[1] = inImage("/opt/bin/app", "app:2")
	m.crash(next)
	m.Extract = extract
	m.mustApply(next)
	if u := m.systemd.Unit("off.service"); !u.Running || !u.Enabled {
		t.Errorf("unit is %+v", u)
	}
}

func TestAgentsConfigurationComesAfterItsBinary(t *testing.T) {
	for name, fail := range map[string]func() error{
		"killed": func() error { panic("crash") },
		"failed": func() error { return errors.New("no such image") },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			config := func() string {
				t.Helper()
				data, err := m.Root.Read(operatingsystemconfig.NodeAgentConfigFile)
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			agent := func(version string) *extensionsv1alpha1.OperatingSystemConfig {
				osc := example()
				osc.Spec.Files = append(osc.Spec.Files, inline(operatingsystemconfig.NodeAgentConfigFile, version), inImage(nodeagentconfigv1alpha1.PathBinary, version))
				return osc
			}
			m.mustApply(agent("1"))
			extract := m.Extract
			m.Extract = func(context.Context, rootfs.Dir, string, []imagefile.File, func() error) error { return fail() }
			func() {
				defer func() { _ = recover() }()
				if _, err := m.apply(agent("2")); err == nil {
					t.Error("an image that cannot be extracted is no error")
				}
			}()
			if got := config(); got != "1" {
				t.Errorf("the configuration is %q beside the old binary", got)
			}
			m.Extract = extract
			m.mustApply(agent("2"))
			if got := config(); got != "2" {
				t.Errorf("the configuration is %q", got)
			}
		})
	}
}

// An older binary does not start with the configuration of a newer one.
func TestAgentsConfigurationComesWithItsBinaryWhateverElseFails(t *testing.T) {
	m := newMachine(t)
	agent := func(version string) *extensionsv1alpha1.OperatingSystemConfig {
		osc := example()
		osc.Spec.Files[1] = inImage("/opt/bin/app", "z-app:"+version) // its image is the last by name
		osc.Spec.Files = append(osc.Spec.Files, inline(operatingsystemconfig.NodeAgentConfigFile, version), inImage(nodeagentconfigv1alpha1.PathBinary, "agent:"+version))
		return osc
	}
	m.mustApply(agent("2"))
	extract, config, last := m.Extract, "", ""
	m.Extract = func(ctx context.Context, root rootfs.Dir, image string, files []imagefile.File, replace func() error) error {
		last = image
		data, err := root.Read(operatingsystemconfig.NodeAgentConfigFile)
		if config = string(data); err != nil || image != "agent:1" {
			return errors.Join(err, errors.New("no such image"))
		}
		return extract(ctx, root, image, files, replace)
	}
	if _, err := m.apply(agent("1")); err == nil {
		t.Error("an image that cannot be extracted is no error")
	}
	if config != "2" {
		t.Errorf("the configuration is %q beside the old binary", config)
	}
	binary, err := m.Root.Read(nodeagentconfigv1alpha1.PathBinary)
	if err != nil || string(binary) != "/bin/x of agent:1" {
		t.Fatalf("the binary is %q, %v", binary, err)
	}
	if data, err := m.Root.Read(operatingsystemconfig.NodeAgentConfigFile); err != nil || string(data) != "1" {
		t.Errorf("the configuration is %q beside the new binary, %v", data, err)
	}
	if last != "agent:1" {
		t.Errorf("image %q was extracted between binary and configuration", last)
	}
}

func TestUnitsAreNotRestartedAgainAfterACrash(t *testing.T) {
	m := newMachine(t)
	m.Systemd = crashing{m.systemd, "app.service"}
	m.crash(example()) // after system.service
	m.Systemd = m.systemd
	m.mustApply(example())
	if diff := cmp.Diff(map[string]int{"system.service": 1, "app.service": 1}, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

func TestUnitIsRestartedWhenItLosesAFile(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	next := example()
	next.Spec.Units[1].FilePaths, next.Spec.Files = []string{"/opt/bin/app"}, next.Spec.Files[1:]
	m.mustApply(next)
	if diff := cmp.Diff(map[string]int{"system.service": 1, "app.service": 2}, m.systemd.Starts()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

func TestAgentRestartsAlsoAfterAPassThatFailed(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	m.systemd.Set("app.service", func(u *fake.Unit) { u.Fails = errors.New("broken") })
	next := example()
	next.Spec.Files[0], next.Spec.Files[3] = inline("/etc/app", "new"), inline("/etc/agent", "new")
	if _, err := m.apply(next); err == nil {
		t.Fatal("a unit that does not start is no error")
	}
	m.systemd.Set("app.service", func(u *fake.Unit) { u.Fails = nil })
	if done := m.mustApply(next); !done.self {
		t.Error("the agent does not restart")
	}
}

func TestSystemdReadsTheAgentsUnitAlsoAfterAPassThatDidNotEnd(t *testing.T) {
	for name, end := range map[string]func(){"failed": func() {}, "killed": func() { panic("crash") }} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.mustApply(example())
			reloads := m.systemd.Reloads()
			next := example()
			next.Spec.Units[3].Content = new("new")
			m.Systemd = unreadable{m.systemd, end}
			func() {
				defer func() { _ = recover() }()
				if _, err := m.apply(next); err == nil {
					t.Error("a unit that cannot be read is no error")
				}
			}()
			m.Systemd, m.outdated = m.systemd, false // another agent
			m.mustApply(next)
			if more := m.systemd.Reloads() - reloads; more != 1 {
				t.Errorf("unit files were reloaded %d times", more)
			}
		})
	}
}

// unreadable is a systemd that cannot read unit files.
type unreadable struct {
	*fake.Systemd
	before func()
}

func (u unreadable) Reload(context.Context) error {
	u.before()
	return errors.New("cannot read unit")
}

// Extensions bring drop-ins of units that the operating system has as files, and restart the units themselves.
func TestSystemdReadsDropInsThatAreFiles(t *testing.T) {
	const path = "/etc/systemd/system/rsyslog.service.d/10-memory.conf"
	with := func(files ...file) *extensionsv1alpha1.OperatingSystemConfig {
		osc := example()
		osc.Spec.Files = append(osc.Spec.Files, files...)
		return osc
	}
	m := newMachine(t)
	m.mustApply(with())
	for _, step := range []struct {
		name string
		osc  *extensionsv1alpha1.OperatingSystemConfig
		dies bool // the agent dies before systemd has read the file
		want int
	}{
		{name: "another file", osc: with(inline("/etc/rsyslog.d/60-audit.conf", "old")), want: 0},
		{name: "a new drop-in", osc: with(inline(path, "old")), want: 1},
		{name: "the same drop-in", osc: with(inline(path, "old")), want: 0},
		{name: "another content", osc: with(inline(path, "new")), want: 1},
		{name: "no drop-in", osc: with(), want: 1},
		{name: "a drop-in from an image", osc: with(inImage(path, "i")), want: 1},
		{name: "a drop-in after the agent died", osc: with(inline(path, "newer")), dies: true, want: 1},
	} {
		reloads := m.systemd.Reloads()
		if step.dies {
			m.Systemd = unreadable{m.systemd, func() {}}
			if _, err := m.apply(step.osc); err == nil {
				t.Error("a unit that cannot be read is no error")
			}
			m.Systemd = m.systemd
		}
		m.mustApply(step.osc)
		if more := m.systemd.Reloads() - reloads; more != step.want {
			t.Errorf("%s: unit files were reloaded %d times, want %d", step.name, more, step.want)
		}
	}
}

func TestFilesOfSeveralConfigurationsThatFailedAreRemoved(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	files := m.files()
	m.systemd.Set("new.service", func(u *fake.Unit) { u.Fails = errors.New("broken") })
	first := example()
	first.Spec.Files = append(first.Spec.Files, inline("/etc/new", "new"))
	first.Spec.Units = append(first.Spec.Units, unit{Name: "new.service", Content: new("new")})
	if _, err := m.apply(first); err == nil {
		t.Fatal("a unit that does not start is no error")
	}
	second := example()
	second.Spec.Files[2].Content = extensionsv1alpha1.FileContent{}
	if _, err := m.apply(second); err == nil {
		t.Fatal("a file without content is no error")
	}
	m.mustApply(example())
	if diff := cmp.Diff(files, m.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if u := m.systemd.Unit("new.service"); u.Running || u.Enabled {
		t.Errorf("unit is %+v", u)
	}
}

func TestFileIsExtractedAgainAfterItWasInline(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	other := example()
	other.Spec.Files[1] = inline("/opt/bin/app", "script")
	m.mustApply(other)
	m.mustApply(example())
	if got := m.files()["/opt/bin/app"]; got != "/bin/x of app:1" {
		t.Errorf("file is %q", got)
	}
}

// fails makes it impossible to write a file until the returned function is called: the place of its temporary file is taken.
func (m *machine) fails(path string) (works func()) {
	m.t.Helper()
	temp := filepath.Join(filepath.Dir(path), ".gardener-"+filepath.Base(path))
	m.write(temp+"/file", "")
	return func() {
		m.t.Helper()
		if err := os.RemoveAll(m.Root.Path(temp)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// A unit that was not saved as one to restart would run with its old file for ever, as the next pass finds the new one in place.
func TestNoFileChangesBeforeItsUnitIsSavedForRestart(t *testing.T) {
	withContainerd := func() *extensionsv1alpha1.OperatingSystemConfig {
		osc := example()
		osc.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD, Containerd: &extensionsv1alpha1.ContainerdConfig{SandboxImage: "pause:1"}}
		return osc
	}
	type osc = extensionsv1alpha1.OperatingSystemConfig
	for name, tc := range map[string]struct {
		change func(*osc)
		unit   string
	}{
		"containerd's configuration": {change: func(o *osc) { o.Spec.CRIConfig.Containerd.SandboxImage = "pause:2" }, unit: "containerd.service"},
		"a file":                     {change: func(o *osc) { o.Spec.Files[0] = inline("/etc/app", "new") }, unit: "app.service"},
		"a file in an image":         {change: func(o *osc) { o.Spec.Files[1] = inImage("/opt/bin/app", "app:2") }, unit: "app.service"},
		"a file that is removed":     {change: func(o *osc) { o.Spec.Files = o.Spec.Files[1:] }, unit: "app.service"},
		"two files of a unit": {
			change: func(o *osc) {
				o.Spec.Files[0], o.Spec.Files[1] = inline("/etc/app", "new"), inline("/opt/bin/app", "script")
			},
			unit: "app.service",
		},
		"a unit file":               {change: func(o *osc) { o.Spec.Units[1].Content = new("new") }, unit: "app.service"},
		"a drop-in that is removed": {change: func(o *osc) { o.Spec.Units[0].DropIns = nil }, unit: "system.service"},
		"a command":                 {change: func(o *osc) { o.Spec.Units[2].Command = nil }, unit: "off.service"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.mustApply(withContainerd())
			before, starts := m.files(), m.systemd.Unit(tc.unit).Starts
			next := withContainerd()
			tc.change(next)
			works := m.fails(pendingFile)
			if _, err := m.apply(next); err == nil {
				t.Fatal("units that are not saved are no error")
			}
			if diff := cmp.Diff(before, m.files()); diff != "" {
				t.Errorf("files that changed (-before +after):\n%s", diff)
			}
			works()
			m.mustApply(next)
			if more := m.systemd.Unit(tc.unit).Starts - starts; more != 1 {
				t.Errorf("%s was started %d times, want once", tc.unit, more)
			}
		})
	}
}

// An extraction that ends half way leaves files of two images.
func TestFilesOfAnExtractionThatFailedAreExtractedAgain(t *testing.T) {
	m := newMachine(t)
	m.mustApply(example())
	next := example()
	next.Spec.Files[1] = inImage("/opt/bin/app", "app:2")
	extract := m.Extract
	m.Extract = func(ctx context.Context, root rootfs.Dir, image string, files []imagefile.File, replace func() error) error {
		return errors.Join(extract(ctx, root, image, files, replace), errors.New("broken"))
	}
	if _, err := m.apply(next); err == nil {
		t.Fatal("an image that cannot be extracted is no error")
	}
	m.Extract = extract
	m.mustApply(example())
	if got := m.files()["/opt/bin/app"]; got != "/bin/x of app:1" {
		t.Errorf("file is %q", got)
	}
}

// A new binary may not start with an old configuration.
func TestAgentsConfigurationComesWithItsBinaryWhenTheOriginIsNotSaved(t *testing.T) {
	m := newMachine(t)
	osc := example()
	osc.Spec.Files = append(osc.Spec.Files, inline(operatingsystemconfig.NodeAgentConfigFile, "1"), inImage(nodeagentconfigv1alpha1.PathBinary, "agent:1"))
	extract := m.Extract
	m.Extract = func(ctx context.Context, root rootfs.Dir, image string, files []imagefile.File, replace func() error) error {
		err := extract(ctx, root, image, files, replace)
		if image == "agent:1" {
			m.fails(imageFilesFile)
		}
		return err
	}
	if _, err := m.apply(osc); err == nil {
		t.Error("an origin that is not saved is no error")
	}
	binary, _ := m.Root.Read(nodeagentconfigv1alpha1.PathBinary)
	config, _ := m.Root.Read(operatingsystemconfig.NodeAgentConfigFile)
	if string(binary) != "/bin/x of agent:1" || string(config) != "1" {
		t.Errorf("binary is %q, configuration %q", binary, config)
	}
}
