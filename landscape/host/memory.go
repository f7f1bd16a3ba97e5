package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is the memory of a group of processes, in bytes.
type Memory struct {
	// Processes is their number.
	Processes int
	// Resident counts a page that processes share once for each of them.
	Resident int64
	// Proportional divides a shared page between the processes that share it, so that sums are right.
	Proportional int64
}

// Add returns the sum of two groups.
func (m Memory) Add(other Memory) Memory {
	return Memory{m.Processes + other.Processes, m.Resident + other.Resident, m.Proportional + other.Proportional}
}

// ProcessMemory reads the memory of a process, and the name it was started with: the base name of its first argument. Both are zero for a
// process that has ended meanwhile.
func ProcessMemory(pid int) (name string, memory Memory) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(cmdline) == 0 {
		return "", Memory{}
	}
	rollup, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return "", Memory{}
	}
	first, _, _ := strings.Cut(string(cmdline), "\x00")
	return processName(first), parseRollup(rollup)
}

// processName removes directories and what some daemons add to their first argument, such as "sshd: user".
func processName(argument string) string {
	name, _, _ := strings.Cut(argument, " ")
	return strings.TrimSuffix(filepath.Base(name), ":")
}

func parseRollup(rollup []byte) Memory {
	memory := Memory{Processes: 1}
	for line := range strings.Lines(string(rollup)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &kib); err == nil {
			memory.Resident = kib << 10
		}
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kib); err == nil {
			memory.Proportional = kib << 10
		}
	}
	return memory
}
