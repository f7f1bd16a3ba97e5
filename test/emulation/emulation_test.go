// Package emulation starts what is built for arm64 on a machine that need not be one, with the emulator of QEMU.
//
// By itself it builds and starts two small products. With -all it starts a program of every image, and of every product that gives binaries to
// nodes, as far as they are built: `make arm64` builds them first.
package emulation

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/klauspost/compress/zstd"

	"gardener.cloud/gardener/internal/distribution"
)

const (
	architecture = "arm64"
	emulator     = "qemu-aarch64" // Debian's package qemu-user
	// startTime is generous: the largest programs need some seconds emulated, on an idle machine.
	startTime = 2 * time.Minute
)

var all = flag.Bool("all", false, "start all products that are built, and the binary with all server components")

// start is a program that is started, and what it writes then.
type start struct {
	product string
	// repository is that of the image with the program, "" for a binary of the product, and layer for the layer that it gives to other images.
	repository string
	// command is the program, by its path in the image or its name, with arguments.
	command []string
	want    string
}

const layer = "layer"

var small = []start{
	{"flannel-cni-plugin", "", []string{"flannel"}, "CNI flannel plugin"},
	{"pause", "registry.k8s.io/pause", []string{"/pause"}, ""},
}

// The emulator has no sockets of netfilter: nft, which opens one first, has started when it says so. crun starts a copy of itself, which the emulator
// cannot; what it is linked with is started instead.
var others = []start{
	{"base-net", layer, []string{"/bin/busybox", "echo", "a shell"}, "a shell"},
	{"base-net", layer, []string{"/bin/kmod", "--version"}, "kmod version"},
	{"base-net", layer, []string{"/usr/sbin/conntrack", "--version"}, "conntrack v"},
	{"base-net", layer, []string{"/usr/sbin/iptables-legacy", "--version"}, "iptables v"},
	{"base-net", layer, []string{"/usr/sbin/nft", "--version"}, "Unable to initialize Netlink socket"},
	{"cluster-autoscaler", "registry.local.gardener.cloud/gardener/cluster-autoscaler", []string{"/cluster-autoscaler", "--help"}, "--nodes"},
	{"cni-plugins", "", []string{"bridge"}, "CNI bridge plugin"},
	{"cni-plugins", "", []string{"loopback"}, "CNI loopback plugin"},
	{"cni-plugins", "", []string{"ptp"}, "CNI ptp plugin"},
	{"cni-plugins", "", []string{"host-local"}, "CNI host-local plugin"},
	{"cni-plugins", "", []string{"bandwidth"}, "CNI bandwidth plugin"},
	{"cni-plugins", "", []string{"firewall"}, "CNI firewall plugin"},
	{"cni-plugins", "", []string{"portmap"}, "CNI portmap plugin"},
	{"cni-plugins", "", []string{"tuning"}, "CNI tuning plugin"},
	{"containerd", "", []string{"containerd", "--version"}, "containerd github.com/containerd/containerd/v2"},
	{"containerd", "", []string{"containerd-shim-runc-v2", "-v"}, "Version:"},
	{"containerd", "", []string{"ctr", "--version"}, "ctr github.com/containerd/containerd/v2"},
	{"coredns", "registry.k8s.io/coredns/coredns", []string{"/coredns", "-version"}, "linux/arm64"},
	{"crun", "registry.local.gardener.cloud/gardener/crun", []string{"/usr/local/bin/install-crun", "help"}, "use install or wait"},
	{"crun", "registry.local.gardener.cloud/gardener/crun", []string{"/opt/crun/lib/ld.so", "--library-path", "/opt/crun/lib", "--list", "/opt/crun/crun"}, "libseccomp.so.2"},
	{"etcd", "registry.k8s.io/etcd", []string{"/usr/local/bin/etcd", "--version"}, "linux/arm64"},
	{"etcd", "registry.k8s.io/etcd", []string{"/usr/local/bin/etcdctl", "version"}, "etcdctl version"},
	{"etcd", "registry.k8s.io/etcd", []string{"/usr/local/bin/etcdutl", "version"}, "etcdutl version"},
	{"haproxy", "docker.io/library/haproxy", []string{"/usr/sbin/haproxy", "-v"}, "HAProxy version 2.6"},
	{"haproxy", "docker.io/library/haproxy", []string{"/bin/busybox", "echo", "a shell"}, "a shell"},
	{"kubernetes", "registry.k8s.io/kube-apiserver", []string{"/usr/local/bin/kube-apiserver", "--version"}, "Kubernetes v"},
	{"kubernetes", "registry.k8s.io/kube-controller-manager", []string{"/usr/local/bin/kube-controller-manager", "--version"}, "Kubernetes v"},
	{"kubernetes", "registry.k8s.io/kube-scheduler", []string{"/usr/local/bin/kube-scheduler", "--version"}, "Kubernetes v"},
	{"kubernetes", "registry.k8s.io/kubectl", []string{"/usr/local/bin/kubectl", "version", "--client"}, "Client Version: v"},
	{"kubernetes", "registry.k8s.io/kube-proxy", []string{"/usr/local/bin/kube-proxy", "--version"}, "Kubernetes v"},
	{"kubernetes", "registry.k8s.io/hyperkube", []string{"/usr/local/bin/kubelet", "--version"}, "Kubernetes v"},
	{"local-loadbalancer", "registry.local.gardener.cloud/gardener/local-loadbalancer", []string{"/usr/local/bin/local-loadbalancer", "--help"}, "-pool"},
	{"local-storage", "registry.local.gardener.cloud/gardener/local-storage", []string{"/usr/local/bin/local-storage", "--help"}, "-"},
	{"metrics-server", "registry.k8s.io/metrics-server/metrics-server", []string{"/metrics-server", "--version"}, "v"},
	{"registry", "docker.io/library/registry", []string{"/usr/local/bin/registry", "--version"}, "/usr/local/bin/registry"},
	{"vertical-pod-autoscaler", "registry.k8s.io/autoscaling/vpa-recommender", []string{"/recommender", "--help"}, "--recommender-name"},
	{"vertical-pod-autoscaler", "registry.k8s.io/autoscaling/vpa-updater", []string{"/updater", "--help"}, "--updater-interval"},
	{"vertical-pod-autoscaler", "registry.k8s.io/autoscaling/vpa-admission-controller", []string{"/admission-controller", "--help"}, "--webhook-port"},
}

