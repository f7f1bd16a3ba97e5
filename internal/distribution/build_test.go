package distribution

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// two products: upper ships the binaries of tiny.
func two() map[string]string {
	files := tiny()
	files["upper/product.yaml"] = `
description: A product with the binaries of another
licenses: MIT
version: v2
include: [{product: tiny, dir: /opt}]
images:
- {repository: example.com/upper, tag: "{{.Major}}", from: [tiny], entrypoint: [/opt/tiny], env: {A: b}, stopSignal: SIGINT}
`
	return files
}

func TestBuild(t *testing.T) {
	root, cache := checkout(t, two()), t.TempDir()
	progress := &recorder{}
	artifacts, err := open(t, root, cache).Build(t.Context(), progress, "upper")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tiny", "upper"}, progress.finished); diff != "" {
		t.Errorf("built (-want +got):\n%s", diff)
	}
	if len(artifacts) != 1 || artifacts[0].Product != "upper" || artifacts[0].Version != "v2" {
		t.Errorf("Build() = %+v", artifacts)
	}

	d := open(t, root, cache)
	tinyArtifact, err := d.Artifact("tiny@1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tiny", "small"} {
		path, err := tinyArtifact.Binary(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path).CombinedOutput()
		if err != nil || string(out) != "v1.2.3\n" {
			t.Errorf("%s prints %q, %v", name, out, err)
		}
	}
	_, err = tinyArtifact.Binary("large")
	wantError(t, err, `no binary "large"`, "small, tiny")

	image := loadOnly(t, artifacts[0], "example.com/upper:2")
	checkLayers(t, image)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/opt/tiny"}, StopSignal: "SIGINT",
		Env: []string{defaultPath, "A=b"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "upper", "org.opencontainers.image.version": "v2", "org.opencontainers.image.licenses": "MIT",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	m, err := artifacts[0].manifest()
	if err != nil {
		t.Fatal(err)
	}
	wantLayer := []string{"drwxr-xr-x opt/", "Lrwxrwxrwx opt/small -> tiny"}
	if diff := cmp.Diff(wantLayer, listLayer(t, artifacts[0].ImagesDir(), m.Layers[0])[:2]); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}

	again := &recorder{}
	if _, err := d.Build(t.Context(), again, "upper", "tiny"); err != nil {
		t.Fatal(err)
	}
	if again.missing != 0 || len(again.started) != 0 {
		t.Errorf("the second run builds %v", again.started)
	}
	if left, err := os.ReadDir(d.tempRoot()); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}

	// Elsewhere, the same inputs give the same images.
	elsewhere, err := open(t, checkout(t, two()), t.TempDir()).Build(t.Context(), nil, "upper")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(imagesOf(t, artifacts[0]), imagesOf(t, elsewhere[0])); diff != "" {
		t.Errorf("images differ:\n%s", diff)
	}
}

