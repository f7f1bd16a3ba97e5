package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gardener.cloud/gardener/landscape/progress"
)

// A file that the command has inherited, such as the lock of flock, is not passed on.
func TestKeepDescriptors(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inherited, err := unix.Dup(int(file.Fd())) // without the flag that os.Open sets
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited) //nolint:errcheck // it is only read
	keepDescriptors()
	if flags, err := unix.FcntlInt(uintptr(inherited), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("programs that are started inherit the file: flags are %#x, %v", flags, err)
	}
}

// An unknown command fails, and writes nothing to the standard output, which a script would read.
func TestUnknownCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"at the root":     {[]string{"kubeconfg"}, `unknown command "kubeconfg" for "landscape"; did you mean "kubeconfig"?`},
		"nothing near":    {[]string{"frobnicate"}, `unknown command "frobnicate" for "landscape"; list what there is with: landscape --help`},
		"in a group":      {[]string{"images", "psh"}, `unknown command "psh" for "landscape images"; did you mean "push"?`},
		"no cluster, too": {[]string{"kubeconfig", "shot", "garden-local/local"}, "accepts at most 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			cmd := newCommand(strings.NewReader(""), &out, &errOut)
			cmd.SetArgs(tc.args)
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("standard output has %q", out.String())
			}
		})
	}
}

func TestHelpOfGroups(t *testing.T) {
	for _, args := range [][]string{{}, {"images"}} {
		var out strings.Builder
		cmd := newCommand(strings.NewReader(""), &out, &out)
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), "Available Commands:") {
			t.Errorf("landscape %v: %v, %q", args, err, out.String())
		}
	}
}

func TestOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		command     string
		err         error
		interrupted bool
		message     string
		code        int
	}{
		"a success":                {command: "up"},
		"a failure":                {command: "up", err: errors.New("no disk"), message: "error: no disk", code: 1},
		"an exit code":             {command: "status", err: exitCode(3), code: 3},
		"an up that was stopped":   {command: "up", err: context.Canceled, interrupted: true, message: "interrupted; the same command continues", code: 130},
		"a down that was stopped":  {command: "down", err: context.Canceled, interrupted: true, message: "interrupted; the same command continues", code: 130},
		"logs that were stopped":   {command: "logs", err: context.Canceled, interrupted: true, code: 130},
		"stopped when it was over": {command: "logs", interrupted: true},
	} {
		t.Run(name, func(t *testing.T) {
			if message, code := outcome(tc.command, tc.err, tc.interrupted); message != tc.message || code != tc.code {
				t.Errorf("outcome() = %q, %d, want %q, %d", message, code, tc.message, tc.code)
			}
		})
	}
}

// Commands for a landscape that does not exist say how to bring it up.
func TestNothingThere(t *testing.T) {
	for _, args := range [][]string{
		{"kubeconfig"},
		{"kubeconfig", "shoot", "garden-local/local"},
		{"shell", "runtime-0"},
		{"logs", "runtime-0"},
		{"stop", "runtime-0"},
		{"start", "runtime-0"},
	} {
		for name, want := range map[string]string{"local": "bring it up with: make up", "other": "bring it up with: make up NAME=other"} {
			var out strings.Builder
			cmd := newCommand(strings.NewReader(""), &out, &out)
			cmd.SetArgs(append([]string{"--dir", t.TempDir(), "--name", name}, args...))
			if err := cmd.Execute(); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v: error = %v, want one that ends with %q", args, err, want)
			}
		}
	}
}

// An unknown output format is refused before the landscape is read.
func TestStatusRefusesOutput(t *testing.T) {
	var out strings.Builder
	cmd := newCommand(strings.NewReader(""), &out, &out)
	cmd.SetArgs([]string{"--dir", t.TempDir(), "status", "-o", "xml"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), `not "xml"`) {
		t.Errorf("error = %v", err)
	}
}

// A failure before the first step is reported to programs, too.
func TestUpReportsFailureToPrograms(t *testing.T) {
	var out, errOut strings.Builder
	cmd := newCommand(strings.NewReader(""), &out, &errOut)
	cmd.SetArgs([]string{"--dir", t.TempDir(), "up", "--json", "--machines", "0"})
	err := cmd.Execute()
	if err == nil {
		t.Fatal("no error")
	}
	var event progress.Event
	if err := json.Unmarshal([]byte(out.String()), &event); err != nil {
		t.Errorf("standard output %q: %v", out.String(), err)
	}
	if event.State != progress.StateFailed || event.Error != err.Error() {
		t.Errorf("event %+v, want the error %q", event, err)
	}
}

func TestAdvice(t *testing.T) {
	result := upResult{Kubeconfig: "/k/cluster.yaml", RuntimeKubeconfig: "/k/runtime.yaml"}
	for name, tc := range map[string]struct {
		kubectl, proxy string
		garden         bool
		want           string
	}{
		"clusters, a proxy":    {proxy: "export NO_PROXY=x", want: "\n  export NO_PROXY=x    # proxies cannot reach it\n  export KUBECONFIG=/k/cluster.yaml\n"},
		"a garden":             {garden: true, want: "also the seed, has /k/runtime.yaml:\n  export KUBECONFIG=/k/cluster.yaml\n"},
		"a garden, no kubectl": {garden: true, kubectl: "/c/kubectl", want: "the seed, has /k/runtime.yaml:\n  alias kubectl=/c/kubectl    # PATH has no kubectl\n  export KUBECONFIG=/k/cluster.yaml\n"},
		"clusters, no kubectl": {kubectl: "/c/kubectl", want: "\n  alias kubectl=/c/kubectl    # PATH has no kubectl\n  export KUBECONFIG=/k/cluster.yaml\n  kubectl get nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := result.advice("local", tc.kubectl, tc.proxy, tc.garden); !strings.Contains(got, tc.want) {
				t.Errorf("advice() = %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestTail(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		lines   int
		want    string
	}{
		"the last two":        {"a\nb\nc\n", 2, "b\nc\n"},
		"more than there are": {"a\nb\n", 5, "a\nb\n"},
		"an open end":         {"a\nb", 1, "b"},
		"none":                {"a\nb\n", 0, ""},
		"none of an open end": {"a\nb", 0, ""},
		"an empty file":       {"", 3, ""},
		"none of an empty":    {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			stopped, stop := context.WithCancel(t.Context())
			stop()
			var out strings.Builder
			// Following ends with Ctrl-C, which is no error.
			if err := tail(stopped, &out, file, tc.lines, true); err != nil || out.String() != tc.want {
				t.Errorf("tail() wrote %q, %v, want %q", out.String(), err, tc.want)
			}
		})
	}
}
