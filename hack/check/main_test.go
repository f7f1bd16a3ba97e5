package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	all := []step{{name: "a"}, {name: "b"}, {name: "c"}}
	for name, tc := range map[string]struct {
		names   []string
		want    string
		wantErr string
	}{
		"all":              {want: "a b c"},
		"in the order set": {names: []string{"c", "a"}, want: "c a"},
		"one unknown":      {names: []string{"a", "d"}, wantErr: `no step "d"; there are "a", "b", "c"`},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(all, tc.names)
			var got []string
			for _, s := range chosen {
				got = append(got, s.name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("choose() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantErr, text(err)); diff != "" {
				t.Errorf("choose() error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunSteps(t *testing.T) {
	var out bytes.Buffer
	failed := runSteps(t.Context(), &out, nil, []step{
		{name: "good", run: func(context.Context, *tree) error { return nil }},
		{name: "bad", fix: "make it good", run: func(context.Context, *tree) error { return errors.New("a.go: one\nb.go: two\n") }},
		{name: "worse", fix: "give up", run: func(context.Context, *tree) error { return errors.New("no") }},
	}, 1)
	if diff := cmp.Diff([]string{"bad", "worse"}, failed); diff != "" {
		t.Errorf("failed steps (-want +got):\n%s", diff)
	}
	want := `ok  good (TIME)
FAIL  bad (TIME)
      a.go: one
      b.go: two
      fix: make it good
FAIL  worse (TIME)
      no
      fix: give up
`
	got := regexp.MustCompile(`\d+\.\ds`).ReplaceAllString(out.String(), "TIME")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestCommand(t *testing.T) {
	work := &tree{root: t.TempDir()}
	for name, tc := range map[string]struct {
		script, want, wantErr string
	}{
		"result without warnings":  {script: "echo warning >&2; echo result", want: "result\n"},
		"a failure with output":    {script: "echo finding; echo reason >&2; exit 1", wantErr: "reason\nfinding"},
		"a failure without output": {script: "exit 3", wantErr: "bash -c exit 3: exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := work.command(t.Context(), "", "bash", "-c", tc.script)
			if diff := cmp.Diff([]string{tc.want, tc.wantErr}, []string{got, text(err)}); diff != "" {
				t.Errorf("command() (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an interruption ends grandchildren", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		// The outer shell waits for the inner one, which keeps the output open.
		_, err := work.command(ctx, "", "bash", "-c", "bash -c 'sleep 60; true'; true")
		if text(err) != "interrupted" || time.Since(start) > 30*time.Second {
			t.Errorf("command() = %v after %v, want interrupted at once", err, time.Since(start))
		}
	})
}

func TestOpenTree(t *testing.T) {
	work := newRepository(t, map[string]string{
		".gitignore": "bin/\n", "a.go": "", "gone.go": "", "nested/go.mod": "", "nested/b.go": "", "go.mod": "",
	})
	write(t, work, map[string]string{"new.go": "", "bin/tool": ""})
	if err := os.Remove(work.path("gone.go")); err != nil {
		t.Fatal(err)
	}
	work = reopen(t, work, true)

	got := map[string][]string{"files": work.files, "untracked": work.untracked, "modules": work.modules(), "main module": work.mainModule()}
	want := map[string][]string{
		"files":       {".gitignore", "a.go", "go.mod", "nested/b.go", "nested/go.mod", "new.go"},
		"untracked":   {"new.go"},
		"modules":     {".", "nested"},
		"main module": {".gitignore", "a.go", "go.mod", "new.go"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("openTree() (-want +got):\n%s", diff)
	}
}

func TestHandWritten(t *testing.T) {
	got := handWritten([]string{"a.go", "api/zz_generated.deepcopy.go", "api/generated.pb.go", "README.md", "distribution/x/main.go"})
	if diff := cmp.Diff([]string{"a.go", "distribution/x/main.go"}, got); diff != "" {
		t.Errorf("handWritten() (-want +got):\n%s", diff)
	}
}

func TestGenerated(t *testing.T) {
	const generator = "#!/bin/sh\ncd $1 && echo new >zz_generated.a && echo new >zz_generated.b && rm -f zz_generated.c\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"in sync":     {files: map[string]string{"zz_generated.a": "new\n", "zz_generated.b": "new\n"}},
		"out of date": {files: map[string]string{"zz_generated.a": "old\n", "zz_generated.b": "new\n"}, want: "zz_generated.a: out of date"},
		"missing":     {files: map[string]string{"zz_generated.a": "new\n"}, want: "zz_generated.b: missing"},
		"left over": {
			files: map[string]string{"zz_generated.a": "new\n", "zz_generated.b": "new\n", "zz_generated.c": "new\n"},
			want:  "zz_generated.c: nothing generates it any more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			work := newRepository(t, map[string]string{"hack/generate.sh": generator})
			if err := os.Chmod(work.path("hack/generate.sh"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, work, tc.files) // not committed: a dirty tree is checked like any other
			work = reopen(t, work, false)
			if diff := cmp.Diff(tc.want, text(generated(t.Context(), work))); diff != "" {
				t.Errorf("generated() (-want +got):\n%s", diff)
			}
			for file, content := range tc.files {
				if data, err := os.ReadFile(work.path(file)); err != nil || string(data) != content {
					t.Errorf("generated() changed %s to %q (%v)", file, data, err)
				}
			}
		})
	}
}

func TestTidy(t *testing.T) {
	work := newRepository(t, map[string]string{
		"go.mod": "module a\n\ngo 1.26.0\n", "a.go": "package a\n",
		"nested/go.mod": "module b\n\ngo 1.26.0\n\nrequire example.com/unused v1.0.0\n\nreplace example.com/unused => ./unused\n",
		"nested/b.go":   "package b\n", "nested/unused/go.mod": "module example.com/unused\n\ngo 1.26.0\n",
	})
	err := tidy(t.Context(), work)
	if got := text(err); !strings.Contains(got, "module in nested:\n") || !strings.Contains(got, "-require example.com/unused v1.0.0") || strings.Contains(got, "module in .:") {
		t.Errorf("tidy() = %s\nwant it to name the unused requirement of the nested module, and nothing else", got)
	}
}

func TestStrayFiles(t *testing.T) {
	work := newRepository(t, map[string]string{"tracked": "fine\n", "path": "no path yet\n"})
	write(t, work, map[string]string{"new": "", "path": "first\nsee " + work.root + "/bin for more\n"})

	path := "path: line 2 has a path of this machine: " + work.root + "/"
	for name, tc := range map[string]struct {
		ci   bool
		want string
	}{
		"at work, a new file is one being written": {want: path},
		"in CI, it was left behind":                {ci: true, want: "new: neither tracked nor ignored\n" + path},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(strayFiles(t.Context(), reopen(t, work, tc.ci)))); diff != "" {
				t.Errorf("strayFiles() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	local := machinePaths("/build/one/gardener", "/home/ann/go/pkg/mod")
	for name, tc := range map[string]struct {
		content string
		want    []string
	}{
		"text":                            {content: "package a\n"},
		"a large file":                    {content: strings.Repeat("x", maxFileSize+1), want: []string{"2000001 bytes; generated data belongs in a build step"}},
		"a program":                       {content: "\x7fELF\x02\x00 /build/one/gardener/", want: []string{"a compiled program"}},
		"a registry":                      {content: "\nGOPROXY=" + "proxy.golang.org\n", want: []string{"line 2 has a package registry: GOPROXY=" + "proxy.golang.org"}},
		"a registry in a URL":             {content: "x https:" + "//deb.debian.org/debian", want: []string{"line 1 has a package registry: https:" + "//deb.debian.org"}},
		"a registry for documentation":    {content: "pull registry.example.com/a"},
		"a registry of images":            {content: "registry.k8s.io/pause"},
		"a module cache":                  {content: "in /home/ann/go/pkg/mod/x", want: []string{"line 1 has a path of this machine: /home/ann/go/pkg/mod/"}},
		"beside the repository":           {content: "first\nsee \"/build/two/x\"", want: []string{`line 2 has a path of this machine: "/build/`}},
		"the same directory within a URL": {content: "example.com/build/pause"},
		"a directory with a longer name":  {content: "in /building/x"},
		"another home directory":          {content: "in /home/bob/"},
		"a merge conflict":                {content: "a\n" + strings.Repeat("<", 7) + " HEAD\n", want: []string{"line 2 has a merge conflict: " + strings.Repeat("<", 7)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, inspect([]byte(tc.content), local)); diff != "" {
				t.Errorf("inspect() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachinePathsStandardDirectory(t *testing.T) {
	if got := inspect([]byte("put it into /home/machine/ or /tmp/x"), machinePaths("/home/ann/gardener", "/")); got != nil {
		t.Errorf("inspect() = %q; other paths below /home are not those of a clone there", got)
	}
}

// newRepository returns a git repository with the files committed.
func newRepository(t *testing.T, files map[string]string) *tree {
	t.Helper()
	work := &tree{root: t.TempDir()}
	write(t, work, files)
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "."},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "first"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = work.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return reopen(t, work, false)
}

func reopen(t *testing.T, work *tree, ci bool) *tree {
	t.Helper()
	t.Chdir(work.root)
	opened, err := openTree(t.Context(), ci)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func write(t *testing.T, work *tree, files map[string]string) {
	t.Helper()
	for file, content := range files {
		if err := os.MkdirAll(filepath.Dir(work.path(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(work.path(file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
