//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// waiting logs what explains a wait that succeeds late: the errors of its tries, and what the computer was busy with after a minute.
type waiting struct {
	t      *testing.T
	begin  time.Time
	seen   map[string]bool
	looked bool
}

// maxErrors is how many errors of a wait are logged.
const maxErrors = 5

func newWaiting(t *testing.T) *waiting {
	return &waiting{t: t, begin: time.Now(), seen: map[string]bool{}}
}

// note is called with the error of each try.
func (w *waiting) note(err error) {
	w.t.Helper()
	if err == nil {
		return
	}
	since := time.Since(w.begin)
	if text := err.Error(); !w.seen[text] && len(w.seen) < maxErrors {
		w.seen[text] = true
		if since > time.Second { // others are expected for a moment
			w.t.Logf("after %s: %.500s", since.Round(time.Second), text)
		}
	}
	if since > time.Minute && !w.looked {
		w.looked = true
		w.t.Log(strings.TrimSpace(busyWith()))
	}
}

// busyWith is what the computer does, and what its kernel said.
func busyWith() string {
	const script = `cat /proc/pressure/* 2>/dev/null; cat /proc/sys/net/netfilter/nf_conntrack_count; top -bH -n1 -w160 | head -20; dmesg | tail -5`
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(out)
}