// processes are some of the binary with all server components: one of each kind of API machinery.
var processes = []string{"gardener-apiserver", "gardener-controller-manager", "gardener-node-agent", "gardener-operator", "gardener-resource-manager", "gardenlet"}

func TestStart(t *testing.T) {
	d := open(t)
	for _, s := range small {
		t.Run(s.name(), func(t *testing.T) {
			if _, err := d.Build(t.Context(), nil, s.product); err != nil {
				t.Fatal(err)
			}
			s.run(t, d)
		})
	}
}

func TestStartAll(t *testing.T) {
	if !*all {
		t.Skip("it starts everything that is built for arm64: make arm64")
	}
	d := open(t)
	listed := map[string]bool{"base": true} // files for other images, none of which is a program
	for _, s := range slices.Concat(small, others) {
		listed[s.product] = true
		t.Run(s.name(), func(t *testing.T) { s.run(t, d) })
	}
	for _, product := range d.All() {
		if !listed[product] {
			t.Errorf("no program of %s is started", product)
		}
	}
	_, executable, err := d.Release()
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		t.Run(process, func(t *testing.T) {
			if _, err := os.Stat(executable); err != nil {
				t.Skipf("%v; build it with: make build-%s", err, architecture)
			}
			check(t, "/", []string{executable, process, "--version"}, process+" version")
		})
	}
}

// open returns the distribution for arm64, if its programs can be started here.
func open(t *testing.T) *distribution.Distribution {
	t.Helper()
	if runtime.GOARCH != architecture {
		if _, err := exec.LookPath(emulator); err != nil {
			t.Skipf("%v; install it with: hack/deps.sh qemu-user", err)
		}
	}
	root, err := distribution.FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	d, err := distribution.Open(root, "")
	if err != nil {
		t.Fatal(err)
	}
	if d, err = d.For(architecture); err != nil {
		t.Fatal(err)
	}
	return d
}

