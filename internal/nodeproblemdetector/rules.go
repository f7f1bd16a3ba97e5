package nodeproblemdetector

import (
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Types of conditions. All are False without a problem.
const (
	kernelDeadlock            corev1.NodeConditionType = "KernelDeadlock"
	readonlyFilesystem        corev1.NodeConditionType = "ReadonlyFilesystem"
	frequentUnregisterDevice  corev1.NodeConditionType = "FrequentUnregisterNetDevice"
	frequentKubeletRestart    corev1.NodeConditionType = "FrequentKubeletRestart"
	frequentContainerdRestart corev1.NodeConditionType = "FrequentContainerdRestart"
)

const (
	reasonUnregisterNetDevice = "UnregisterNetDevice"

	kubeletUnit, containerdUnit = "kubelet.service", "containerd.service"
)

// source is where problems are read.
type source string

const (
	kernel  source = "kernel-log"
	systemd source = "systemd"
)

// sources are all of them, with the reason of the event that one cannot be read.
var sources = map[source]string{kernel: "KernelLogUnreadable", systemd: "SystemdUnreachable"}

// kind is a type of conditions.
type kind struct {
	condition corev1.NodeConditionType
	source    source
	// reason and message are those without a problem.
	reason, message string
	// frequent is set if the condition is True while something happens often. Otherwise it stays True, as only a restart of the machine helps.
	frequent *frequency
}

// frequency says how often something may happen.
type frequency struct {
	// of is the unit of systemd that starts, or the reason of the rule that matches.
	of string
	// threshold is how often in the time window is too often.
	threshold int
	// message is that of the condition, without a number, which would change it each time.
	message string
}

// window is the time in which a frequency is counted, as in the original.
const window = 20 * time.Minute

var kinds = []kind{
	{condition: kernelDeadlock, source: kernel, reason: "KernelHasNoDeadlock", message: "kernel has no deadlock"},
	{condition: readonlyFilesystem, source: kernel, reason: "FilesystemIsNotReadOnly", message: "Filesystem is not read-only"},
	{
		condition: frequentUnregisterDevice, source: kernel, reason: "NoFrequentUnregisterNetDevice", message: "node is functioning properly",
		frequent: &frequency{of: reasonUnregisterNetDevice, threshold: 3, message: "The kernel has waited for network devices 3 times or more in 20 minutes"},
	},
	{
		condition: frequentKubeletRestart, source: systemd, reason: "NoFrequentKubeletRestart", message: "kubelet is functioning properly",
		frequent: &frequency{of: kubeletUnit, threshold: 5, message: kubeletUnit + " has started 5 times or more in 20 minutes"},
	},
	{
		condition: frequentContainerdRestart, source: systemd, reason: "NoFrequentContainerdRestart", message: "containerd is functioning properly",
		frequent: &frequency{of: containerdUnit, threshold: 5, message: containerdUnit + " has started 5 times or more in 20 minutes"},
	},
}

// rule finds a problem in messages of the kernel.
type rule struct {
	reason  string
	pattern *regexp.Regexp
	// condition becomes True and stays so. Empty means that there is only an event.
	condition corev1.NodeConditionType
}

// rules are in order: the first one that matches a message counts.
//
// containerd or the kubelet may wait for a slow disk for some minutes and go on, so KernelDeadlock, which costs the machine, takes at least eight. The
// kernel reports a task again every two minutes, as long as it has not made kernel.hung_task_warnings reports, ten by default.
var rules = []rule{
	{reason: "ContainerdHung", condition: kernelDeadlock, pattern: hung("containerd")},
	{reason: "KubeletHung", condition: kernelDeadlock, pattern: hung("kubelet")},
	{reason: "FilesystemIsReadOnly", condition: readonlyFilesystem, pattern: regexp.MustCompile(`Remounting filesystem read-only`)},
	{reason: "OOMKilling", pattern: regexp.MustCompile(`Killed process \d+ \(.+\) total-vm:\d+kB`)},
	{reason: "TaskHung", pattern: regexp.MustCompile(`task \S.*:\d+ blocked for more than \d+ seconds`)},
	{reason: reasonUnregisterNetDevice, pattern: regexp.MustCompile(`unregister_netdevice: waiting for \S+ to become free`)},
	{reason: "KernelOops", pattern: regexp.MustCompile(`BUG: (kernel NULL pointer dereference|unable to handle )|` +
		`^(Oops|divide error|invalid opcode|general protection fault|Internal error)\b.* \[#\d+\]`)},
	{reason: "Ext4Error", pattern: regexp.MustCompile(`EXT4-fs error`)},
	{reason: "Ext4Warning", pattern: regexp.MustCompile(`EXT4-fs warning`)},
	{reason: "IOError", pattern: regexp.MustCompile(`Buffer I/O error`)},
	{reason: "MemoryReadError", pattern: regexp.MustCompile(`CE memory read error`)},
}

func hung(task string) *regexp.Regexp {
	return regexp.MustCompile(`task ` + task + `:\d+ blocked for more than (4[89]\d|[5-9]\d\d|\d{4,}) seconds`)
}

// match returns the rule for a message of the kernel, or nil.
func match(message string) *rule {
	for i := range rules {
		if rules[i].pattern.MatchString(message) {
			return &rules[i]
		}
	}
	return nil
}
