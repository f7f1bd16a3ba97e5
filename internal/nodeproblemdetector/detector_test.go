package nodeproblemdetector

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	remounted = "EXT4-fs (vda1): Remounting filesystem read-only"
	waits     = "unregister_netdevice: waiting for eth0 to become free. Usage count = 1"
)

func TestMatch(t *testing.T) {
	for message, want := range map[string]string{
		"Memory cgroup out of memory: Killed process 1012 (heapster) total-vm:327128kB, anon-rss:306328kB, file-rss:11132kB, shmem-rss:12kB": "OOMKilling",
		"Out of memory: Killed process 5 (a (b)) total-vm:1kB, anon-rss:0kB, file-rss:0kB, shmem-rss:0kB":                                    "OOMKilling",
		"INFO: task kworker/u8:1:42 blocked for more than 122 seconds.":                                                                      "TaskHung",
		"INFO: task containerd:1234 blocked for more than 362 seconds.":                                                                      "TaskHung",
		"INFO: task containerd:1234 blocked for more than 483 seconds.":                                                                      "ContainerdHung",
		"INFO: task containerd-shim:1234 blocked for more than 483 seconds.":                                                                 "TaskHung",
		"INFO: task kubelet:1234 blocked for more than 1208 seconds.":                                                                        "KubeletHung",
		remounted: "FilesystemIsReadOnly",
		waits:     "UnregisterNetDevice",
		"BUG: kernel NULL pointer dereference, address: 0000000000000000": "KernelOops",
		"BUG: unable to handle page fault for address: ffffffffc0a0e000":  "KernelOops",
		"Oops: 0002 [#1] SMP PTI":                                                "KernelOops",
		"divide error: 0000 [#2] SMP":                                            "KernelOops",
		"Internal error: Oops: 96000004 [#1] PREEMPT SMP":                        "KernelOops",
		"EXT4-fs error (device sda1): ext4_find_entry:1465: inode #2: comm ls":   "Ext4Error",
		"EXT4-fs warning (device sda1): ext4_dx_add_entry:2018: Directory index": "Ext4Warning",
		"Buffer I/O error on dev sdb, logical block 0, async page read":          "IOError",
		"EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0":     "MemoryReadError",
		"IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready":                "",
	} {
		got := ""
		if r := match(message); r != nil {
			got = r.reason
		}
		if got != want {
			t.Errorf("match(%q) = %q, want %q", message, got, want)
		}
	}
}