func (s start) name() string { return s.product + "/" + path.Base(s.command[0]) }

func (s start) run(t *testing.T, d *distribution.Distribution) {
	t.Helper()
	artifact, err := d.Artifact(s.product)
	if notBuilt := (*distribution.NotBuiltError)(nil); errors.As(err, &notBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	root, program := "/", ""
	if s.repository == "" {
		if program, err = artifact.Binary(s.command[0]); err != nil {
			t.Fatal(err)
		}
	} else {
		root = t.TempDir()
		if s.repository == layer {
			unpackLayers(t, artifact, root)
		} else {
			content := mutate.Extract(image(t, artifact, s.repository))
			defer content.Close()
			unpack(t, content, root)
		}
		program = filepath.Join(root, s.command[0])
	}
	command := []string{program}
	for _, arg := range s.command[1:] {
		if strings.HasPrefix(arg, "/") { // a path in the image
			arg = filepath.Join(root, arg)
		}
		command = append(command, arg)
	}
	if s.product == "pause" {
		startsAndStops(t, command)
		return
	}
	check(t, root, command, s.want)
}

func image(t *testing.T, a *distribution.Artifact, repository string) v1.Image {
	t.Helper()
	images, err := a.Images()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		if strings.HasPrefix(i.Reference, repository+":") {
			loaded, err := i.Load()
			if err != nil {
				t.Fatal(err)
			}
			config, err := loaded.ConfigFile()
			if err != nil || config.Architecture != architecture {
				t.Fatalf("image %s has the configuration %+v, %v", i.Reference, config, err)
			}
			return loaded
		}
	}
	t.Fatalf("%s has no image %s", a.Product, repository)
	return nil
}

// unpackLayers writes the files of what an artifact without images gives to images of other products.
func unpackLayers(t *testing.T, a *distribution.Artifact, dir string) {
	t.Helper()
	layers, err := filepath.Glob(filepath.Join(a.ImagesDir(), "blobs", "sha256", "*"))
	if err != nil || len(layers) == 0 {
		t.Fatalf("%s has no layer: %v", a.Product, err)
	}
	for _, file := range layers {
		compressed, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer compressed.Close()
		content, err := zstd.NewReader(compressed)
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		unpack(t, content, dir)
	}
}

// unpack writes the files of an archive. They belong to the user of the test.
func unpack(t *testing.T, content io.Reader, dir string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // a directory
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = write(root, header, files)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		return root.Link(path.Clean(header.Linkname), name)
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// emulated is a command for the program, whose interpreter and libraries are below root.
func emulated(ctx context.Context, root string, options, command []string) *exec.Cmd {
	if runtime.GOARCH != architecture {
		command = slices.Concat([]string{emulator, "-L", root}, options, command)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}
	return cmd
}

// check runs a command, which writes what is wanted and ends. Some end with an error after they have written their usage.
func check(t *testing.T, root string, command []string, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	began := time.Now()
	out, err := emulated(ctx, root, nil, command).CombinedOutput()
	if !bytes.Contains(out, []byte(want)) || ctx.Err() != nil {
		t.Errorf("%s wrote, without %q: %.2000s\n%v", command, want, out, err)
		return
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	t.Logf("started in %s: %s", time.Since(began).Round(10*time.Millisecond), first)
}

// startsAndStops starts a program that writes nothing and waits. It has started once it handles SIGTERM, which the emulator reports, and ends on it.
func startsAndStops(t *testing.T, command []string) {
	t.Helper()
	if runtime.GOARCH == architecture {
		t.Skip("without an emulator nothing reports that it has started")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	cmd := emulated(ctx, "/", []string{"-strace"}, command)
	trace, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := false
	for lines := bufio.NewScanner(trace); lines.Scan(); {
		if !started && strings.Contains(lines.Text(), "rt_sigaction(SIGTERM") {
			started = true
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	err = cmd.Wait()
	if !started || ctx.Err() != nil {
		t.Errorf("%s has not started and stopped: %v", command, err)
	}
}
