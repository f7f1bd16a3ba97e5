//go:build e2e

package e2e

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A command that is killed at any moment loses nothing: the next "up" converges, and "down" removes an incomplete landscape.
func TestInterruptions(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a landscape needs root")
	}
	l := newLandscape(t)
	before := observeHost(t, l.name)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no need for secrecy

	// The shortest times hit the host's network and containerd, the longer ones images, boot and kubeadm.
	for i := range 10 {
		l.killUp(t, time.Duration(random.Int64N(int64(i+1)*int64(time.Second))))
	}
	l.run(t, "up", "--without-shoot")
	l.connect(t) // for the events, if it fails
	l.awaitStatus(t)
	l.run(t, "down", "--yes")
	l.cluster, l.garden = cluster{}, cluster{} // their events are gone
	l.expectHost(t, before, "after ten interruptions, up and down the host is not as before")

	for range 3 {
		l.killUp(t, time.Duration(random.Int64N(int64(12*time.Second))))
		l.run(t, "down", "--yes")
		l.expectHost(t, before, "an incomplete landscape is not removed")
	}
}

// killUp starts "up" and kills it without a warning after a while.
func (l *landscape) killUp(t *testing.T, after time.Duration) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(l.binary, "--name", l.name, "--dir", l.dir, "up", "--without-shoot")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Signal(syscall.SIGKILL) }) //nolint:errcheck // fails if it has ended by itself
	defer timer.Stop()
	err := cmd.Wait()
	t.Logf("up was killed after %s: %v", after.Round(time.Millisecond), err)
	if cmd.ProcessState.Exited() && err != nil {
		t.Errorf("up failed by itself:\n%s", out.String())
	}
}