// All images of a product share the layer of its binary, and each has only the names that it is for.
func TestPrograms(t *testing.T) {
	files := tiny()
	recipe, _, _ := strings.Cut(files["tiny/product.yaml"], "images:")
	files["tiny/product.yaml"] = strings.Replace(recipe, "[small]", "[small, large]", 1) + `
images:
- {repository: example.com/small, entrypoint: [/usr/local/bin/small], programs: [small]}
- {repository: example.com/both, entrypoint: [/usr/local/bin/large], programs: [large, small]}
`
	artifacts, err := open(t, checkout(t, files), t.TempDir()).Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := artifacts[0].Binary("large"); err != nil {
		t.Errorf("machines have all names: %v", err)
	}
	images, err := artifacts[0].Images()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	var shared []string
	for _, image := range images {
		loaded, err := image.Load()
		if err != nil {
			t.Fatal(err)
		}
		checkLayers(t, loaded)
		m, err := loaded.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		last := len(m.Layers) - 1
		for _, l := range m.Layers[:last] {
			shared = append(shared, l.Digest.String())
		}
		for _, line := range listLayer(t, artifacts[0].ImagesDir(), Layer{Digest: m.Layers[last].Digest}) {
			if !strings.HasPrefix(line, "d") {
				got[image.Reference] = append(got[image.Reference], line)
			}
		}
		for _, l := range m.Layers[:last] {
			for _, line := range listLayer(t, artifacts[0].ImagesDir(), Layer{Digest: l.Digest}) {
				if strings.HasPrefix(line, "L") {
					t.Errorf("%s: %s is in all images", image.Reference, line)
				}
			}
		}
	}
	if half := len(shared) / 2; !slices.Equal(shared[:half], shared[half:]) {
		t.Errorf("the images share no layers: %v", shared)
	}
	want := map[string][]string{
		"example.com/small:v1.2.3": {"Lrwxrwxrwx usr/local/bin/small -> tiny", "-rw-r--r-- usr/local/share/tiny/programs: small\n"},
		"example.com/both:v1.2.3": {
			"Lrwxrwxrwx usr/local/bin/large -> tiny", "Lrwxrwxrwx usr/local/bin/small -> tiny", "-rw-r--r-- usr/local/share/tiny/programs: large\nsmall\n",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layers of their own (-want +got):\n%s", diff)
	}
}

func TestSetuid(t *testing.T) {
	files := tiny()
	files["tiny/product.yaml"] = strings.Replace(files["tiny/product.yaml"], "links: [small]", "setuid: true", 1)
	delete(files, "tiny/files/etc/x")
	artifacts, err := open(t, checkout(t, files), t.TempDir()).Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	m, err := artifacts[0].manifest()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(listLayer(t, artifacts[0].ImagesDir(), m.Layers[0]), func(line string) bool {
		return strings.HasPrefix(line, "urwxr-xr-x usr/local/bin/tiny:")
	}) {
		t.Error("the layer has no setuid program")
	}
}

func imagesOf(t *testing.T, a *Artifact) map[string]string {
	t.Helper()
	images, err := a.Images()
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, image := range images {
		digests[image.Reference] = image.Digest
	}
	return digests
}

func loadOnly(t *testing.T, a *Artifact, reference string) v1.Image {
	t.Helper()
	images, err := a.Images()
	if err != nil || len(images) != 1 || images[0].Reference != reference {
		t.Fatalf("Images() = %v, %v; want %s", images, err, reference)
	}
	image, err := images[0].Load()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil || digest.String() != images[0].Digest {
		t.Errorf("the image has digest %v, %v; want %s", digest, err, images[0].Digest)
	}
	return image
}

// checkLayers reads all layers of an image and compares their hashes with its manifest.
func checkLayers(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) == 0 {
		t.Fatalf("Layers() = %v, %v", layers, err)
	}
	for _, l := range layers {
		for name, f := range map[string]struct {
			want func() (v1.Hash, error)
			open func() (io.ReadCloser, error)
		}{"digest": {l.Digest, l.Compressed}, "diff ID": {l.DiffID, l.Uncompressed}} {
			want, err := f.want()
			if err != nil {
				t.Fatal(err)
			}
			r, err := f.open()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := v1.SHA256(r)
			if err := errors.Join(err, r.Close()); err != nil || got != want {
				t.Errorf("%s is %v, %v; want %v", name, got, err, want)
			}
		}
	}
}

