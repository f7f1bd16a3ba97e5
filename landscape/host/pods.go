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

// PodUsage is the memory and CPU time of a pod's processes.
type PodUsage struct {
	Memory
	// Processor is the CPU time since their start.
	Processor time.Duration
}

// PodsUsage adds up the processes of pods on this computer, by the UID of the pod. Processes in a machine that is itself a pod count for
// that pod.
func PodsUsage(wanted func(uid string) bool) map[string]PodUsage {
	usage := map[string]PodUsage{}
	eachPodProcess(func(pid int, uids []string) {
		if wanted(uids[0]) {
			usage[uids[0]] = usage[uids[0]].add(pid)
		}
	})
	return usage
}

// MachineUsage adds up the processes in a machine that is itself a pod of this computer: those of its pods by UID, and those of the machine
// itself by the name of their program.
func MachineUsage(uid string) (pods, programs map[string]PodUsage) {
	pods, programs = map[string]PodUsage{}, map[string]PodUsage{}
	eachPodProcess(func(pid int, uids []string) {
		switch inner := uids[len(uids)-1]; {
		case uids[0] != uid:
		case len(uids) > 1:
			pods[inner] = pods[inner].add(pid)
		default:
			if name, _ := ProcessMemory(pid); name != "" {
				programs[name] = programs[name].add(pid)
			}
		}
	})
	return pods, programs
}

// eachPodProcess visits the processes of this computer's pods, with the UIDs of the pods they are in, the outermost first.
func eachPodProcess(visit func(pid int, uids []string)) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // Only an invalid pattern is an error.
	for _, dir := range dirs {
		cgroup, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if uids := podUIDs(cgroup); err == nil && len(uids) > 0 {
			visit(pid, uids)
		}
	}
}

// add returns the usage including another process, which counts as zero if it has ended meanwhile.
func (u PodUsage) add(pid int) PodUsage {
	if _, memory := ProcessMemory(pid); memory.Processes > 0 {
		u.Memory = u.Memory.Add(memory)
	}
	if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err == nil {
		u.Processor += processorTime(stat)
	}
	return u
}

var podPattern = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)

// podUIDs are the UIDs of the pods that a process is in, by its control groups, the outermost first. A hierarchy may stop before the
// innermost; the one that goes deepest counts.
func podUIDs(cgroups []byte) []string {
	var uids []string
	for line := range bytes.Lines(cgroups) {
		if matches := podPattern.FindAllSubmatch(line, -1); len(matches) > len(uids) {
			uids = uids[:0]
			for _, match := range matches {
				uids = append(uids, strings.ReplaceAll(string(match[1]), "_", "-"))
			}
		}
	}
	return uids
}

// processorTime is the CPU time of a process and its ended children.
func processorTime(stat []byte) time.Duration {
	// The name of the program, in brackets, may contain any character. The fields after it start with the state.
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
