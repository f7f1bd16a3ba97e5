package landscape

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
)

//go:embed files
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "files/*.tmpl"))

func render(name string, values any) ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, values); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// mirroredRegistries are the registries whose images machines pull from the landscape's registry first. It holds an image under its whole
// name, including the registry, so images of different registries never mix.
var mirroredRegistries = []string{
	"docker.io", "europe-docker.pkg.dev", "gcr.io", "ghcr.io", "public.ecr.aws", "quay.io", "registry.k8s.io", RegistryHost,
}

// mirror is a registry whose images are pulled from the landscape's registry first, and from Server after that.
type mirror struct{ Host, Server string }

func (l *Landscape) mirrors() []mirror {
	mirrors := make([]mirror, 0, len(mirroredRegistries))
	for _, registry := range mirroredRegistries {
		server := "https://" + registry
		switch registry {
		case "docker.io":
			server = "https://registry-1.docker.io" // docker.io is a name, not a server.
		case RegistryHost:
			server = fmt.Sprintf("http://%s", l.registryAddress())
		}
		mirrors = append(mirrors, mirror{Host: registry, Server: server})
	}
	return mirrors
}

// verb is the subcommand of kubeadm for a machine.
func verb(cluster Cluster, machine Machine) string {
	if cluster.Machines[0].Name == machine.Name {
		return "init"
	}
	return "join"
}

func (l *Landscape) machineDir(machine string) string {
	return filepath.Join(l.Dir, "machines", machine)
}

// backupBuckets is the directory of provider-local's buckets on a machine.
const backupBuckets = "/etc/gardener/local-backupbuckets"

// backupsDir is the directory of the buckets on this computer.
func (l *Landscape) backupsDir() string { return filepath.Join(l.Dir, "backups") }

// userDataDir is the directory that a machine mounts at /etc/machine.
func (l *Landscape) userDataDir(machine string) string {
	return filepath.Join(l.machineDir(machine), "userdata")
}

// ensureMachine starts a machine of a cluster.
func (l *Landscape) ensureMachine(ctx context.Context, client *containers.Client, cluster Cluster, machine Machine, image, kubernetes string) error {
	userData, err := render("userdata.sh.tmpl", map[string]any{
		"Mirrors": l.mirrors(), "Registry": l.registryAddress(), "Verb": verb(cluster, machine),
	})
	if err != nil {
		return err
	}
	if err := host.WriteFile(filepath.Join(l.userDataDir(machine.Name), "userdata"), userData, 0o755); err != nil {
		return err
	}
	mounts, err := l.machineMounts(machine, "containerd", "kubelet", "etcd")
	if err != nil {
		return err
	}
	mounts = append(mounts, bind(kubernetes, "/opt/kubernetes/bin", "ro"))
	if verb(cluster, machine) == "init" {
		if err := os.MkdirAll(l.AuditDir(cluster), 0o700); err != nil {
			return err
		}
		mounts = append(mounts, bind(l.AuditDir(cluster), auditDir, "rw"))
	}
	// All machines mount the same backups, so that an etcd finds its own on any machine, and provider-local can delete them from any machine.
	if err := os.MkdirAll(l.backupsDir(), 0o755); err != nil { //nolint:gosec // etcd runs as another user
		return err
	}
	return l.bootMachine(ctx, client, machine, image, append(mounts, bind(l.backupsDir(), backupBuckets, "rw")))
}

