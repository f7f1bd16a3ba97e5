package attack

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gardener.cloud/gardener/internal/distribution"
)

// What a kube-apiserver is made to run, by a kubeconfig or otherwise, it finds in its image: there must be no kubectl and no kubelet, neither
// under their names nor as arguments of the binary that is all components in one.
func TestImageOfOneProgramHasOthers(t *testing.T) {
	root, err := distribution.FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := distribution.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	d, err := distribution.Open(root, cache)
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := d.Artifact("kubernetes")
	if err != nil {
		t.Skip(err)
	}
	images, err := artifact.Images()
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string][]string{}, map[string][]string{}
	seen := map[v1.Hash][]string{}
	for _, image := range images {
		name, _, _ := strings.Cut(path.Base(image.Reference), ":")
		loaded, err := image.Load()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := loaded.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, layer := range layers {
			digest, err := layer.Digest()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := seen[digest]; !ok {
				seen[digest] = programs(t, layer)
			}
			got[name] = append(got[name], seen[digest]...)
		}
		slices.Sort(got[name])
		want[name] = []string{"/usr/local/bin/" + name, "/usr/local/bin/kubernetes", "may be " + name}
		if name == "hyperkube" { // from which nodes take files, and nothing runs
			want[name] = []string{"/usr/local/bin/kubectl", "/usr/local/bin/kubelet", "/usr/local/bin/kubernetes", "may be kubelet kubectl"}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("programs of Kubernetes in images (-want +got):\n%s", diff)
	}
}

// programs are the files of a layer in the directory of the binaries, and what the binary may be.
func programs(t *testing.T, layer v1.Layer) []string {
	t.Helper()
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var found []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		switch name := path.Clean("/" + header.Name); {
		case name == "/usr/local/share/kubernetes/programs":
			data, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, "may be "+strings.Join(strings.Fields(string(data)), " "))
		case header.Typeflag != tar.TypeDir && path.Dir(name) == "/usr/local/bin":
			found = append(found, name)
		}
	}
}

// The binary of all components finds out what it may be. It is tried without the components, which take minutes to compile.
func TestBinaryActsAsAnotherProgram(t *testing.T) {
	root, err := distribution.FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join(root, "distribution", "kubernetes", "programs.go"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	list := filepath.Join(dir, "programs")
	for name, text := range map[string]string{
		"go.mod":      "module example.com/kubernetes\n\ngo 1.26.0\n",
		"programs.go": string(code),
		"main.go":     "package main\n\nimport \"os\"\n\nfunc main() {\n\tif permitted(os.Args[1]) != nil {\n\t\tos.Exit(2)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "kubernetes")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-X main.programsFile="+list, "-o", binary, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, tc := range map[string]struct {
		list func() error
		want map[string]bool
	}{
		"on a machine": {func() error { return nil }, map[string]bool{"kube-apiserver": true, "kubelet": true}},
		"in its image": {
			func() error { return os.WriteFile(list, []byte("kube-apiserver\n"), 0o600) },
			map[string]bool{"kube-apiserver": true, "kubelet": false, "kubectl": false, "kube": false, "": false},
		},
		"in an image for none":       {func() error { return os.WriteFile(list, nil, 0o600) }, map[string]bool{"kube-apiserver": false}},
		"when it cannot be read":     {func() error { return os.Mkdir(list, 0o700) }, map[string]bool{"kube-apiserver": false}},
		"when it is not to be found": {func() error { return os.Symlink(list, list) }, map[string]bool{"kube-apiserver": false}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.list(); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(list) //nolint:errcheck // of this test only
			for program, want := range tc.want {
				if got := exec.Command(binary, program).Run() == nil; got != want {
					t.Errorf("acts as %q: %v, want %v", program, got, want)
				}
			}
		})
	}
}
