package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ticksPerSecond is how Linux counts the time of processes, on all architectures.
const ticksPerSecond = 100

// usage is what the pods of control planes take, by component.
type usage struct{ components map[string]*component }

type component struct {
	pods         int
	proportional int64 // bytes
	cpu          time.Duration
}

// measure adds up the processes of the pods of some shoots. The processor time is since their start.
func (b *bench) measure(ctx context.Context, shoots []*corev1beta1.Shoot) (*usage, error) {
	byUID := map[string]string{}
	u := &usage{components: map[string]*component{}}
	for _, shoot := range shoots {
		current := &corev1beta1.Shoot{}
		if err := b.garden.Get(ctx, client.ObjectKeyFromObject(shoot), current); err != nil {
			return nil, err
		}
		pods := &corev1.PodList{}
		if err := b.garden.List(ctx, pods, client.InNamespace(current.Status.TechnicalID)); err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			name := componentOf(&pod)
			byUID[string(pod.UID)] = name
			if u.components[name] == nil {
				u.components[name] = &component{}
			}
			u.components[name].pods++
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range processes {
		if name, ok := byUID[podOf(dir)]; ok {
			u.components[name].proportional += proportional(dir)
			u.components[name].cpu += processorTime(dir)
		}
	}
	return u, nil
}

// componentOf is what a pod is a replica of: its name without what its owners have added.
func componentOf(pod *corev1.Pod) string {
	switch owner := metav1.GetControllerOf(pod); {
	case owner == nil:
		return pod.Name
	case owner.Kind == "ReplicaSet":
		return owner.Name[:max(0, strings.LastIndex(owner.Name, "-"))]
	default:
		return owner.Name
	}
}

var podUID = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)

// podOf is the UID of the outermost pod that a process belongs to: a machine in a pod has pods of its own.
func podOf(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return "" // it has ended
	}
	match := podUID.FindSubmatch(data)
	if match == nil {
		return ""
	}
	return strings.ReplaceAll(string(match[1]), "_", "-")
}

// proportional is the memory of a process, where what it shares counts by its share.
func proportional(dir string) int64 {
	data, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			kilobytes, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// processorTime is what a process and its ended children have used.
func processorTime(dir string) time.Duration {
	data, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in brackets, may have anything in it. The fields after it start with the state.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	var ticks int64
	for _, field := range fields[11:15] {
		n, _ := strconv.ParseInt(string(field), 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

func (u *usage) print(out io.Writer, shoots int) {
	names := make([]string, 0, len(u.components))
	for name := range u.components {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(u.components[b].proportional, u.components[a].proportional), cmp.Compare(a, b))
	})
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "component\tpods\tmemory (PSS)\tCPU since start\t")
	var total component
	row := func(name string, c component) {
		fmt.Fprintf(w, "%s\t%d\t%.0f MiB\t%.1f s\t\n", name, c.pods, float64(c.proportional)/(1<<20), c.cpu.Seconds())
	}
	for _, name := range names {
		c := *u.components[name]
		row(name, c)
		total.pods += c.pods
		total.proportional += c.proportional
		total.cpu += c.cpu
	}
	row("total", total)
	if shoots > 1 {
		row("per shoot", component{total.pods / shoots, total.proportional / int64(shoots), total.cpu / time.Duration(shoots)})
	}
	_ = w.Flush()
}