// machineMounts are the mounts that each machine has: its user data, names, and directories of the host for the data of programs.
func (l *Landscape) machineMounts(machine Machine, data ...string) ([]specs.Mount, error) {
	resolv := filepath.Join(l.machineDir(machine.Name), "resolv.conf")
	if err := writeOnce(resolv, fmt.Sprintf("nameserver %s\n", l.network().Gateway())); err != nil {
		return nil, err
	}
	hosts := filepath.Join(l.machineDir(machine.Name), "hosts")
	if err := writeOnce(hosts, fmt.Sprintf("127.0.0.1 localhost\n::1 localhost\n%s %s\n", l.network().Machine(machine.Number), machine.Name)); err != nil {
		return nil, err
	}
	mounts := []specs.Mount{
		tmpfs("/run", "mode=755"), tmpfs("/tmp", "mode=1777"),
		bind(resolv, "/etc/resolv.conf", "rw"),
		bind(hosts, "/etc/hosts", "rw"),
		bind(l.userDataDir(machine.Name), "/etc/machine", "ro"),
	}
	// Overlay file systems do not stack, so data of containers is on the host's disk.
	for _, dir := range data {
		data := filepath.Join(l.machineDir(machine.Name), dir)
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		mounts = append(mounts, bind(data, "/var/lib/"+dir, "rw"))
	}
	if _, err := os.Stat("/lib/modules"); err == nil {
		mounts = append(mounts, bind("/lib/modules", "/lib/modules", "ro"))
	}
	return mounts, nil
}

// bootMachine starts a machine and waits until systemd has booted it.
func (l *Landscape) bootMachine(ctx context.Context, client *containers.Client, machine Machine, image string, mounts []specs.Mount) error {
	if err := l.network().EnsureMachine(ctx, machine.Name, machine.Number); err != nil {
		return err
	}
	container := containers.Container{
		Name: machine.Name, Image: image, Hostname: machine.Name, Privileged: true,
		Log: l.logFile(machine.Name), Network: l.network().MachineNamespacePath(machine.Name), Cgroup: l.machineCgroup(machine.Name),
		Mounts: mounts, KeepExisting: true,
	}
	for {
		if err := client.Ensure(ctx, container); err != nil {
			return err
		}
		err := awaitBoot(ctx, client, machine.Name)
		var ended *endedError
		if !errors.As(err, &ended) || ctx.Err() != nil {
			return err
		}
		// It was already shutting down; start it again.
	}
}

// endedError is a machine that ended while it booted.
type endedError struct {
	machine string
	err     error
}

func (e *endedError) Error() string { return fmt.Sprintf("machine %q ended: %v", e.machine, e.err) }
func (e *endedError) Unwrap() error { return e.err }

// awaitBoot returns when systemd has finished booting, including the user data.
func awaitBoot(ctx context.Context, client *containers.Client, machine string) error {
	pid, err := client.PID(ctx, machine)
	if err != nil {
		return err
	}
	if pid == 0 {
		return &endedError{machine, errors.New("it has no process")}
	}
	// systemctl needs this socket, which systemd creates early.
	if err := host.AwaitPath(ctx, fmt.Sprintf("/proc/%d/root/run/systemd/private", pid)); err != nil {
		return whyNotBooted(ctx, machine, pid, err)
	}
	_, err = client.Run(ctx, machine, nil, "systemctl", "is-system-running", "--wait")
	var exit *containers.ExitError
	if errors.As(err, &exit) && strings.Contains(exit.Output, "degraded") {
		// Only these are needed to go on; other failed units, such as kubeadm's, are started again later.
		_, err := client.Run(ctx, machine, nil, "systemctl", "is-failed", "--quiet", "machine-userdata.service", "containerd.service")
		if err == nil {
			return fmt.Errorf("machine %q booted, but its user data or containerd failed; see why with: landscape shell %s -- systemctl --failed", machine, machine)
		}
		if !errors.As(err, &exit) {
			return err
		}
		return nil
	}
	if err != nil {
		return whyNotBooted(ctx, machine, pid, err)
	}
	return nil
}

// whyNotBooted distinguishes a machine that is shutting down from one that does not boot.
func whyNotBooted(ctx context.Context, machine string, pid int, err error) error {
	// Units that depend on each other end one after the other, and each gets 20 s: the kubelet, containerd, remaining pods.
	const shutdown = 90 * time.Second
	ctx, cancel := context.WithTimeout(ctx, shutdown)
	defer cancel()
	if host.AwaitExit(ctx, pid) == nil {
		return &endedError{machine, err}
	}
	return fmt.Errorf("machine %q does not boot: %w", machine, err)
}

// writeOnce writes a file unless it exists: it is mounted into a container, which would not see a new one.
func writeOnce(path, content string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return host.WriteFile(path, []byte(content), 0o644)
}
