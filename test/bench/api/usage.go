package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc, the same on every Linux.
const clockTick = 10 * time.Millisecond

// cpuTime is the CPU time that a process has used, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the command, in parentheses, may contain spaces.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks int64
	for _, i := range []int{11, 12} { // utime and stime
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// readMemory reads the resident memory of a process.
func (m *memory) readMemory(pid int) error {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kilobytes, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return fmt.Errorf("read memory of process %d: %w", pid, err)
		}
		switch fields[0] {
		case "Rss:":
			m.RSS = kilobytes / 1024
		case "Pss:":
			m.PSS = kilobytes / 1024
		case "Anonymous:":
			m.Own = kilobytes / 1024
		}
	}
	return nil
}

// thisMachine describes the machine it runs on.
func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), CPU: runtime.GOARCH}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _ = strconv.ParseFloat(strings.Fields(string(data))[0], 64) // zero if it cannot be read
	}
	return m
}
