package distribution

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	l := NewLines(&out)
	l.now = func() time.Time { return now }
	wait := func(d time.Duration) {
		now = now.Add(d)
		l.tick()
	}
	l.Begin(6, 5)
	l.Started("kubernetes")
	wait(19 * time.Second)
	l.Step("kubernetes", "412 packages compiled")
	l.Started("etcd")
	wait(time.Second)
	l.Finished("etcd", nil)
	wait(80 * time.Second)
	l.Finished("kubernetes", errors.New("no"))
	l.Waiting("runc")
	wait(21 * time.Second)
	l.Finished("runc", nil)
	l.Waiting("pause")
	wait(21 * time.Second)
	l.Started("pause") // the other run was interrupted
	wait(19 * time.Second)
	l.Finished("pause", nil)
	l.Started("coredns")
	l.Finished("coredns", context.Canceled)
	want := `        kubernetes               20s, 412 packages compiled
[1/5]   etcd                     1.0s
        kubernetes               1m40s, 412 packages compiled
[2/5]   kubernetes               failed after 1m40s
        runc                     21s, waiting for another run that builds it
[3/5]   runc                     built by another run
        pause                    21s, waiting for another run that builds it
[4/5]   pause                    19s
[5/5]   coredns                  stopped after 0.0s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLiveLines(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	l := NewLines(&out)
	l.live, l.now, l.width = true, func() time.Time { return now }, func() int { return 40 }
	l.Begin(1, 1)
	l.Started("etcd")
	now = now.Add(time.Second)
	l.tick() // too early
	now = now.Add(2 * time.Second)
	l.Step("etcd", "a step with a name that is too long")
	l.tick()
	l.tick()
	l.Finished("etcd", nil)
	const up = "\x1b[1A\x1b[2K"
	line := "        etcd                     3.0s, \n"
	want := line + up + line + up + "[1/1]   etcd                     3.0s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestTexts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 9940 * time.Millisecond: "9.9s", 59 * time.Second: "59s", 260 * time.Second: "4m20s", 3601 * time.Second: "60m01s",
	} {
		if got := durationText(d); got != want {
			t.Errorf("durationText(%v) = %s, want %s", d, got, want)
		}
	}
	for size, want := range map[int64]string{0: "0 KiB", 1: "1 KiB", 5 << 20: "5 MiB", 3 << 29: "1.5 GiB"} {
		if got := SizeText(size); got != want {
			t.Errorf("SizeText(%d) = %s, want %s", size, got, want)
		}
	}
}

func TestAptSources(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sources.list"), `# deb http://old.example.com/debian bookworm main
deb [arch=amd64] http://mirror.example.com/debian/ bookworm main contrib # ours
deb-src http://mirror.example.com/debian bookworm main
deb http://mirror.example.com/debian trixie main
`)
	write(t, filepath.Join(dir, "sources.list.d", "debian.sources"), `Types: deb deb-src
# a comment
URIs: http://mirror.example.com/debian-security
Suites: bookworm-security trixie-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example.com/debian
Suites: bookworm-updates
Components: main
Enabled: no
`)
	write(t, filepath.Join(dir, "sources.list.d", "vendor.list"), "deb https://vendor.example.com/apt bookworm main\n")
	write(t, filepath.Join(dir, "sources.list.d", "README"), "deb http://mirror.example.com/debian bookworm main\n")
	got, err := aptSources(dir, "bookworm", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	want := `deb [arch=amd64] http://mirror.example.com/debian/ bookworm main contrib
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example.com/debian-security bookworm-security main
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aptSources() (-want +got):\n%s", diff)
	}
	if got, err := aptSources(filepath.Join(dir, "nowhere"), "bookworm", "amd64"); err != nil || got != "" {
		t.Errorf("aptSources() without files = %q, %v", got, err)
	}
}