func TestInterruptedBuild(t *testing.T) {
	root, cache := checkout(t, tiny()), t.TempDir()
	d := open(t, root, cache)
	v, err := d.resolve("tiny")
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.locate(v)
	if err != nil {
		t.Fatal(err)
	}
	temp := d.tempDir(filepath.Base(a.Dir))
	write(t, filepath.Join(temp, "bin", "tiny"), "half a binary")
	write(t, filepath.Join(d.tempDir("another-v1-0123456789abcdef"), "bin", "x"), "of another product")
	busy := "busy-v1-0123456789abcdef"
	write(t, filepath.Join(d.tempDir(busy), "bin", "x"), "of a run that is not finished")
	l, err := open(t, root, cache).tryLock(busy)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release() //nolint:errcheck // the process ends soon

	var notBuilt *NotBuiltError
	if _, err := d.Artifact("tiny"); !errors.As(err, &notBuilt) || err.Error() != "tiny is not built; run: bin/distribution build tiny" {
		t.Errorf("Artifact() = %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Build(canceled, nil, "tiny"); !errors.Is(err, context.Canceled) {
		t.Errorf("Build() = %v", err)
	}
	if _, err := d.Artifact("tiny"); err == nil {
		t.Error("an interrupted build looks finished")
	}
	if _, err := d.Build(t.Context(), nil, "tiny"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(d.tempRoot())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{busy}, left); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

func TestDamagedArtifact(t *testing.T) {
	for name, damage := range map[string]func(a *Artifact) error{
		"no manifest": func(a *Artifact) error { return os.Remove(filepath.Join(a.Dir, manifestFile)) },
		"no binary":   func(a *Artifact) error { return os.Remove(filepath.Join(a.Dir, "bin", "tiny")) },
		"no images":   func(a *Artifact) error { return os.RemoveAll(a.ImagesDir()) },
		"a shortened layer": func(a *Artifact) error {
			m, err := a.manifest()
			if err != nil {
				return err
			}
			return os.Truncate(blobFile(a.ImagesDir(), m.Layers[0]), 1)
		},
		"no index of the images": func(a *Artifact) error { return os.Remove(filepath.Join(a.ImagesDir(), "index.json")) },
		"an image without its configuration": func(a *Artifact) error {
			images, err := a.Images()
			if err != nil {
				return err
			}
			image, err := images[0].Load()
			if err != nil {
				return err
			}
			config, err := image.ConfigName()
			if err != nil {
				return err
			}
			return os.Remove(filepath.Join(a.ImagesDir(), "blobs", "sha256", config.Hex))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, checkout(t, tiny()), t.TempDir())
			artifacts, err := d.Build(t.Context(), nil, "tiny")
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(artifacts[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Artifact("tiny"); err == nil {
				t.Error("the damage was not noticed")
			}
			if _, err := d.Build(t.Context(), nil, "tiny"); err != nil {
				t.Fatal(err)
			}
			checkLayers(t, loadOnly(t, artifacts[0], "example.com/tiny:v1.2.3"))
		})
	}
}

// A run after one with a full disk replaces what that has written only in part.
func TestWrapAfterFullDisk(t *testing.T) {
	d, dir := open(t, checkout(t, tiny()), t.TempDir()), t.TempDir()
	artifacts, err := d.Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	executable := filepath.Join(t.TempDir(), "program")
	write(t, executable, "#!/bin/sh\n")
	wrap := func() Image {
		t.Helper()
		image, err := d.Wrap(dir, artifacts[0], "example.com/program", executable)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := image.Load(); err != nil {
			t.Error(err)
		}
		return image
	}
	want := wrap()
	files, err := filepath.Glob(filepath.Join(dir, "*.digest"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files with a digest: %v, %v", files, err)
	}
	for name, damage := range map[string]func() error{
		"an empty digest": func() error { return os.Truncate(files[0], 0) },
		"no image":        func() error { return os.RemoveAll(strings.TrimSuffix(files[0], ".digest")) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			if got := wrap(); got != want {
				t.Errorf("Wrap() = %v, want %v", got, want)
			}
		})
	}
}

func TestFailedBuild(t *testing.T) {
	files := two()
	files["tiny/main.go"] = "package main\n\nfunc main() { nonsense() }\n"
	d := open(t, checkout(t, files), t.TempDir())
	progress := &recorder{}
	_, err := d.Build(t.Context(), progress, "upper")
	wantError(t, err, "build tiny: compile tiny", "undefined: nonsense", "the whole log: ")
	if diff := cmp.Diff([]string{"tiny: failed"}, progress.finished); diff != "" {
		t.Errorf("finished (-want +got):\n%s", diff)
	}
	var failure *BuildError
	if !errors.As(err, &failure) {
		t.Fatalf("not a BuildError: %T", err)
	}
	if log, err := os.ReadFile(failure.Log); err != nil || !strings.Contains(string(log), "go build") {
		t.Errorf("log: %q, %v", log, err)
	}
	garbage, err := d.Garbage()
	if err != nil || len(garbage) > 0 {
		t.Errorf("left behind: %v, %v", garbage, err)
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	root, cache := checkout(t, tiny()), t.TempDir()
	progress := &recorder{}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			d, err := Open(root, cache)
			if err == nil {
				_, err = d.Build(t.Context(), progress, "tiny")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(progress.started) != 1 {
		t.Errorf("built %d times", len(progress.started))
	}
}

func TestGarbage(t *testing.T) {
	root, cache := checkout(t, tiny()), t.TempDir()
	old, err := open(t, root, cache).Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "distribution/tiny/main.go"), "package main\n\nfunc main() {}\n")
	d := open(t, root, cache)
	current, err := d.Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.tempDir("stale"), "x"), "x")
	garbage, err := d.Garbage()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, g := range garbage {
		found[g.Path] = true
	}
	want := map[string]bool{old[0].Dir: true, d.tempDir("stale"): true}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("Garbage() (-want +got):\n%s", diff)
	}
	if err := d.Remove(garbage); err != nil {
		t.Fatal(err)
	}
	if exists(old[0].Dir) || !exists(current[0].Dir) {
		t.Error("removed the wrong artifact")
	}
}

func TestList(t *testing.T) {
	files := two()
	files["upper/product.yaml"] += "optional: true\n"
	d := open(t, checkout(t, files), t.TempDir())
	if _, err := d.Build(t.Context(), nil, d.Default()...); err != nil {
		t.Fatal(err)
	}
	list, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, s := range list {
		got[s.Product] = s.Cached
		if s.Cached != (s.Size > 0) {
			t.Errorf("%s: cached %v, size %d", s.Product, s.Cached, s.Size)
		}
	}
	if diff := cmp.Diff(map[string]bool{"tiny": true, "upper": false}, got); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
}

