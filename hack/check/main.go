// Command check runs the checks that every commit has to pass, except the tests: `make check`.
//
//	go run ./hack/check              # all steps
//	go run ./hack/check gofumpt tidy # some of them
//
// It changes no file. Each step prints one line; one that fails prints its findings and the command that fixes them.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slowAfter is when a line is printed for a step that still runs: longer than any step takes once its tool is built.
const slowAfter = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	if err := run(ctx, os.Stdout, os.Getenv("CI") == "true", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// step is one check.
type step struct {
	name string
	// fix is what to do about a finding: a command where there is one.
	fix string
	// slow explains why a first run takes long.
	slow string
	// run returns the findings as an error, one a line.
	run func(context.Context, *tree) error
}

func steps() []step {
	return []step{
		// The longest first, as they run side by side.
		{name: "golangci-lint", fix: "fix it, or silence it with the reason: //nolint:NAME // why", slow: "its first run on a machine builds it, which takes 2 to 4 minutes", run: golangciLint},
		{name: "go vet", fix: "fix it; go vet ./... shows it again", slow: "its first run on a machine compiles all dependencies", run: goVet},
		{name: "generate", fix: "make generate", slow: "its first run on a machine builds the generators", run: generated},
		{name: "tidy", fix: "go mod tidy in the named module", slow: "its first run on a machine downloads modules", run: tidy},
		{name: "govulncheck", fix: "update the module, or accept it with the reason in " + acceptedFile, slow: "its first run on a machine builds it, and loads all packages", run: govulncheck},
		{name: "gofumpt", fix: "make format", run: gofumpt},
		{name: "stray files", fix: "remove it, or add it to .gitignore if a build creates it", run: strayFiles},
	}
}

func run(ctx context.Context, out io.Writer, ci bool, names []string) error {
	selected, err := choose(steps(), names)
	if err != nil {
		return err
	}
	t, err := openTree(ctx, ci)
	if err != nil {
		return err
	}
	start := time.Now()
	if failed := runSteps(ctx, out, t, selected, runtime.NumCPU()); len(failed) > 0 {
		return fmt.Errorf("%d of %d failed: %s", len(failed), len(selected), strings.Join(failed, ", "))
	}
	fmt.Fprintf(out, "ok  all checks (%s)\n", seconds(start))
	return nil
}

func choose(all []step, names []string) ([]step, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []step
	for _, name := range names {
		i := slices.IndexFunc(all, func(s step) bool { return s.name == name })
		if i < 0 {
			var known []string
			for _, s := range all {
				known = append(known, fmt.Sprintf("%q", s.name))
			}
			return nil, fmt.Errorf("no step %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// runSteps runs the steps, some at a time, prints a line for each when it has ended, and returns the names of those that
// failed, in the order of the steps.
func runSteps(ctx context.Context, out io.Writer, t *tree, selected []step, atATime int) (failed []string) {
	var (
		group   sync.WaitGroup
		mutex   sync.Mutex // guards out and results
		results = make([]error, len(selected))
		slots   = make(chan struct{}, atATime)
	)
	for i, s := range selected {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			start := time.Now()
			hint := time.AfterFunc(slowAfter, func() {
				mutex.Lock()
				defer mutex.Unlock()
				fmt.Fprintf(out, "..  %s still runs; %s\n", s.name, s.slow)
			})
			err := s.run(ctx, t)
			hint.Stop()

			mutex.Lock()
			defer mutex.Unlock()
			var skipped *skippedError
			if errors.As(err, &skipped) {
				fmt.Fprintf(out, "SKIPPED  %s (%s)\n%s\n", s.name, seconds(start), indent(skipped.reason))
				return
			}
			if results[i] = err; err == nil {
				fmt.Fprintf(out, "ok  %s (%s)\n", s.name, seconds(start))
				return
			}
			fmt.Fprintf(out, "FAIL  %s (%s)\n%s\n      fix: %s\n", s.name, seconds(start), indent(err.Error()), s.fix)
		})
	}
	group.Wait()
	for i, s := range selected {
		if results[i] != nil {
			failed = append(failed, s.name)
		}
	}
	return failed
}

func seconds(start time.Time) string { return fmt.Sprintf("%.1fs", time.Since(start).Seconds()) }

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// tree is the working tree that is checked.
type tree struct {
	// root is its absolute path.
	root string
	// files are the paths of all files that are tracked or would be with `git add .`, relative to root.
	files []string
	// untracked are those of files that are not tracked.
	untracked []string
	// ci is true where the tree is a fresh clone, so that any new file is a leftover of a step.
	ci bool
}

func openTree(ctx context.Context, ci bool) (*tree, error) {
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("find the root of the repository: %w", err)
	}
	t := &tree{root: strings.TrimSpace(string(root)), ci: ci}
	tracked, err := t.gitFiles(ctx, "--cached")
	if err != nil {
		return nil, err
	}
	if t.untracked, err = t.gitFiles(ctx, "--others"); err != nil {
		return nil, err
	}
	t.files = slices.Concat(tracked, t.untracked)
	return t, nil
}

// gitFiles lists files that exist: not those that were deleted without `git rm`, nor symbolic links.
func (t *tree) gitFiles(ctx context.Context, which string) ([]string, error) {
	list, err := t.command(ctx, "", "git", "ls-files", "-z", "--exclude-standard", which)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSuffix(list, "\x00"), "\x00"), func(file string) bool {
		info, err := os.Lstat(t.path(file))
		return err != nil || !info.Mode().IsRegular()
	}), nil
}

func (t *tree) path(file string) string { return filepath.Join(t.root, file) }

// modules returns the directories of all modules, the main one as ".".
func (t *tree) modules() []string {
	var dirs []string
	for _, file := range t.files {
		if filepath.Base(file) == "go.mod" {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	slices.Sort(dirs)
	return dirs
}

// command runs a command in a directory of the tree and returns its output. Its error is the output, if there is any.
func (t *tree) command(ctx context.Context, dir, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.path(dir)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// `go tool` runs the tool as its child: both end when the check is interrupted.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", errors.New("interrupted")
	case err == nil:
		return stdout.String(), nil
	}
	if output := strings.TrimSpace(stderr.String() + stdout.String()); output != "" {
		return "", errors.New(output)
	}
	return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
}

// tool runs a tool in the version that hack/tools/go.mod pins.
func (t *tree) tool(ctx context.Context, args ...string) (string, error) {
	return t.command(ctx, "", "go", append([]string{"tool", "-modfile=hack/tools/go.mod"}, args...)...)
}