func TestDetector(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	kernelSays := func(message string, past bool) observation { return found(match(message), message, past) }
	broken := errors.New("open /dev/kmsg: no such file or directory")
	type step struct {
		after time.Duration
		observation
	}
	for name, tc := range map[string]struct {
		steps []step
		// at is when the conditions are read, after the last step.
		at     time.Duration
		events []event
		// bad are the conditions that are not False, and none says that there are none of the kernel.
		bad  map[corev1.NodeConditionType]problem
		none bool
		ends time.Duration
		// series are those that are not zero.
		series map[string]float64
	}{
		"nothing happens": {},
		"a filesystem becomes read-only, and is so for good": {
			steps:  []step{{0, kernelSays(remounted, false)}, {time.Minute, kernelSays(strings.ReplaceAll(remounted, "vda1", "vdb1"), false)}},
			at:     time.Hour,
			events: []event{{"Warning", "FilesystemIsReadOnly", remounted}, {"Warning", "FilesystemIsReadOnly", strings.ReplaceAll(remounted, "vda1", "vdb1")}},
			bad:    map[corev1.NodeConditionType]problem{readonlyFilesystem: {"FilesystemIsReadOnly", remounted}},
			series: map[string]float64{"problem_counter/FilesystemIsReadOnly": 2, "problem_gauge/FilesystemIsReadOnly/ReadonlyFilesystem": 1},
		},
		"it was so before the process started": {
			steps:  []step{{0, kernelSays(remounted, true)}},
			bad:    map[corev1.NodeConditionType]problem{readonlyFilesystem: {"FilesystemIsReadOnly", remounted}},
			series: map[string]float64{"problem_gauge/FilesystemIsReadOnly/ReadonlyFilesystem": 1},
		},
		"a message is longer than events may be": {
			steps: []step{{0, kernelSays("Buffer I/O error "+strings.Repeat("x", 1006)+"é", false)}}, // the last rune is cut
			events: []event{
				{"Warning", "IOError", "Buffer I/O error " + strings.Repeat("x", 1006)},
			},
			series: map[string]float64{"problem_counter/IOError": 1},
		},
		"the kubelet starts often": {
			steps: []step{
				{0, started(kubeletUnit)},
				{time.Minute, started(kubeletUnit)},
				{2 * time.Minute, started(kubeletUnit)},
				{3 * time.Minute, started(containerdUnit)},
				{4 * time.Minute, started(kubeletUnit)},
				{5 * time.Minute, started(kubeletUnit)},
				{6 * time.Minute, started(kubeletUnit)},
			},
			at:     7 * time.Minute,
			events: []event{{"Warning", "FrequentKubeletRestart", "kubelet.service has started 5 times or more in 20 minutes"}},
			bad: map[corev1.NodeConditionType]problem{
				frequentKubeletRestart: {"FrequentKubeletRestart", "kubelet.service has started 5 times or more in 20 minutes"},
			},
			ends:   14 * time.Minute, // 20 minutes after the fifth last start, which is the one after a minute
			series: map[string]float64{"problem_counter/FrequentKubeletRestart": 1, "problem_gauge/FrequentKubeletRestart/FrequentKubeletRestart": 1},
		},
		"it does so no more": {
			steps: []step{
				{0, started(kubeletUnit)}, {0, started(kubeletUnit)}, {0, started(kubeletUnit)}, {0, started(kubeletUnit)}, {0, started(kubeletUnit)},
			},
			at:     20 * time.Minute,
			events: []event{{"Warning", "FrequentKubeletRestart", "kubelet.service has started 5 times or more in 20 minutes"}},
			series: map[string]float64{"problem_counter/FrequentKubeletRestart": 1},
		},
		"the kernel waits for devices often": {
			steps: []step{{0, kernelSays(waits, true)}, {0, kernelSays(waits, false)}, {0, kernelSays(waits, false)}, {0, kernelSays(waits, false)}},
			events: []event{
				{"Warning", "UnregisterNetDevice", waits},
				{"Warning", "UnregisterNetDevice", waits},
				{"Warning", "UnregisterNetDevice", waits},
				{"Warning", "FrequentUnregisterNetDevice", "The kernel has waited for network devices 3 times or more in 20 minutes"},
			},
			bad: map[corev1.NodeConditionType]problem{
				frequentUnregisterDevice: {"FrequentUnregisterNetDevice", "The kernel has waited for network devices 3 times or more in 20 minutes"},
			},
			ends: 20 * time.Minute,
			series: map[string]float64{
				"problem_counter/UnregisterNetDevice": 3, "problem_counter/FrequentUnregisterNetDevice": 1,
				"problem_gauge/FrequentUnregisterNetDevice/FrequentUnregisterNetDevice": 1,
			},
		},
		"the kernel log cannot be read, which is said once": {
			steps: []step{{0, unavailable(kernel, broken)}, {time.Minute, unavailable(kernel, broken)}},
			events: []event{{
				"Warning", "KernelLogUnreadable",
				"The node has no conditions KernelDeadlock, ReadonlyFilesystem, FrequentUnregisterNetDevice: open /dev/kmsg: no such file or directory",
			}},
			none: true,
		},
		"it can be read again": {
			steps: []step{{0, unavailable(kernel, broken)}, {time.Minute, available(kernel)}},
			events: []event{{
				"Warning", "KernelLogUnreadable",
				"The node has no conditions KernelDeadlock, ReadonlyFilesystem, FrequentUnregisterNetDevice: open /dev/kmsg: no such file or directory",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetrics()
			d := newDetector(m)
			available(kernel)(d, start)
			available(systemd)(d, start)
			var events []event
			for _, s := range tc.steps {
				events = append(events, s.observation(d, start.Add(s.after))...)
			}
			conditions, ends := d.conditions(start.Add(tc.at))
			var want []corev1.NodeCondition
			for _, k := range kinds {
				c := corev1.NodeCondition{Type: k.condition, Status: corev1.ConditionFalse, Reason: k.reason, Message: k.message}
				if p, ok := tc.bad[k.condition]; ok {
					c.Status, c.Reason, c.Message = corev1.ConditionTrue, p.reason, p.message
				}
				if k.source != kernel || !tc.none {
					want = append(want, c)
				}
			}
			if diff := cmp.Diff(want, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, events, cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if ends != tc.ends {
				t.Errorf("conditions end after %v, want %v", ends, tc.ends)
			}
			series := tc.series
			if series == nil {
				series = map[string]float64{}
			}
			if diff := cmp.Diff(series, problemSeries(t, m)); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetectorKnowsAllSources(t *testing.T) {
	d := newDetector(newMetrics())
	available(kernel)(d, time.Time{})
	if d.known() {
		t.Error("it knows systemd")
	}
	unavailable(systemd, errors.New("no"))(d, time.Time{})
	if !d.known() {
		t.Error("it does not know its sources")
	}
}

// problemSeries returns the series of problems that are not zero, by name and values of labels.
func problemSeries(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "problem_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += "/" + label.GetValue()
			}
			if value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue(); value != 0 {
				all[name] = value
			}
		}
	}
	return all
}