// The build must not take over that the building machine trusts packages without a signature.
func TestAptSourcesWithForbiddenOptions(t *testing.T) {
	for options, wantErr := range map[string]string{
		"[trusted=yes]": `option "trusted"`, "[arch=amd64 allow-insecure=yes]": `option "allow-insecure"`, "[Trusted=yes]": `option "trusted"`,
		"[check-valid-until=no]": `option "check-valid-until"`, "[arch+=arm64 signed-by=/usr/share/keyrings/k.gpg]": "", "[]": "",
	} {
		for _, file := range []string{"sources.list", "sources.list.d/debian.list"} {
			dir := t.TempDir()
			write(t, filepath.Join(dir, file), "deb "+options+" http://mirror.example.com/debian bookworm main\n")
			got, err := aptSources(dir, "bookworm", "amd64")
			if wantErr != "" {
				wantError(t, err, filepath.Base(file), wantErr)
			} else if err != nil || got == "" {
				t.Errorf("aptSources() with %s = %q, %v", options, got, err)
			}
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		version  string
		packages []DebianPackage
		err      []string
	}{
		"right":         {"2.6", []DebianPackage{{Name: "a", Version: "1"}, {Name: "haproxy", Version: "2.6.12-1+deb12u2"}}, nil},
		"with an epoch": {"2.6", []DebianPackage{{Name: "haproxy", Version: "1:2.6.12-1"}}, nil},
		"exact":         {"2.6.12", []DebianPackage{{Name: "haproxy", Version: "2.6.12-1"}}, nil},
		"newer":         {"2.6", []DebianPackage{{Name: "haproxy", Version: "2.60.1-1"}}, []string{"haproxy 2.60.1-1", "says version 2.6"}},
		"missing":       {"2.6", []DebianPackage{{Name: "haproxy-doc", Version: "2.6.1"}}, []string{"haproxy was not installed"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := variant{&product{recipe: &Recipe{Debian: &Debian{VersionOf: "haproxy"}}}, tc.version}
			wantError(t, checkVersion(v, tc.packages), tc.err...)
		})
	}
}

func TestKeeps(t *testing.T) {
	r := &Debian{Keep: []string{"/etc/ssl", "/tmp"}}
	for name, want := range map[string]bool{"etc/ssl": true, "etc/ssl/certs/x": true, "etc/sslx": false, "etc": false, "tmp": true} {
		if got := r.keeps(name); got != want {
			t.Errorf("keeps(%q) = %v", name, got)
		}
	}
	if !(&Debian{}).keeps("anything") {
		t.Error("an empty list keeps nothing")
	}
}

func TestAlignModules(t *testing.T) {
	const model = `module example.com/kubernetes
require (
	a.com/x v1.2.0
	a.com/y v0.0.0
	a.com/unused v1.0.0
)
replace a.com/y => a.com/y v0.36.3
`
	const before = `module example.com/p

go 1.26.0

require (
	a.com/main v1.0.0
	a.com/x v1.3.0 // indirect
	a.com/y v0.35.0 // indirect
	a.com/own v1.0.0 // indirect
)
`
	const graph = "example.com/p a.com/x@v1.3.0\na.com/main@v1.0.0 a.com/x@v1.2.9\na.com/main@v1.0.0 a.com/x@v1.1.0\na.com/main@v1.0.0 a.com/unused@v2.0.0\n"
	const want = `module example.com/p

go 1.26.0

require (
	a.com/main v1.0.0
	a.com/own v1.0.0 // indirect
	a.com/x v1.2.0 // indirect
	a.com/y v0.36.3 // indirect
)

exclude (
	a.com/x v1.2.9
	a.com/x v1.3.0
)
`
	got, changed, err := alignModules("go.mod", []byte(before), []byte(model), graph)
	if err != nil || !changed {
		t.Fatalf("alignModules() = %v, %v", changed, err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("alignModules() (-want +got):\n%s", diff)
	}
	if _, changed, err := alignModules("go.mod", got, []byte(model), graph); err != nil || changed {
		t.Errorf("a second time: changed %v, %v", changed, err)
	}
}

func TestDefaultCache(t *testing.T) {
	t.Setenv(CacheEnv, "")
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	if got, err := DefaultCache(); err != nil || got != "/xdg/gardener/distribution" {
		t.Errorf("DefaultCache() = %s, %v", got, err)
	}
	t.Setenv(CacheEnv, "relative")
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DefaultCache(); err != nil || got != filepath.Join(wd, "relative") {
		t.Errorf("DefaultCache() = %s, %v", got, err)
	}
}
