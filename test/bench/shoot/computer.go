package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// watched is for how long the load of the computer is measured before the benchmark.
	watched = 3 * time.Second
	// tooBusy is the share of the processors' time, in percent, from which on results are not comparable. An idle landscape with a shoot takes
	// about a tenth of two cores.
	tooBusy = 25
)

// computer is the computer of the measurement, and its load before.
type computer struct {
	Processors int    `json:"processors"`
	Model      string `json:"model"`
	Memory     int64  `json:"memoryBytes"`
	// Load is the average of the last minute.
	Load float64 `json:"load"`
	// Busy is the share of all processors' time that was used, in percent.
	Busy float64 `json:"busyPercent"`
}

func (c computer) busy() bool { return c.Busy >= tooBusy }

func (c computer) String() string {
	return fmt.Sprintf("%d processors (%s), %.0f GiB of memory; before the start, the load was %.1f and %.0f%% of the processors' time in use",
		c.Processors, c.Model, float64(c.Memory)/(1<<30), c.Load, c.Busy)
}

func observeComputer(ctx context.Context) (computer, error) {
	c := computer{Processors: runtime.NumCPU(), Model: "unknown"}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return c, err
	}
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return c, err
	}
	if model := field(cpuinfo, "model name"); model != "" {
		c.Model = model
	}
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field(meminfo, "MemTotal"), " kB"), 10, 64) // 0 GiB if unknown
	c.Memory = kib << 10
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return c, err
	}
	if _, err := fmt.Sscan(string(load), &c.Load); err != nil {
		return c, fmt.Errorf("read /proc/loadavg: %w", err)
	}
	before, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c, err
	}
	select {
	case <-time.After(watched):
	case <-ctx.Done():
		return c, ctx.Err()
	}
	after, err := os.ReadFile("/proc/stat")
	c.Busy = busyShare(before, after)
	return c, err
}

// field is the first value of a name in a file whose lines are names and values.
func field(file []byte, name string) string {
	for line := range bytes.Lines(file) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// busyShare is the share of the processors' time that was used between two states of /proc/stat, in percent.
func busyShare(before, after []byte) float64 {
	total, idle := processorTicks(after)
	totalBefore, idleBefore := processorTicks(before)
	if total <= totalBefore {
		return 0
	}
	return 100 * (1 - float64(idle-idleBefore)/float64(total-totalBefore))
}

// processorTicks are all ticks of the processors, and those in which they were idle or waited for disks.
func processorTicks(stat []byte) (total, idle int64) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := strings.Fields(string(line)) // cpu user nice system idle iowait irq softirq steal guest guest_nice
	for i := 1; i < len(fields) && i <= 8; i++ {
		ticks, _ := strconv.ParseInt(fields[i], 10, 64)
		total += ticks
		if i == 4 || i == 5 {
			idle += ticks
		}
	}
	return total, idle
}
