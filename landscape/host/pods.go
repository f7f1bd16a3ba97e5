package host

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is how Linux counts the time of processes, on all architectures.
const ticksPerSecond = 100

// PodUsage is what the processes of a pod take.
type PodUsage struct {
	Memory
	// Processor is the time since their start.
	Processor time.Duration
}

// PodsUsage adds up the processes of pods on this computer, by the UID of the pod. What runs in a machine that is itself a pod counts for
// that pod.
func PodsUsage(wanted func(uid string) bool) map[string]PodUsage {
	usage := map[string]PodUsage{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // The pattern is fine, which is all that can be wrong.
	for _, dir := range dirs {
		cgroup, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil {
			continue // it has ended
		}
		uid := podUID(cgroup)
		if uid == "" || !wanted(uid) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		total := usage[uid]
		if _, memory := ProcessMemory(pid); memory.Processes > 0 {
			total.Memory = total.Add(memory)
		}
		if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err == nil {
			total.Processor += processorTime(stat)
		}
		usage[uid] = total
	}
	return usage
}

var podPattern = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)

// podUID is the UID of the outermost pod of a process, by its control groups. It is empty for a process without a pod.
func podUID(cgroup []byte) string {
	match := podPattern.FindSubmatch(cgroup)
	if match == nil {
		return ""
	}
	return strings.ReplaceAll(string(match[1]), "_", "-")
}

// processorTime is what a process and its ended children have used.
func processorTime(stat []byte) time.Duration {
	// The name of the program, in brackets, may have anything in it. The fields after it start with the state.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:15] {
		n, _ := strconv.ParseInt(string(field), 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
