package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlanCgroups(t *testing.T) {
	for name, tc := range map[string]struct {
		text      string
		want      []cgroupMount
		arguments int
		err       string
	}{
		"v2": {text: "0::/kubepods/pod1\n", want: []cgroupMount{{fstype: "cgroup2"}}},
		"v1 beside v2": {
			text: "9:name=systemd:/a\n4:cpu,cpuacct:/a\n3:memory:/\n0::/\n",
			want: []cgroupMount{
				{dir: "systemd", fstype: "cgroup", data: "none,name=systemd"},
				{dir: "cpu,cpuacct", fstype: "cgroup", data: "cpu,cpuacct", links: []string{"cpu", "cpuacct"}},
				{dir: "memory", fstype: "cgroup", data: "memory"},
			},
			arguments: 2,
		},
		"v1 without systemd's": {text: "3:memory:/\n", err: "without the hierarchy name=systemd"},
		"unreadable":           {text: "memory\n", err: `cannot read line "memory"`},
	} {
		t.Run(name, func(t *testing.T) {
			hierarchies, err := parseHierarchies(tc.text)
			var got []cgroupMount
			if err == nil {
				got, err = planCgroups(hierarchies)
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("planCgroups() = %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(cgroupMount{})); diff != "" {
				t.Errorf("planCgroups() (-want +got):\n%s", diff)
			}
			if len(initArguments(got)) != tc.arguments {
				t.Errorf("initArguments() = %v", initArguments(got))
			}
		})
	}
}

func TestSharedWithHost(t *testing.T) {
	hierarchies := []hierarchy{{"9", "name=systemd", "/"}, {"3", "memory", "/a"}, {"0", "", "/"}}
	if diff := cmp.Diff([]string{"name=systemd"}, sharedWithHost(hierarchies, true)); diff != "" {
		t.Errorf("in the host's namespace (-want +got):\n%s", diff)
	}
	if got := sharedWithHost(hierarchies, false); got != nil {
		t.Errorf("in a namespace of its own: %v", got)
	}
}

func TestMountedAt(t *testing.T) {
	const mountinfo = "22 1 0:20 / /run rw,nosuid - tmpfs tmpfs rw\n23 22 0:21 / /run/lock rw - tmpfs tmpfs rw\n"
	for dir, want := range map[string]bool{"/run": true, "/run/lock": true, "/tmp": false, "/ru": false} {
		if got := mountedAt(mountinfo, dir); got != want {
			t.Errorf("mountedAt(%s) = %v", dir, got)
		}
	}
}

func TestContainerdSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		status     string
		restricted bool
		fails      bool
	}{
		"all capabilities":         {status: "Name:\tx\nCapEff:\t000001ffffffffff\n"},
		"without CAP_SYS_RESOURCE": {status: "CapEff:\t000001fffeffffff\n", restricted: true},
		"nothing known":            {status: "Name:\tx\n", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			may, err := hasCapability(tc.status, capSysResource)
			if (err != nil) != tc.fails {
				t.Fatalf("hasCapability() = %v", err)
			}
			if tc.fails {
				return
			}
			got := containerdSettings(may)
			if strings.Contains(got, "restrict_oom_score_adj = true") != tc.restricted || !strings.Contains(got, "version = 3\n") {
				t.Errorf("containerdSettings(%v) = %q", may, got)
			}
		})
	}
}

func TestEnsureMachineID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "machine-id")
	pattern := regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}\n$`)
	ids := map[string]bool{}
	for _, before := range []string{"", "\n", "uninitialized\n"} {
		if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		var last string
		for range 2 { // the second boot keeps it
			if err := ensureMachineID(path); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !pattern.Match(got) {
				t.Fatalf("machine ID %q, %v", got, err)
			}
			if last != "" && last != string(got) {
				t.Errorf("changed from %q to %q", last, got)
			}
			last = string(got)
			ids[last] = true
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != 3 {
		t.Errorf("machines share an ID: %v", ids)
	}
}

func TestRunUserdata(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		output string
		err    string
		done   bool
	}{
		"script":         {script: "#!/bin/sh\necho hello; pwd\n", output: "hello\n/\n", done: true},
		"failing":        {script: "#!/bin/sh\nexit 3\n", err: "user data failed: exit status 3"},
		"not a script":   {script: "key: value\n", err: `starts with "key: value"`},
		"empty":          {script: "", err: "is not a script"},
		"no interpreter": {script: "#!/no/such/thing\n", err: "user data failed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := paths{filepath.Join(dir, "userdata"), filepath.Join(dir, "run", "userdata"), filepath.Join(dir, "lib", "done")}
			if err := os.WriteFile(p.userdata, []byte(tc.script), 0o400); err != nil { // as from a Secret
				t.Fatal(err)
			}
			var out, errOut bytes.Buffer
			err := runUserdata(p, &out, &errOut)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("runUserdata() = %v, want %q", err, tc.err)
			}
			if out.String() != tc.output {
				t.Errorf("output %q, want %q", out.String(), tc.output)
			}
			if _, err := os.Stat(p.done); (err == nil) != tc.done {
				t.Errorf("done: %v, want %v", err, tc.done)
			}
			if !tc.done {
				return
			}
			out.Reset()
			if err := runUserdata(p, &out, &errOut); err != nil || out.Len() > 0 {
				t.Errorf("ran twice: %q, %v", out.String(), err)
			}
		})
	}
}
