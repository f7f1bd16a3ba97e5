package distribution

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// killGrace is how long a build tool may clean up after SIGTERM.
const killGrace = 5 * time.Second

// command is a build tool that runs with its output in a log.
type command struct {
	dir   string
	env   []string
	stdin string
	args  []string
}

// run writes the command and its output to log, and gives each line of output to line.
func (c command) run(ctx context.Context, log io.Writer, line func(string)) error {
	// The kernel sends the parent death signal when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	fmt.Fprintf(log, "$ cd %s && %s\n", c.dir, strings.Join(c.args, " "))
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(out)
		for {
			text, err := lines.ReadString('\n')
			if text != "" {
				io.WriteString(log, text) //nolint:errcheck // a build does not fail for its log
				line(strings.TrimRight(text, "\r\n"))
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// The tool has ended by now; its children may have ignored the signal.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	in.Close() //nolint:errcheck // a pipe always closes
	<-done
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
