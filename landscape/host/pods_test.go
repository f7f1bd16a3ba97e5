package host

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPodUIDs(t *testing.T) {
	const uid, inner = "0e0c7f0a-6d0f-4b8e-9a5d-3f1b2c4d5e6f", "11111111-6d0f-4b8e-9a5d-3f1b2c4d5e6f"
	for cgroup, want := range map[string][]string{
		"0::/gardener-local/runtime-0/kubepods/burstable/pod" + uid + "/abc\n":                               {uid},
		"0::/kubepods.slice/kubepods-pod0e0c7f0a_6d0f_4b8e_9a5d_3f1b2c4d5e6f.slice/cri-containerd-1.scope\n": {uid},
		"0::/x/pod" + uid + "/kubepods/pod" + inner + "/abc\n":                                               {uid, inner},
		"2:cpu:/x/pod" + uid + "/abc\n1:pids:/x/pod" + uid + "/kubepods/pod" + inner + "/abc\n":              {uid, inner},
		"0::/gardener-local/runtime-0/system.slice/kubelet.service\n":                                        nil,
	} {
		if diff := cmp.Diff(want, podUIDs([]byte(cgroup))); diff != "" {
			t.Errorf("pods of %q (-want +got):\n%s", cgroup, diff)
		}
	}
}

func TestProcessorTime(t *testing.T) {
	for stat, want := range map[string]time.Duration{
		"7 (a) b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 20 30 20 0 1 0\n": 2500 * time.Millisecond,
		"7 (ended": 0,
		"":         0,
	} {
		if got := processorTime([]byte(stat)); got != want {
			t.Errorf("time of %q is %s, want %s", stat, got, want)
		}
	}
}