func TestGoInvocations(t *testing.T) {
	var got [][]string
	v := variant{&product{dir: "/p", modFiles: map[string]string{"v1.2.3": "/p/v1.2.3.mod"}}, "v1.2.3"}
	for _, g := range goInvocations([]Binary{
		{Name: "bridge", Package: "example.com/plugins/bridge"},
		{Name: "own", Package: ".", Tags: []string{"a", "b"}, LDFlags: []string{"-X v={{.Number}}"}},
		{Name: "tuning", Package: "example.com/plugins/tuning"},
	}, "/bin") {
		args, err := g.args(v)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, args[6:])
	}
	want := [][]string{
		{"-modfile=/p/v1.2.3.mod", "-ldflags=-s -w", "-o", "/bin/", "example.com/plugins/bridge", "example.com/plugins/tuning"},
		{"-modfile=/p/v1.2.3.mod", "-tags=a,b", "-ldflags=-s -w -X v=1.2.3", "-o", "/bin/own", "."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestUsefulTail(t *testing.T) {
	log := "$ go build\ngo: downloading x v1\nk8s.io/api/core/v1\nencoding\n# example.com/a\n./a.go:1:2: undefined: b\n\nmath/rand/v2\n"
	want := []string{"# example.com/a", "./a.go:1:2: undefined: b"}
	if diff := cmp.Diff(want, usefulTail(log, 5)); diff != "" {
		t.Errorf("usefulTail() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], usefulTail(log, 1)); diff != "" {
		t.Errorf("usefulTail() (-want +got):\n%s", diff)
	}
}

func TestRunStopsChildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := command{dir: t.TempDir(), args: []string{"sh", "-c", "echo started; sleep 60 & wait"}}.run(ctx, io.Discard, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("run() = %v", err)
	}
}

// A child that ignores the signal does not outlive the build.
func TestRunKillsChildrenThatIgnoreSignals(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	child := -1
	script := `sh -c 'trap "" TERM; echo $$; exec >/dev/null 2>&1; while :; do sleep 60; done' & wait`
	err := command{dir: t.TempDir(), args: []string{"sh", "-c", script}}.run(ctx, io.Discard, func(line string) {
		if pid, err := strconv.Atoi(line); err == nil {
			child, _ = unix.PidfdOpen(pid, 0)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || child < 0 {
		t.Fatalf("run() = %v, child %d", err, child)
	}
	defer unix.Close(child) //nolint:errcheck // a descriptor that is only read
	const timeout = 10_000  // milliseconds, for a busy machine
	if ended, err := unix.Poll([]unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}, timeout); err != nil || ended == 0 {
		t.Errorf("the child lives on: %v", err)
		_ = unix.PidfdSendSignal(child, unix.SIGKILL, nil, 0)
	}
}

func TestPreflightSpace(t *testing.T) {
	d := open(t, checkout(t, maps.Clone(tiny())), filepath.Join(t.TempDir(), "not", "there", "yet"))
	if problems := d.checkSpace(1, false); len(problems) > 0 {
		t.Errorf("checkSpace(1) = %v", problems)
	}
	problems := d.checkSpace(1<<62, false)
	if len(problems) != 1 || !strings.Contains(problems[0], "too little disk space for "+d.cache) || !strings.Contains(problems[0], "4294967296.0 GiB needed") {
		t.Errorf("checkSpace() = %q", problems)
	}
}

func TestUsedBy(t *testing.T) {
	proc := t.TempDir()
	write(t, filepath.Join(proc, "1", "mountinfo"), "144 131 254:0 /c/kubernetes-v1-aa/bin /opt/kubernetes/bin ro - ext4 /dev/vda rw\n")
	write(t, filepath.Join(proc, "22", "environ"), "HOME=/root\x00PATH=/c/runc-v1-bb/bin:/bin\x00")
	if err := os.Symlink("/c/containerd-v2-cc/bin/containerd", filepath.Join(proc, "22", "exe")); err != nil {
		t.Fatal(err)
	}
	used := usedBy(proc)
	for name, want := range map[string]bool{
		"kubernetes-v1-aa": true, "runc-v1-bb": true, "containerd-v2-cc": true,
		"kubernetes-v1-ab": false, "kubernetes-v1": false,
	} {
		if got := used(name); got != want {
			t.Errorf("used(%q) = %t, want %t", name, got, want)
		}
	}
}
