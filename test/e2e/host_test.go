//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// hostState is what a landscape may leave behind on a host, as text that can be compared.
type hostState struct {
	Links, Routes, Rules, Mounts, Namespaces, Cgroups, Settings, Processes []string
}

// observeHost reads the state of the host, without that of other landscapes and containers, which may change meanwhile.
func observeHost(t *testing.T, landscape string) hostState {
	t.Helper()
	state := hostState{
		Links:      command(t, `^\d+: (\S+?)[:@]`, "ip", "-o", "link"),
		Routes:     command(t, `^(.*)$`, "ip", "route"),
		Rules:      command(t, `^(table .*)$`, "nft", "list", "tables"),
		Mounts:     command(t, `^\S+ (\S+) \S+`, "cat", "/proc/mounts"),
		Namespaces: glob(t, "/run/netns/*"),
		Cgroups:    slices.Concat(glob(t, "/sys/fs/cgroup/gardener*"), glob(t, "/sys/fs/cgroup/*/gardener*")),
		Settings: command(t, `^(.*)$`, "sysctl", "net.ipv4.ip_forward", "fs.inotify.max_user_instances", "fs.inotify.max_user_watches",
			"kernel.panic", "kernel.panic_on_oops", "vm.overcommit_memory"),
		Processes: processes(t, landscape),
	}
	for _, list := range []*[]string{&state.Rules, &state.Mounts, &state.Namespaces, &state.Cgroups} {
		*list = slices.DeleteFunc(*list, func(line string) bool {
			match := named.FindStringSubmatch(line)
			return match != nil && match[1] != landscape
		})
	}
	others := othersLinks(t, landscape)
	state.Links = slices.DeleteFunc(state.Links, others)
	state.Routes = slices.DeleteFunc(state.Routes, func(route string) bool {
		match := device.FindStringSubmatch(route)
		return match != nil && others(match[1])
	})
	return state
}

// expectHost fails if the host is not as it was.
func (l *landscape) expectHost(t *testing.T, before hostState, message string) {
	t.Helper()
	if diff := cmp.Diff(before, observeHost(t, l.name), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-before +after):\n%s", message, diff)
	}
}

// othersLinks returns a function that reports whether a link belongs to another landscape or to a container engine. Leftovers of landscapes
// belong to neither.
func othersLinks(t *testing.T, landscape string) func(string) bool {
	t.Helper()
	numbered := map[string]bool{}
	for _, path := range glob(t, "/run/gardener-landscape/*/owner.json") {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || filepath.Base(filepath.Dir(path)) == landscape {
			continue
		}
		var owner struct{ Index int }
		if err := errors.Join(err, json.Unmarshal(content, &owner)); err != nil {
			t.Fatal(err)
		}
		numbered["gardener"+strconv.Itoa(owner.Index)] = true
	}
	return func(link string) bool { return numbered[link] || foreign.MatchString(link) }
}

var (
	// device finds the link in a route.
	device = regexp.MustCompile(` dev (\S+)`)
	// foreign matches the names of links of container engines.
	foreign = regexp.MustCompile(`^(?:veth|docker|br-|podman|cni)`)
)

// named finds the name of the landscape in names of its resources on the host.
var named = regexp.MustCompile(`^(?:table ip gardener-|/run/netns/gardener-|/run/gardener-landscape/|/sys/fs/cgroup/(?:[^/]+/)?gardener-)([a-z0-9-]+)`)

func command(t *testing.T, pattern, name string, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	expression := regexp.MustCompile(pattern)
	var lines []string
	for line := range bytes.Lines(out) {
		if match := expression.FindSubmatch(bytes.TrimSpace(line)); match != nil {
			lines = append(lines, string(match[1]))
		}
	}
	slices.Sort(lines)
	return lines
}

// processes are the command lines of processes in a landscape's control group, or with one of its directories as an argument.
func processes(t *testing.T, landscape string) []string {
	t.Helper()
	var found []string
	for _, dir := range glob(t, "/proc/[0-9]*") {
		cgroup, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if len(cmdline) == 0 {
			continue // It has ended, and its parent has not waited for it yet.
		}
		if bytes.Contains(cgroup, []byte("/gardener-"+landscape)) || bytes.Contains(cmdline, []byte("/run/gardener-landscape/"+landscape)) {
			found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
