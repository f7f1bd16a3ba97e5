package extensioninit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// TestInit writes an extension, builds it, and runs its tests against a kube-apiserver.
func TestInit(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a module")
	}
	directory := filepath.Join(t.TempDir(), "hello")
	run := func(args ...string) (string, error) {
		cmd := NewCommand()
		out := &strings.Builder{}
		cmd.SetOut(out)
		cmd.SetErr(out)
		cmd.SetArgs(args)
		err := cmd.Execute()
		return out.String(), err
	}
	// A name for the source that can be taken away.
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "gardener")
	if err := os.Symlink(root, source); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"init", "provider-hello", "--directory", directory, "--gardener", source}
	if out, err := run(arguments...); err != nil || !strings.Contains(out, "go mod tidy && go mod vendor && go test") {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := run("init", "hello"); err == nil || !strings.Contains(err.Error(), "by --gardener") {
		t.Errorf("an extension is written that cannot be built: %v", err)
	}
	if _, err := run(arguments...); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("an existing directory is overwritten: %v", err)
	}
	err = filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), "[[") || strings.HasSuffix(path, ".tmpl") {
			t.Errorf("%s is not rendered", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The modules and checksums are those of this one, so that nothing has to be downloaded but go.mod files, which a computer lacks that has only built.
	graph := exec.CommandContext(t.Context(), "go", "mod", "graph")
	graph.Dir = filepath.Join("..", "..")
	if out, err := graph.CombinedOutput(); err != nil {
		t.Fatalf("go mod graph: %v\n%s", err, out)
	}
	sums, err := os.ReadFile(filepath.Join("..", "..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	assets := t.TempDir()
	for product, name := range map[string]string{"etcd": "etcd", "kubernetes": "kube-apiserver"} {
		if err := os.Symlink(env.Program(t, product, name), filepath.Join(assets, name)); err != nil {
			t.Fatal(err)
		}
	}
	runGo := func(flags string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = directory
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath "+flags, "GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0", "KUBEBUILDER_ASSETS="+assets)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
	binary := filepath.Join(t.TempDir(), "extension")
	runGo("-mod=mod", "build", "-o", binary, ".")
	runGo("-mod=mod", "vet", ".")
	// Where an image is built, and in CI, there is the directory of the extension only.
	runGo("-mod=mod", "mod", "vendor")
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	runGo("", "build", "-o", binary, ".")
	if out := runGo("", "test", "-v", "."); !strings.Contains(out, "--- PASS: TestContract") {
		t.Errorf("the test of the contract was not run:\n%s", out)
	}
}

func TestRefuses(t *testing.T) {
	for name, v := range map[string]values{
		"must have at most 40": {Name: "A"}, "begin with a letter": {Name: "../x"}, "not end with a dash": {Name: "a-"},
		"not the directory of a Go module": {Name: "a", Gardener: t.TempDir()},
	} {
		directory := filepath.Join(t.TempDir(), "x")
		if err := write(directory, v); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", v, err)
		}
		if _, err := os.Stat(directory); err == nil {
			t.Errorf("%+v: the directory was created", v)
		}
	}
}

// TestDocs has the code in docs/extending.md that names a file: it is what that file has.
func TestDocs(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "hello")
	if err := write(directory, values{Name: "hello", Go: goVersion}); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, part := range strings.Split(string(docs), "```go\n// ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		code, _, _ := strings.Cut(rest, "\n```")
		source, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			continue // a comment, not a file
		}
		found++
		if !strings.Contains(string(source), code) {
			t.Errorf("docs/extending.md has other code than %s:\n%s", name, code)
		}
	}
	registration, err := os.ReadFile(filepath.Join(directory, "registration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), strings.TrimSpace(string(registration))) {
		t.Error("docs/extending.md has another registration than registration.yaml")
	}
	if found != 3 {
		t.Errorf("docs/extending.md has code of %d files, want 3", found)
	}
}

// TestRegistration decodes the manifests strictly.
func TestRegistration(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "hello")
	if err := write(directory, values{Name: "hello", Go: goVersion}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(gardencorev1.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded := 0
	for _, name := range []string{"registration.yaml", "extension.yaml"} {
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			if _, _, err := decoder.Decode([]byte(document), nil, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			decoded++
		}
	}
	if decoded != 3 {
		t.Errorf("%d objects, want 3", decoded)
	}
}
