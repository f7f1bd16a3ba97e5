package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killer kills random processes of a landscape, as if they had crashed.
type killer struct {
	landscape string
	// programs are the programs to kill: names of binaries, or of components of the binary gardener.
	programs []string
	// shortest and longest limit the time between two kills.
	shortest, longest time.Duration
	random            *rand.Rand
	kills             map[string]int
}

// run kills until the context ends.
func (k *killer) run(ctx context.Context) {
	k.kills = map[string]int{}
	timer := time.NewTimer(k.pause())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			k.kill()
			timer.Reset(k.pause())
		}
	}
}

func (k *killer) pause() time.Duration {
	return k.shortest + time.Duration(k.random.Int64N(int64(k.longest-k.shortest)+1))
}

func (k *killer) kill() {
	byProgram := k.victims()
	programs := make([]string, 0, len(byProgram))
	for program := range byProgram {
		programs = append(programs, program)
	}
	if len(programs) == 0 {
		return
	}
	slices.Sort(programs) // so that a run with the same seed is the same
	program := programs[k.random.IntN(len(programs))]
	pids := byProgram[program]
	if syscall.Kill(pids[k.random.IntN(len(pids))], syscall.SIGKILL) == nil {
		k.kills[program]++
	}
}

// victims are the processes of the landscape that may be killed, by program.
func (k *killer) victims() map[string][]int {
	found := map[string][]int{}
	for _, dir := range k.processes() {
		if program := programOf(dir); slices.Contains(k.programs, program) {
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
				found[program] = append(found[program], pid)
			}
		}
	}
	return found
}

// processes are the directories of the landscape's processes.
func (k *killer) processes() []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // only an invalid pattern is an error
	return slices.DeleteFunc(dirs, func(dir string) bool {
		cgroup, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		return err != nil || !bytes.Contains(cgroup, []byte("/gardener-"+k.landscape+"/"))
	})
}

// programOf is the name of the binary of a process, or that of the component if the binary has several.
func programOf(dir string) string {
	raw, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return ""
	}
	args := strings.Split(string(raw), "\x00")
	name := filepath.Base(args[0])
	if name == "gardener" && len(args) > 1 {
		name = args[1]
	}
	return name
}
